// Pages leave for the driver, and views give up what they map.
#include <algorithm>

#include "allocator/movie_allocator.h"

namespace movie {

bool MovieAllocator::host_passed(const Fence& fence, bool wait) {
    if (timelines_.passed(fence)) return true;
    if (!wait || capturing_ > 0) return false;
    bool passed = true;
    fence.for_each([&](Mark mark) { passed = passed && timelines_.wait_on_host(mark) == Status::ok; });
    return passed;
}

void MovieAllocator::wait_for_slabs_of(Pool& pool) {
    Fence waiting;  // for which an event may never have been recorded
    for (const auto& [family, owner] : pool.owners)
        family->for_each_waiting([&waiting](const auto& block) { waiting.add(block.fence); });
    if (!timelines_.passed(waiting) && host_passed(waiting, true)) settle();
}

bool MovieAllocator::unmap_slots(View& view, std::size_t first, std::size_t behind) {
    std::size_t at = first;
    while (at < behind) {
        if (view.slots[at] == 0) {
            ++at;
            continue;
        }
        std::size_t stop = at;
        while (stop < behind && view.slots[stop] != 0) ++stop;
        if (driver_.unmap(view.base + at * grain_, (stop - at) * grain_) != Status::ok) return false;
        count_mapped(view, at, stop, -1);
        std::fill(view.slots.begin() + static_cast<std::ptrdiff_t>(at),
                  view.slots.begin() + static_cast<std::ptrdiff_t>(stop), Address{0});
        at = stop;
    }
    return true;
}

bool MovieAllocator::clear_views_of(Address begin, Address end, bool wait) {
    for (const auto& pool : pools_) {
        for (View& view : pool->views) {
            for (std::size_t slot = 0; slot < view.slots.size(); ++slot) {
                if (view.slots[slot] < begin || view.slots[slot] >= end) continue;
                // A page that is free lies behind the view's live block, if there is one.
                if (view.fixed() || !host_passed(view.used, wait)) return false;
                std::size_t behind = slot;
                while (behind < view.slots.size() && view.slots[behind] >= begin && view.slots[behind] < end) ++behind;
                if (!unmap_slots(view, slot, behind)) return false;
                slot = behind;
            }
        }
    }
    return true;
}

Bytes MovieAllocator::shrink(Pool& pool, ArenaId arena, Address begin, Address end) {
    // A page that a step back still owed maps somewhere would not come free.
    clear_debris();
    if (debris_.blocks_addresses()) return 0;
    Bytes gone = 0;
    std::int64_t pages = 0;
    for (const auto& [page, size] : pool.arenas[arena]->give_back(begin, end)) {
        pool.space.take(page, page + size);
        history_.add({.kind = HistoryEvent::Kind::segment_unmap,
                      .address = page,
                      .size = size,
                      .stream = timelines_.stream_of(pool.space.owner(arena)),
                      .pool = pool.id});
        gone += size;
        ++pages;
    }
    if (gone > 0) {
        count_reserved(-static_cast<std::int64_t>(gone), -pages);
        asked_at_ = 0;  // the card has room again: ask
    }
    count_debris();
    return gone;
}

Bytes MovieAllocator::give_back(Bytes most, bool wait) {
    if (capturing_ > 0) return 0;
    const Bytes before = reserved_;
    clear_debris();
    Pool& pool = *pools_.front();  // what another pool holds belongs to a graph, which expects it where it is
    if (wait) wait_for_slabs_of(pool);
    return_empty_slabs(pool);
    struct Range {
        Address begin, end;
        ArenaId arena;
    };
    std::vector<Range> ranges;
    const auto& extents = pool.space.extents();
    for (auto extent = extents.begin(); extent != extents.end();) {
        const Address begin = table_.ceil(extent->first);
        const ArenaId arena = extent->second.arena;
        Address end = extent->first;
        for (; extent != extents.end() && (end == extent->first || extent->first == end); ++extent)
            end = extent->second.end;
        Address from = begin;
        const Address stop = table_.floor(end);
        Address next = 0;
        for (Address page = begin; page < stop; page = next) {  // pinned pages stay
            next = page + table_.size(page);
            if (!table_.at(page).pinned) continue;
            if (page > from) ranges.push_back({from, page, arena});
            from = next;
        }
        if (stop > from) ranges.push_back({from, stop, arena});
    }
    Bytes given = 0;
    for (const Range& range : ranges) {
        if (given >= most) break;
        const Bytes size = range.end - range.begin;
        const Address end = size <= most - given ? range.end : table_.ceil(range.begin + most - given);
        const Fence fence = pool.space.fence_in(range.begin, end);
        if (!host_passed(fence, wait) || !clear_views_of(range.begin, end, wait)) continue;
        given += shrink(pool, range.arena, range.begin, end);
    }
    drop_empty_views();
    for (const auto& arena : pool.arenas) arena->trim();
    settle();
    return before - std::min(before, reserved_);  // a page may have gone to the debris instead
}

void MovieAllocator::empty_cache() {
    const std::lock_guard lock(mutex_);
    history_.add({.kind = HistoryEvent::Kind::empty_cache});
    collect();
    give_back(~Bytes{0}, true);
}

Bytes MovieAllocator::reclaim(Bytes bytes) {
    const std::lock_guard lock(mutex_);
    collect();
    const Bytes given = give_back(bytes, false);
    return given >= bytes ? given : given + give_back(bytes - given, true);
}

bool MovieAllocator::evict(Pool& pool, Views::iterator view) {
    if (view->live_bytes != 0 || view->fixed() || capturing_ > 0 || !timelines_.passed(view->used)) return false;
    if (!unmap_slots(*view, 0, view->slots.size())) return false;
    if (driver_.free_address(view->base, view->reserved) != Status::ok) return false;
    pool.view_at.erase(view->base);
    pool.views.erase(view);
    --view_count_;
    ++view_counters_.evicted;
    return true;
}

void MovieAllocator::drop_empty_views() {
    for (const auto& pool : pools_)
        for (auto view = pool->views.begin(); view != pool->views.end();) {
            const auto next = std::next(view);
            if (std::all_of(view->slots.begin(), view->slots.end(), [](Address page) { return page == 0; }))
                evict(*pool, view);
            view = next;
        }
}

void MovieAllocator::drop_idle_views() {
    for (const auto& pool : pools_)
        for (auto view = pool->views.begin(); view != pool->views.end();) {
            const auto next = std::next(view);
            evict(*pool, view);
            view = next;
        }
}

void MovieAllocator::keep_within_bounds() {
    const auto beyond = [this] {
        return view_count_ > config_.most_views ||
               static_cast<double>(mapped_) > config_.most_mapped * static_cast<double>(reserved_ / grain_);
    };
    if (!beyond()) return;
    struct Idle {
        std::uint64_t last_used;
        Pool* pool;
        Views::iterator view;
    };
    std::vector<Idle> idle;
    for (const auto& pool : pools_)
        for (auto view = pool->views.begin(); view != pool->views.end(); ++view)
            if (view->live_bytes == 0) idle.push_back({view->last_used, pool.get(), view});
    std::sort(idle.begin(), idle.end(), [](const Idle& a, const Idle& b) { return a.last_used < b.last_used; });
    for (const Idle& each : idle) {
        if (!beyond()) return;
        if (!timelines_.passed(each.view->used)) timelines_.ask_for(each.view->used);
        evict(*each.pool, each.view);
    }
}

}  // namespace movie

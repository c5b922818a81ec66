// The steps of a request, from those that cost nothing to those that make streams wait. Each succeeds or changes
// nothing.
#include <algorithm>

#include "allocator/movie_allocator.h"

namespace movie {

std::optional<MovieAllocator::Placement> MovieAllocator::place_large(const Site& site, const Reach& reach) {
    if (auto placement = as_before(site, follows_with_waits(site) ? reach : Reach{})) return placement;
    if (auto placement = in_own_arena(site)) return placement;
    if (capturing_ > 0) {
        // A capture takes memory of its own stream and pool, or new memory. What earlier captures left in the pool is
        // free: graphs that share one never run at the same time. What a capture gets stays where it is.
        if (auto placement = grow_contiguous(site, reach.ask)) return placement;
        return stitch(site, {});
    }
    if (config_.policy == Policy::automatic)
        if (auto placement = grow_within_budget(site)) return placement;
    if (auto placement = from_free_memory(site, reach)) return placement;
    if (return_empty_slabs(site.pool)) {
        if (auto placement = in_own_arena(site)) return placement;
        if (auto placement = from_free_memory(site, reach)) return placement;
    }
    return grow_and_stitch(site, reach);
}

std::optional<MovieAllocator::Placement> MovieAllocator::from_free_memory(const Site& site, const Reach& reach) {
    // A free range before a view: a block in a view scatters over ranges that later requests could have had whole.
    if (auto placement = contiguous_anywhere(site, {})) return placement;
    if (auto placement = ready_view(site, {})) return placement;
    if (reach.wait) timelines_.want();
    if (reach.wait && config_.policy == Policy::lean)
        if (auto placement = spare_a_wait(site, reach)) return placement;
    if (reach.wait)
        if (auto placement = contiguous_anywhere(site, reach)) return placement;
    // Once driver work cannot be avoided, waits that save some of it are the cheaper way.
    return stitch(site, reach);
}

bool MovieAllocator::wait_and_take(const Site& site, Address begin, Address end, Pool& from) {
    if (!wait_for(site, from.space.fence_in(begin, end))) return false;
    from.space.take(begin, end);
    return true;
}

std::optional<MovieAllocator::Placement> MovieAllocator::as_before(const Site& site, const Reach& reach) {
    if (!config_.recall || site.recall == nullptr || capturing_ > 0) return std::nullopt;
    const auto place = site.recall->expect(site.bytes, site.timeline);
    if (!place) return std::nullopt;
    // Slabs that nothing lies in are kept for small requests to come, but not where something else is expected.
    const auto free_of_slabs = [&](Address begin, Address end) {
        return site.pool.space.covers(begin, end, std::nullopt) || return_empty_slabs(site.pool, begin, end);
    };
    if (place->view_base != 0) {
        const auto found = site.pool.view_at.find(place->view_base);
        if (found == site.pool.view_at.end() || found->second->live_bytes != 0) return std::nullopt;
        View& view = *found->second;
        for (const HomeRange& range : home_ranges(view, view.head, site.bytes, grain_))
            if (!free_of_slabs(range.begin, range.end)) return std::nullopt;
        return is_ready(site, view, reach.wait) ? reuse(site, view) : std::nullopt;
    }
    const Address end = place->address + site.bytes;
    const auto stream = reach.wait ? std::nullopt : std::optional(site.timeline);
    if (!free_of_slabs(place->address, end) || !site.pool.space.covers(place->address, end, stream))
        return std::nullopt;
    const ArenaId arena = site.pool.space.arena_at(place->address);
    if (!wait_and_take(site, place->address, end, site.pool)) return std::nullopt;
    return Placement{.address = place->address, .pieces = {{place->address, end, arena, &site.pool}}};
}

std::optional<MovieAllocator::Placement> MovieAllocator::in_own_arena(const Site& site) {
    const auto at = place_in_own_arena(site);
    if (!at) return std::nullopt;
    site.pool.space.take(*at, *at + site.bytes);
    return Placement{.address = *at, .pieces = {{*at, *at + site.bytes, site.arena, &site.pool}}};
}

std::optional<Address> MovieAllocator::place_in_own_arena(const Site& site) const {
    const RunIndex& clear = site.pool.space.clear(site.arena);
    const auto begin = [](const auto& run) { return run ? std::optional(run->begin) : std::nullopt; };
    if (!counts_lifetimes()) return begin(clear.best_fit(site.bytes));
    // Blocks that stay are laid close together at the low end. Scattered among those that go they would cut what these
    // leave into pieces, and each piece ends in parts of pages that serve no view. What goes takes the high end of what
    // it is put into, where what stays will not follow.
    if (lifetimes_.stays(site.bytes, most_in_use_)) return low_place(clear, site.bytes);
    const auto run = clear.best_fit(site.bytes);
    return run ? std::optional(run->end - site.bytes) : std::nullopt;
}

std::optional<Address> MovieAllocator::low_place(const RunIndex& clear, Bytes bytes) const {
    const auto lowest = clear.first_fit(bytes);
    // Of several streams each has a part of what is free to choose from, and to pass over low places costs more than it
    // gains.
    if (!lowest || timelines_.size() > 1) return lowest ? std::optional(lowest->begin) : std::nullopt;
    // Where a block ends with a page, what is free behind it begins with one.
    if (const auto run = clear.first_fit_to_edge(bytes, grain_)) return run->begin;
    // Whole pages would carry a beginning inside a page on to their end, and so would the next.
    const Address aligned = bytes % grain_ == 0 ? round_up(lowest->begin, grain_) : lowest->begin;
    return aligned + bytes <= lowest->end ? aligned : lowest->begin;
}

std::optional<MovieAllocator::Placement> MovieAllocator::contiguous_anywhere(const Site& site, const Reach& reach) {
    // No wait before any wait, then the shortest range, whatever the wait: the same request finds the same range in
    // every iteration, so that layouts settle.
    struct Window {
        Address begin = 0;
        std::uint32_t wait = 0;
        Bytes range = 0;
        ArenaId arena = 0;
    };
    std::optional<Window> best;
    const auto& extents = site.pool.space.extents();
    const auto better = [&best](std::uint32_t wait, Bytes range) {
        if (!best || (wait == 0) != (best->wait == 0)) return !best || wait == 0;
        return range < best->range || (range == best->range && wait < best->wait);
    };
    for (auto group = extents.begin(); group != extents.end();) {
        // Extents that touch differ in their fences only.
        auto behind = std::next(group);
        Address end = group->second.end;
        while (behind != extents.end() && behind->first == end) end = (behind++)->second.end;
        const Bytes range = end - group->first;
        const bool own = site.pool.space.owner(group->second.arena) == site.timeline;
        if (range >= site.bytes && (own || config_.cross_stream)) {
            for (auto first = group; first != behind && end - first->first >= site.bytes; ++first) {
                std::uint32_t wait = 0;
                Address at = first->first;
                for (auto extent = first; at < first->first + site.bytes; ++extent) {
                    wait = std::max(wait, likely_wait(site.timeline, extent->second.fence));
                    at = extent->second.end;
                }
                if ((wait == 0 || reach.wait) && better(wait, range))
                    best = {first->first, wait, range, group->second.arena};
            }
        }
        group = behind;
    }
    if (!best || !wait_and_take(site, best->begin, best->begin + site.bytes, site.pool)) return std::nullopt;
    return Placement{.address = best->begin,
                     .pieces = {{best->begin, best->begin + site.bytes, best->arena, &site.pool}}};
}

std::uint32_t MovieAllocator::likely_wait(TimelineId timeline, const Fence& fence) const {
    std::uint32_t wait = 0;
    fence.for_each([&](Mark mark) {
        if (!timelines_.implied(timeline, mark)) wait = std::max(wait, timelines_.likely_wait(mark));
    });
    return wait;
}

// --- small requests --------------------------------------------------------------------------------------------------

std::optional<SlabFamily::Place> MovieAllocator::place_small(const Site& site, ArenaId slabs, SlabFamily& family,
                                                             const Reach& reach) {
    const std::optional<Piece> home = page_for_slab(site, slabs, reach);
    if (!home) return std::nullopt;
    family.add_slab(*home);
    return family.allocate(static_cast<std::uint32_t>(site.bytes / kUnit));
}

std::optional<Piece> MovieAllocator::page_for_slab(const Site& site, ArenaId slabs, const Reach& reach) {
    const Site grown{site.pool, site.timeline, slabs, kSlabBytes};
    const bool may_grow = config_.policy == Policy::automatic || capturing_ > 0;
    if (auto home = own_page_for_slab(site, slabs)) return home;
    if (may_grow && within_budget(grain_) && grow_grains(grown, 1, reach.ask)) return own_page_for_slab(site, slabs);
    if (auto home = own_page_for_slab(site, site.arena)) return home;
    if (config_.policy == Policy::lean && capturing_ == 0 && reach.wait) {
        if (auto home = page_of_others_for_slab(site, {})) return home;
        const bool elsewhere = site.pool.space.clear(site.arena).best_fit(site.bytes).has_value();
        if (!elsewhere && grow_ahead(grown)) return own_page_for_slab(site, slabs);
    }
    if (capturing_ == 0)
        if (auto home = page_of_others_for_slab(site, reach)) return home;
    // No whole page is free. The odd ends of pages are of use to nobody else: the caller goes on with an extent of its
    // own before anything grows.
    if (may_grow || site.pool.space.clear(site.arena).best_fit(site.bytes)) return std::nullopt;
    if (!return_empty_slabs(site.pool) && !grow_grains(grown, 1, reach.ask)) return std::nullopt;
    return own_page_for_slab(site, slabs);
}

std::optional<Piece> MovieAllocator::own_page_for_slab(const Site& site, ArenaId arena) {
    // The shortest run that contains a page: it is of the least use to larger requests.
    const RunIndex& clear = site.pool.space.clear(arena);
    Address at = 0;
    const auto fits = [&](const RunIndex::Run& run) {
        at = round_up(run.begin, kSlabBytes);
        return at + kSlabBytes <= run.end;
    };
    int tries = 16;  // runs shorter than two pages may or may not contain one; longer ones always do
    const bool found =
        clear.by_size_from(kSlabBytes, [&](const RunIndex::Run& run) { return fits(run) || --tries == 0; });
    if (!found) return std::nullopt;
    if (tries == 0) {
        const auto run = clear.best_fit(2 * kSlabBytes);
        if (!run || !fits(*run)) return std::nullopt;
    }
    site.pool.space.take(at, at + kSlabBytes);
    return Piece{at, at + kSlabBytes, arena, &site.pool};
}

std::optional<Piece> MovieAllocator::page_of_others_for_slab(const Site& site, const Reach& reach) {
    const Site page{site.pool, site.timeline, site.arena, kSlabBytes};
    const FreePages free = free_pages(page, reach);
    const PageRun* best = nullptr;
    for (const PageRun& run : free.runs)
        if (best == nullptr || run.wait < best->wait || (run.wait == best->wait && run.grains < best->grains))
            best = &run;
    if (best == nullptr) return std::nullopt;
    // A lender's page leaves it whole; of our own pages one slab's worth is enough.
    const Bytes size = best->pool == &site.pool ? kSlabBytes : table_.size(best->begin);
    if (size > kSlabBytes || !wait_and_take(site, best->begin, best->begin + size, *best->pool)) return std::nullopt;
    return Piece{best->begin, best->begin + size, best->arena, best->pool};
}

}  // namespace movie

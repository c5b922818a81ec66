// Views: free pages from anywhere, mapped side by side.
#include <algorithm>

#include "allocator/movie_allocator.h"

namespace movie {

std::optional<MovieAllocator::Placement> MovieAllocator::occupy(const Site& site, View& view, Bytes head) {
    Placement placement{.address = view.base + head, .view = &view};
    Fence fence;
    for (const HomeRange& range : home_ranges(view, head, site.bytes, grain_)) {
        Pool* from = &site.pool;
        if (!from->space.contains(range.begin))
            for (const auto& pool : pools_)
                if (pool->lendable && pool->space.contains(range.begin)) from = pool.get();
        // A lender's page leaves it whole, so that no page is shared between pools.
        const Address end = from == &site.pool ? range.end : table_.ceil(range.end);
        fence.add(from->space.fence_in(range.begin, end));
        placement.pieces.push_back({range.begin, end, from->space.arena_at(range.begin), from});
    }
    if (!wait_for(site, fence)) return std::nullopt;
    for (const Piece& piece : placement.pieces) piece.pool->space.take(piece.begin, piece.end);
    view.head = head;
    view.live_bytes = head + site.bytes;
    view.last_used = operations_;
    if (capturing_ > 0) view.captured = true;
    return placement;
}

bool MovieAllocator::wait_for(const Site& site, const Fence& fence) {
    if (timelines_.implied(site.timeline, fence)) return true;
    timelines_.want();
    if (capturing_ > 0 || timelines_.wait_on_device(site.timeline, fence) != Status::ok) return false;
    for (const auto& pool : pools_) pool->space.refresh();
    return true;
}

bool MovieAllocator::is_ready(const Site& site, const View& view, bool may_wait) const {
    // Where a step back is still owed, what a view maps is not sure.
    if (view.live_bytes != 0 || view.slots.size() < view.slots_for(site.bytes, grain_)) return false;
    if (debris_.blocks_addresses()) return false;
    const auto stream = may_wait ? std::nullopt : std::optional(site.timeline);
    Bytes covered = 0;
    for (const HomeRange& range : home_ranges(view, view.head, site.bytes, grain_)) {
        if (!site.pool.space.covers(range.begin, range.end, stream)) return false;
        covered += range.end - range.begin;
    }
    return covered == site.bytes;
}

std::optional<MovieAllocator::Placement> MovieAllocator::ready_view(const Site& site, const Reach& reach) {
    if (!config_.keep_views) return std::nullopt;
    View* best = nullptr;
    for (View& view : site.pool.views) {
        const std::size_t first = view.first_slot(grain_);
        if (first >= view.slots.size() || view.slots[first] == 0) continue;
        if (best != nullptr && view.slots.size() >= best->slots.size()) continue;
        // Most are sorted out here, cheaply.
        if (!site.pool.space.contains(view.slots[first] + view.head % grain_)) continue;
        if (is_ready(site, view, reach.wait)) best = &view;
    }
    return best == nullptr ? std::nullopt : reuse(site, *best);
}

std::optional<MovieAllocator::Placement> MovieAllocator::reuse(const Site& site, View& view) {
    auto placement = occupy(site, view, view.head);
    if (placement) ++view_counters_.reused;
    return placement;
}

void MovieAllocator::count_mapped(const View& view, std::size_t first, std::size_t behind, std::int64_t change) {
    for (std::size_t slot = first; slot < std::min(behind, view.slots.size()); ++slot) {
        const Address page = view.slots[slot];
        if (page == 0) continue;
        mapped_ += static_cast<std::uint64_t>(change);
        if (table_.floor(page) == page) table_.at(page).views += static_cast<std::uint32_t>(change);
    }
}

std::optional<MovieAllocator::Placement> MovieAllocator::stitch(const Site& site, const Reach& reach) {
    if (site.bytes <= kMostInSlab && !reach.lend) return std::nullopt;  // not worth a view
    if (!config_.keep_views) drop_idle_views();
    // Where requests repeat, a view that is edited for one is missed by another, round after round; a new one is made
    // once. Policy lean stitches all the time, so it pays to settle early there.
    const bool lasting =
        site.recall != nullptr && (config_.policy == Policy::lean ? site.recall->trusted() : site.recall->lasts());
    if (reach.wait)
        if (auto placement = ready_view(site, reach)) return placement;
    if (!lasting)
        if (const auto edit = cheapest_edit(site, reach))
            if (auto placement = apply(site, reach, *edit)) return placement;
    return make_view(site, reach);
}

std::optional<MovieAllocator::Placement> MovieAllocator::make_view(const Site& site, const Reach& reach) {
    const FreePages free = free_pages(site, reach);
    const Recipe recipe = recipe_for(free, site.bytes);
    const auto chosen = choose(free, recipe.grains);
    if (!chosen) return std::nullopt;
    const bool whole_pages = recipe.head == nullptr && recipe.tail == nullptr;
    if (chosen->size() == 1 && whole_pages) {  // one range needs no view
        const PageRun& run = chosen->front();
        const Bytes size = run.pool == &site.pool ? site.bytes : table_.ceil(run.begin + site.bytes) - run.begin;
        if (!wait_and_take(site, run.begin, run.begin + size, *run.pool)) return std::nullopt;
        return Placement{.address = run.begin, .pieces = {{run.begin, run.begin + size, run.arena, run.pool}}};
    }

    View view;
    const auto add = [&](Address begin, Address end) {
        for (Address grain = begin; grain < end; grain += grain_) view.slots.push_back(grain);
    };
    if (recipe.head != nullptr) {
        const Address page = table_.floor(recipe.head->begin);
        add(page, recipe.head->end);
        view.head = recipe.head->end - page - recipe.head_bytes;
    }
    Bytes excess = 0;  // the last page may be longer than what is needed of it
    for (const PageRun& run : *chosen) {
        const Address end = run.begin + run.grains * grain_;
        excess = table_.ceil(end) - end;
        add(run.begin, end + excess);
    }
    // It then holds what the tail would have held, too.
    if (recipe.tail != nullptr && excess == 0) add(recipe.tail->begin, table_.ceil(recipe.tail->end));
    // Twice the addresses: requests that grow step by step extend the same view.
    view.reserved = (config_.extend_views ? 2 : 1) * view.slots.size() * grain_;

    std::optional<Placement> placement;
    auto placed = site.pool.views.end();
    {
        Transaction transaction(driver_, debris_, capturing_ == 0);
        const auto range = transaction.reserve(view.reserved);
        if (!range.ok()) return std::nullopt;
        view.base = range.value;
        for (std::size_t slot = 0; slot < view.slots.size();) {
            const HomePage& page = table_.at(view.slots[slot]);
            const Address at = view.base + slot * grain_;
            if (transaction.map(at, page.grains * grain_, page.handle) != Status::ok) return std::nullopt;
            slot += page.grains;
        }
        if (transaction.set_access(view.base, view.slots.size() * grain_) != Status::ok) return std::nullopt;
        site.pool.views.push_back(std::move(view));
        placed = std::prev(site.pool.views.end());
        placement = occupy(site, *placed, placed->head);
        if (placement) transaction.commit();
    }
    if (!placement) {
        site.pool.views.erase(placed);
        return std::nullopt;
    }
    count_mapped(*placed, 0, placed->slots.size(), 1);
    site.pool.view_at.emplace(placed->base, placed);
    ++view_count_;
    ++view_counters_.created;
    history_.add({.kind = HistoryEvent::Kind::stitch,
                  .address = placement->address,
                  .size = site.bytes,
                  .stream = timelines_.stream_of(site.timeline),
                  .pool = site.pool.id});
    keep_within_bounds();
    return placement;
}

}  // namespace movie

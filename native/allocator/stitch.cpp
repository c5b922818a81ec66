// Views: free pages from anywhere, mapped side by side.
#include <algorithm>

#include "allocator/movie_allocator.h"

namespace movie {

namespace {

// What driver calls cost relative to each other, in microseconds a page, where nothing better is known: published
// measurements agree on the proportions. They decide between editing a view and making one.
constexpr Bytes kMapCost = 2 + 38;  // map and set access
constexpr Bytes kUnmapCost = 34;
constexpr Bytes kReserveCost = 2;

}  // namespace

// --- which pages are free --------------------------------------------------------------------------------------------

void MovieAllocator::add_free_pages(const Site& site, Pool& from, const Reach& reach, FreePages& free) {
    const auto& extents = from.space.extents();
    const auto emit = [&](Address begin, Bytes size, std::uint32_t wait, ArenaId arena) {
        if (size == 0 || (wait != 0 && !reach.wait)) return;
        const auto grains = static_cast<std::uint32_t>(size / grain_);
        free.grains += grains;
        if (!free.runs.empty()) {
            PageRun& last = free.runs.back();
            if (last.begin + last.grains * grain_ == begin && last.wait == wait && last.pool == &from) {
                last.grains += grains;
                return;
            }
        }
        free.runs.push_back({.begin = begin, .grains = grains, .wait = wait, .arena = arena, .pool = &from});
    };
    for (auto group = extents.begin(); group != extents.end();) {
        // Extents that touch; a page may lie in several of them.
        const ArenaId arena = group->second.arena;
        const Address begin = group->first;
        Address end = begin;
        const Address first = table_.ceil(begin);
        Address at = first;              // the next page
        std::uint32_t wait_of_page = 0;  // for the part of it that lies in extents already seen
        auto extent = group;
        const bool usable = &from != &site.pool || from.space.owner(arena) == site.timeline || config_.cross_stream;
        for (; extent != extents.end() && (extent == group || extent->first == end); ++extent) {
            end = extent->second.end;
            if (!usable || end <= at) continue;
            const std::uint32_t wait = likely_wait(site.timeline, extent->second.fence);
            if (extent->first > at) {
                wait_of_page = std::max(wait_of_page, wait);
                const Bytes size = table_.size(at);
                if (end < at + size) continue;
                emit(at, size, wait_of_page, arena);
                at += size;
            }
            const Address stop = table_.floor(end);
            if (stop > at) {
                emit(at, stop - at, wait, arena);
                at = stop;
            }
            wait_of_page = wait;
        }
        if (usable && &from == &site.pool && config_.partial_ends) {
            const auto add_odd = [&](Address odd_begin, Address odd_end, bool head) {
                const std::uint32_t wait = likely_wait(site.timeline, from.space.fence_in(odd_begin, odd_end));
                if (wait == 0 || reach.wait) free.odd.push_back({odd_begin, odd_end, arena, head});
            };
            const Address last = table_.floor(end);
            if (first != begin && first <= end) add_odd(begin, first, true);
            if (last != end && last >= begin) add_odd(last, end, false);
        }
        group = extent;
    }
}

MovieAllocator::FreePages MovieAllocator::free_pages(const Site& site, const Reach& reach) {
    FreePages free;
    add_free_pages(site, site.pool, reach, free);
    if (reach.lend)
        for (const auto& pool : pools_)
            if (pool.get() != &site.pool && pool->lendable) add_free_pages(site, *pool, reach, free);
    return free;
}

MovieAllocator::Recipe MovieAllocator::recipe_for(const FreePages& free, Bytes bytes) const {
    const Bytes rest = bytes % grain_;
    const std::uint64_t whole = bytes / grain_;
    // The smallest odd end, or pair of odd ends, that holds what is asked for.
    const auto with_odd_ends = [&](Bytes wanted, std::uint64_t grains) -> std::optional<Recipe> {
        std::vector<const OddEnd*> heads;
        std::vector<const OddEnd*> tails;
        const OddEnd* single = nullptr;
        for (const OddEnd& odd : free.odd) {
            (odd.head ? heads : tails).push_back(&odd);
            if (odd.size() >= wanted && (single == nullptr || odd.size() < single->size())) single = &odd;
        }
        if (single != nullptr && single->head) return Recipe{grains, single, nullptr, wanted};
        if (single != nullptr) return Recipe{grains, nullptr, single, 0};
        const auto by_size = [](const OddEnd* a, const OddEnd* b) { return a->size() < b->size(); };
        std::sort(heads.begin(), heads.end(), by_size);
        std::sort(tails.begin(), tails.end(), by_size);
        std::optional<Recipe> best;
        Bytes least = 0;
        auto last = tails.rbegin();
        for (const OddEnd* head : heads) {
            while (last != tails.rend() && std::next(last) != tails.rend() &&
                   head->size() + (*std::next(last))->size() >= wanted)
                ++last;
            if (last == tails.rend()) break;
            // A view has no page twice: once all of it is free, a longer block would lie there twice.
            auto tail = last;
            if (table_.floor((*tail)->begin) == table_.floor(head->begin)) {
                if (tail == tails.rbegin()) continue;
                --tail;
            }
            const Bytes sum = head->size() + (*tail)->size();
            if (sum < wanted || (best && sum >= least)) continue;
            best = Recipe{grains, head, *tail, head->size()};
            least = sum;
        }
        return best;
    };
    Recipe recipe{.grains = whole + (rest != 0 ? 1 : 0)};
    if (rest != 0)
        if (const auto odd = with_odd_ends(rest, whole)) recipe = *odd;
    // Where whole pages are short, more of the request may lie in odd ends.
    if (recipe.grains > free.grains) {
        if (const auto all = with_odd_ends(bytes - free.grains * grain_, free.grains))
            recipe = *all;
        else if (const auto some = whole > 0 ? with_odd_ends(rest + grain_, whole - 1) : std::nullopt)
            recipe = *some;
    }
    return recipe;
}

std::uint64_t MovieAllocator::grains_missing(const Site& site, const Reach& reach) {
    const FreePages free = free_pages(site, reach);
    const std::uint64_t need = recipe_for(free, site.bytes).grains;
    return need - std::min(need, free.grains);
}

std::optional<std::vector<MovieAllocator::PageRun>> MovieAllocator::choose(const FreePages& free,
                                                                           std::uint64_t grains) {
    std::vector<PageRun> chosen;
    if (grains == 0) return chosen;
    if (free.grains < grains) return std::nullopt;
    std::vector<Part> parts;
    parts.reserve(free.runs.size());
    for (const PageRun& run : free.runs) {
        // How many views lose pages is estimated from the ends of the run.
        const Address last = run.begin + (run.grains - 1) * grain_;
        parts.push_back({.pages = run.grains,
                         .wait = run.wait,
                         .breaks = std::max(table_.at(run.begin).views, table_.at(last).views)});
    }
    const auto choice = combine(parts, static_cast<std::uint32_t>(grains), config_.combiner);
    if (!choice) return std::nullopt;
    for (const Taken& taken : *choice) {
        chosen.push_back(free.runs[taken.part]);
        chosen.back().grains = taken.pages;
    }
    return chosen;
}

// --- taking what a view needs ----------------------------------------------------------------------------------------

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

// --- editing a view --------------------------------------------------------------------------------------------------

bool MovieAllocator::plan_edit(const Site& site, const Reach& reach, Bytes limit, Edit& edit) {
    const View& view = *edit.view;
    const auto stream = reach.wait ? std::nullopt : std::optional(site.timeline);
    const std::size_t begin = view.first_slot(grain_);
    const std::size_t end = view.slots_for(site.bytes, grain_);
    edit.gaps.clear();
    edit.grains = 0;
    edit.cost = 0;
    for (std::size_t slot = begin; slot < end && edit.cost < limit;) {
        Gap gap{slot, slot + 1};
        if (slot < view.slots.size() && view.slots[slot] != 0) {
            const Bytes from = std::max(view.head, slot * grain_) - slot * grain_;
            const Bytes to = std::min(grain_, view.head + site.bytes - slot * grain_);
            if (site.pool.space.covers(view.slots[slot] + from, view.slots[slot] + to, stream)) {
                ++slot;
                continue;
            }
            // A page leaves as a whole, also where it begins before this slot.
            gap.first -= (view.slots[slot] - table_.floor(view.slots[slot])) / grain_;
            gap.behind = gap.first + table_.at(view.slots[slot]).grains;
            edit.cost += kUnmapCost;
        }
        const std::uint64_t grains = std::min(gap.behind, end) - std::max(gap.first, begin);
        edit.grains += grains;
        edit.cost += grains * kMapCost;
        slot = gap.behind;
        if (!edit.gaps.empty() && edit.gaps.back().behind == gap.first)
            edit.gaps.back().behind = gap.behind;
        else
            edit.gaps.push_back(gap);
    }
    return edit.cost < limit;
}

std::optional<MovieAllocator::Edit> MovieAllocator::cheapest_edit(const Site& site, const Reach& reach) {
    if (!config_.edit_views || !config_.keep_views || capturing_ > 0 || debris_.blocks_addresses()) return std::nullopt;
    const bool crowded = static_cast<double>(mapped_) > config_.most_mapped * static_cast<double>(reserved_ / grain_);
    std::optional<Edit> best;
    Edit edit;
    // Less than the price of a new view: what an edit takes out of a view will be missed there, and cost another edit.
    Bytes limit = (kReserveCost + round_up(site.bytes, grain_) / grain_ * kMapCost) * 3 / 4;
    if (crowded) limit *= 5;
    for (auto view = site.pool.views.begin(); view != site.pool.views.end() && limit > 0; ++view) {
        if (view->live_bytes != 0 || view->fixed()) continue;
        if (view->slots_for(site.bytes, grain_) > view->reserved / grain_) continue;
        edit.view = view;
        if (!plan_edit(site, reach, limit, edit)) continue;
        if (edit.cost > 0 && !timelines_.passed(view->used)) {
            timelines_.ask_for(view->used);  // so that it can be edited another time
            continue;
        }
        limit = edit.cost;
        best = edit;
    }
    return best;
}

std::optional<MovieAllocator::Placement> MovieAllocator::apply(const Site& site, const Reach& reach, const Edit& edit) {
    View& view = *edit.view;
    if (edit.gaps.empty()) return reuse(site, view);
    // Pages that the view has already stay where they are; only the smallest fill a gap of any length.
    FreePages free = free_pages(site, reach);
    exclude(free, view.slots);
    keep_smallest(free);
    const auto chosen = choose(free, edit.grains);
    if (!chosen) return std::nullopt;
    std::vector<Address> fresh;
    for (const PageRun& run : *chosen)
        for (std::uint32_t i = 0; i < run.grains; ++i) fresh.push_back(run.begin + i * grain_);

    const View before = view;
    std::optional<Placement> placement;
    {
        Transaction transaction(driver_, debris_);
        if (replace(transaction, site, edit, fresh)) placement = occupy(site, view, view.head);
        if (placement) transaction.commit();
    }
    if (!placement) {
        view.slots = before.slots;
        return std::nullopt;
    }
    for (const Gap& gap : edit.gaps) {
        count_mapped(before, gap.first, gap.behind, -1);
        count_mapped(view, gap.first, gap.behind, 1);
    }
    ++view_counters_.edited;
    history_.add({.kind = HistoryEvent::Kind::edit,
                  .address = placement->address,
                  .size = fresh.size() * grain_,
                  .stream = timelines_.stream_of(site.timeline),
                  .pool = site.pool.id});
    return placement;
}

bool MovieAllocator::replace(Transaction& transaction, const Site& site, const Edit& edit,
                             const std::vector<Address>& fresh) {
    View& view = *edit.view;
    const std::size_t begin = view.first_slot(grain_);
    const std::size_t end = view.slots_for(site.bytes, grain_);
    view.slots.resize(std::max(view.slots.size(), end), 0);
    auto next = fresh.begin();
    for (const Gap& gap : edit.gaps) {
        // One call for each range of complete mappings.
        std::vector<Mapped> old;
        Bytes size = 0;
        for (std::size_t slot = gap.first; slot <= gap.behind; ++slot) {
            if (slot < gap.behind && view.slots[slot] != 0) {
                const Address page = view.slots[slot];
                if (table_.floor(page) == page) old.push_back({table_.handle(page), table_.size(page)});
                size += grain_;
                view.slots[slot] = 0;
            } else if (!old.empty()) {
                if (transaction.unmap(view.base + slot * grain_ - size, old) != Status::ok) return false;
                old.clear();
                size = 0;
            }
        }
        const std::size_t first = std::max(gap.first, begin);
        const std::size_t behind = std::min(gap.behind, end);
        for (std::size_t slot = first; slot < behind; ++slot, ++next) {
            if (transaction.map(view.base + slot * grain_, grain_, table_.handle(*next)) != Status::ok) return false;
            view.slots[slot] = *next;
        }
        if (transaction.set_access(view.base + first * grain_, (behind - first) * grain_) != Status::ok) return false;
    }
    return true;
}

void MovieAllocator::count_mapped(const View& view, std::size_t first, std::size_t behind, std::int64_t change) {
    for (std::size_t slot = first; slot < std::min(behind, view.slots.size()); ++slot) {
        const Address page = view.slots[slot];
        if (page == 0) continue;
        mapped_ += static_cast<std::uint64_t>(change);
        if (table_.floor(page) == page) table_.at(page).views += static_cast<std::uint32_t>(change);
    }
}

void MovieAllocator::exclude(FreePages& free, std::vector<Address> slots) const {
    std::sort(slots.begin(), slots.end());
    std::vector<PageRun> left;
    for (PageRun run : free.runs) {
        const Address end = run.begin + run.grains * grain_;
        for (auto slot = std::lower_bound(slots.begin(), slots.end(), run.begin); slot != slots.end() && *slot < end;
             ++slot) {
            PageRun before = run;
            before.grains = static_cast<std::uint32_t>((*slot - run.begin) / grain_);
            if (before.grains > 0) left.push_back(before);
            run.begin = *slot + grain_;
            --free.grains;
        }
        run.grains = static_cast<std::uint32_t>((end - run.begin) / grain_);
        if (run.grains > 0) left.push_back(run);
    }
    free.runs = std::move(left);
}

void MovieAllocator::keep_smallest(FreePages& free) {
    if (config_.largest_page == grain_) return;
    std::vector<PageRun> small;
    free.grains = 0;
    for (const PageRun& run : free.runs) {
        const Address end = run.begin + run.grains * grain_;
        bool open = false;  // the last run goes on
        for (Address page = run.begin; page < end; page += table_.size(page)) {
            const bool smallest = table_.at(page).grains == 1;
            if (smallest && !open) {
                small.push_back(run);
                small.back().begin = page;
                small.back().grains = 0;
            }
            if (smallest) {
                ++small.back().grains;
                ++free.grains;
            }
            open = smallest;
        }
    }
    free.runs = std::move(small);
}

// --- making a view ---------------------------------------------------------------------------------------------------

std::optional<MovieAllocator::Placement> MovieAllocator::stitch(const Site& site, const Reach& reach) {
    if (site.bytes <= kMostSmall && !reach.lend) return std::nullopt;  // not worth a view
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

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
        const auto pages = static_cast<std::uint32_t>(size / page_);
        free.pages += pages;
        if (!free.runs.empty()) {
            PageRun& last = free.runs.back();
            if (last.begin + last.pages * page_ == begin && last.wait == wait && last.pool == &from) {
                last.pages += pages;
                return;
            }
        }
        free.runs.push_back({.begin = begin, .pages = pages, .wait = wait, .arena = arena, .pool = &from});
    };
    for (auto group = extents.begin(); group != extents.end();) {
        // Extents that touch; a page may lie in several of them.
        const ArenaId arena = group->second.arena;
        const Address begin = group->first;
        Address end = begin;
        Address at = table_.ceil(begin);  // the next page
        std::uint32_t wait_of_page = 0;   // for the part of it that lies in extents already seen
        auto extent = group;
        const bool usable = &from != &site.pool || from.space.owner(arena) == site.timeline || config_.cross_stream;
        for (; extent != extents.end() && (extent == group || extent->first == end); ++extent) {
            end = extent->second.end;
            if (!usable || end <= at) continue;
            const std::uint32_t wait = likely_wait(site.timeline, extent->second.fence);
            if (extent->first > at) {
                wait_of_page = std::max(wait_of_page, wait);
                if (end < at + page_) continue;
                emit(at, page_, wait_of_page, arena);
                at += page_;
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
            const Address first = table_.ceil(begin);
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
    const Bytes rest = bytes % page_;
    const std::uint64_t whole = bytes / page_;
    // The smallest odd end, or pair of odd ends, that holds what is asked for.
    const auto with_odd_ends = [&](Bytes wanted, std::uint64_t pages) -> std::optional<Recipe> {
        std::vector<const OddEnd*> heads;
        std::vector<const OddEnd*> tails;
        const OddEnd* single = nullptr;
        for (const OddEnd& odd : free.odd) {
            (odd.head ? heads : tails).push_back(&odd);
            if (odd.size() >= wanted && (single == nullptr || odd.size() < single->size())) single = &odd;
        }
        if (single != nullptr && single->head) return Recipe{pages, single, nullptr, wanted};
        if (single != nullptr) return Recipe{pages, nullptr, single, 0};
        const auto by_size = [](const OddEnd* a, const OddEnd* b) { return a->size() < b->size(); };
        std::sort(heads.begin(), heads.end(), by_size);
        std::sort(tails.begin(), tails.end(), by_size);
        std::optional<Recipe> best;
        Bytes least = 0;
        auto tail = tails.rbegin();
        for (const OddEnd* head : heads) {
            while (tail != tails.rend() && std::next(tail) != tails.rend() &&
                   head->size() + (*std::next(tail))->size() >= wanted)
                ++tail;
            if (tail == tails.rend()) break;
            const Bytes sum = head->size() + (*tail)->size();
            if (sum < wanted || (best && sum >= least)) continue;
            best = Recipe{pages, head, *tail, head->size()};
            least = sum;
        }
        return best;
    };
    Recipe recipe{.pages = whole + (rest != 0 ? 1 : 0)};
    if (rest != 0)
        if (const auto odd = with_odd_ends(rest, whole)) recipe = *odd;
    // Where whole pages are short, more of the request may lie in odd ends.
    if (recipe.pages > free.pages && whole > 0)
        if (const auto odd = with_odd_ends(rest + page_, whole - 1)) recipe = *odd;
    return recipe;
}

std::uint64_t MovieAllocator::pages_missing(const Site& site, const Reach& reach) {
    const FreePages free = free_pages(site, reach);
    const std::uint64_t need = recipe_for(free, site.bytes).pages;
    return need - std::min(need, free.pages);
}

std::optional<std::vector<MovieAllocator::PageRun>> MovieAllocator::choose(const FreePages& free, std::uint64_t pages) {
    std::vector<PageRun> chosen;
    if (pages == 0) return chosen;
    if (free.pages < pages) return std::nullopt;
    std::vector<Part> parts;
    parts.reserve(free.runs.size());
    for (const PageRun& run : free.runs) {
        // How many views lose pages is estimated from the ends of the run.
        const Address last = run.begin + (run.pages - 1) * page_;
        parts.push_back({.pages = run.pages,
                         .wait = run.wait,
                         .breaks = std::max(table_.at(run.begin).views, table_.at(last).views)});
    }
    const auto choice = combine(parts, static_cast<std::uint32_t>(pages), config_.combiner);
    if (!choice) return std::nullopt;
    for (const Taken& taken : *choice) {
        chosen.push_back(free.runs[taken.part]);
        chosen.back().pages = taken.pages;
    }
    return chosen;
}

// --- taking what a view needs ----------------------------------------------------------------------------------------

std::optional<MovieAllocator::Placement> MovieAllocator::occupy(const Site& site, View& view, Bytes head) {
    Placement placement{.address = view.base + head, .view = &view};
    Fence fence;
    for (const HomeRange& range : home_ranges(view, head, site.bytes, page_)) {
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
    if (capturing_ > 0 || timelines_.wait_on_device(site.timeline, fence) != Status::ok) return false;
    for (const auto& pool : pools_) pool->space.refresh();
    return true;
}

bool MovieAllocator::is_ready(const Site& site, const View& view, bool may_wait) const {
    // Where a step back is still owed, what a view maps is not sure.
    if (view.live_bytes != 0 || view.pages.size() < view.slots_for(site.bytes, page_)) return false;
    if (debris_.blocks_addresses()) return false;
    const auto stream = may_wait ? std::nullopt : std::optional(site.timeline);
    Bytes covered = 0;
    for (const HomeRange& range : home_ranges(view, view.head, site.bytes, page_)) {
        if (!site.pool.space.covers(range.begin, range.end, stream)) return false;
        covered += range.end - range.begin;
    }
    return covered == site.bytes;
}

std::optional<MovieAllocator::Placement> MovieAllocator::ready_view(const Site& site, const Reach& reach) {
    if (!config_.keep_views) return std::nullopt;
    View* best = nullptr;
    for (View& view : site.pool.views) {
        if (view.pages.empty() || view.pages[0] == 0) continue;
        if (best != nullptr && view.pages.size() >= best->pages.size()) continue;
        if (!site.pool.space.contains(view.pages[0] + view.head)) continue;  // most are sorted out here, cheaply
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

std::optional<MovieAllocator::Edit> MovieAllocator::cheapest_edit(const Site& site, const Reach& reach) {
    if (!config_.edit_views || !config_.keep_views || capturing_ > 0 || debris_.blocks_addresses()) return std::nullopt;
    const auto stream = reach.wait ? std::nullopt : std::optional(site.timeline);
    const bool crowded = static_cast<double>(mapped_) > config_.most_mapped * static_cast<double>(reserved_ / page_);
    auto best = site.pool.views.end();
    Bytes limit = kReserveCost + round_up(site.bytes, page_) / page_ * kMapCost;
    if (crowded) limit *= 4;
    const auto needs_another = [&](const View& view, std::size_t slot) {
        if (slot >= view.pages.size() || view.pages[slot] == 0) return true;
        const Address begin = view.pages[slot] + (slot == 0 ? view.head : 0);
        const Address end = view.pages[slot] + std::min(page_, view.head + site.bytes - slot * page_);
        return !site.pool.space.covers(begin, end, stream);
    };
    for (auto view = site.pool.views.begin(); view != site.pool.views.end(); ++view) {
        if (view->live_bytes != 0 || view->fixed()) continue;
        const std::size_t slots = view->slots_for(site.bytes, page_);
        if (slots > view->reserved / page_) continue;
        if (view->pages.size() > 2 * slots) continue;  // it would be lost to the requests that it was made for
        Bytes cost = 0;
        for (std::size_t slot = 0; slot < slots && cost < limit; ++slot)
            if (needs_another(*view, slot))
                cost += kMapCost + (slot < view->pages.size() && view->pages[slot] != 0 ? kUnmapCost : 0);
        if (cost >= limit) continue;
        if (cost > 0 && !timelines_.passed(view->used)) {
            timelines_.ask_for(view->used);  // so that it can be edited another time
            continue;
        }
        limit = cost;
        best = view;
        if (limit == 0) break;
    }
    if (best == site.pool.views.end()) return std::nullopt;
    Edit edit{.view = best};
    for (std::size_t slot = 0; slot < best->slots_for(site.bytes, page_); ++slot)
        if (needs_another(*best, slot)) edit.changed.push_back(slot);
    return edit;
}

std::optional<MovieAllocator::Placement> MovieAllocator::apply(const Site& site, const Reach& reach, const Edit& edit) {
    View& view = *edit.view;
    if (edit.changed.empty()) return reuse(site, view);
    // Pages that the view has already stay where they are.
    FreePages free = free_pages(site, reach);
    exclude(free, view.pages);
    const auto chosen = choose(free, edit.changed.size());
    if (!chosen) return std::nullopt;
    std::vector<Address> fresh;
    for (const PageRun& run : *chosen)
        for (std::uint32_t i = 0; i < run.pages; ++i) fresh.push_back(run.begin + i * page_);

    const std::vector<Address> before = view.pages;
    std::optional<Placement> placement;
    {
        Transaction transaction(driver_, debris_);
        if (replace(transaction, view, edit.changed, fresh)) placement = occupy(site, view, view.head);
        if (placement) transaction.commit();
    }
    if (!placement) {
        view.pages = before;
        return std::nullopt;
    }
    for (std::size_t i = 0; i < edit.changed.size(); ++i) {
        const std::size_t slot = edit.changed[i];
        if (slot < before.size() && before[slot] != 0) {
            --table_.at(before[slot]).views;
            --mapped_;
        }
        ++table_.at(fresh[i]).views;
        ++mapped_;
    }
    ++view_counters_.edited;
    history_.add({.kind = HistoryEvent::Kind::edit,
                  .address = placement->address,
                  .size = fresh.size() * page_,
                  .stream = timelines_.stream_of(site.timeline),
                  .pool = site.pool.id});
    return placement;
}

bool MovieAllocator::replace(Transaction& transaction, View& view, const std::vector<std::size_t>& slots,
                             const std::vector<Address>& fresh) {
    if (slots.back() >= view.pages.size()) view.pages.resize(slots.back() + 1, 0);
    for (std::size_t first = 0, behind = 0; first < slots.size(); first = behind) {
        while (behind < slots.size() && slots[behind] == slots[first] + (behind - first)) ++behind;
        // One call for each range of complete mappings.
        std::vector<Handle> old;
        for (std::size_t i = first; i <= behind; ++i) {
            const bool mapped = i < behind && view.pages[slots[i]] != 0;
            if (mapped) {
                old.push_back(table_.handle(view.pages[slots[i]]));
            } else if (!old.empty()) {
                const Address at = view.base + (slots[first] + (i - first) - old.size()) * page_;
                if (transaction.unmap(at, page_, old) != Status::ok) return false;
                old.clear();
            }
        }
        for (std::size_t i = first; i < behind; ++i) {
            if (transaction.map(view.base + slots[i] * page_, page_, table_.handle(fresh[i])) != Status::ok)
                return false;
            view.pages[slots[i]] = fresh[i];
        }
        if (transaction.set_access(view.base + slots[first] * page_, (behind - first) * page_) != Status::ok)
            return false;
    }
    return true;
}

void MovieAllocator::exclude(FreePages& free, std::vector<Address> pages) const {
    std::sort(pages.begin(), pages.end());
    std::vector<PageRun> left;
    for (PageRun run : free.runs) {
        const Address end = run.begin + run.pages * page_;
        for (auto page = std::lower_bound(pages.begin(), pages.end(), run.begin); page != pages.end() && *page < end;
             ++page) {
            PageRun before = run;
            before.pages = static_cast<std::uint32_t>((*page - run.begin) / page_);
            if (before.pages > 0) left.push_back(before);
            run.begin = *page + page_;
            --free.pages;
        }
        run.pages = static_cast<std::uint32_t>((end - run.begin) / page_);
        if (run.pages > 0) left.push_back(run);
    }
    free.runs = std::move(left);
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
    const auto chosen = choose(free, recipe.pages);
    if (!chosen) return std::nullopt;
    const bool whole_pages = recipe.head == nullptr && recipe.tail == nullptr;
    if (chosen->size() == 1 && whole_pages) {  // one range needs no view
        const PageRun& run = chosen->front();
        const Bytes size = run.pool == &site.pool ? site.bytes : run.pages * page_;
        if (!wait_and_take(site, run.begin, run.begin + size, *run.pool)) return std::nullopt;
        return Placement{.address = run.begin, .pieces = {{run.begin, run.begin + size, run.arena, run.pool}}};
    }

    View view;
    if (recipe.head != nullptr) {
        view.head = page_ - recipe.head_bytes;
        view.pages.push_back(table_.floor(recipe.head->begin));
    }
    for (const PageRun& run : *chosen)
        for (std::uint32_t i = 0; i < run.pages; ++i) view.pages.push_back(run.begin + i * page_);
    if (recipe.tail != nullptr) view.pages.push_back(recipe.tail->begin);
    // Twice the addresses: requests that grow step by step extend the same view.
    view.reserved = 2 * view.pages.size() * page_;

    std::optional<Placement> placement;
    auto placed = site.pool.views.end();
    {
        Transaction transaction(driver_, debris_, capturing_ == 0);
        const auto range = transaction.reserve(view.reserved);
        if (!range.ok()) return std::nullopt;
        view.base = range.value;
        for (std::size_t slot = 0; slot < view.pages.size(); ++slot)
            if (transaction.map(view.base + slot * page_, page_, table_.handle(view.pages[slot])) != Status::ok)
                return std::nullopt;
        if (transaction.set_access(view.base, view.pages.size() * page_) != Status::ok) return std::nullopt;
        site.pool.views.push_back(std::move(view));
        placed = std::prev(site.pool.views.end());
        placement = occupy(site, *placed, placed->head);
        if (placement) transaction.commit();
    }
    if (!placement) {
        site.pool.views.erase(placed);
        return std::nullopt;
    }
    for (const Address page : placed->pages) ++table_.at(page).views;
    mapped_ += placed->pages.size();
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

// Which pages are free, and which of them together hold a request.
#include <algorithm>

#include "allocator/movie_allocator.h"

namespace movie {

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

}  // namespace movie

#include "placement/combine.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>

namespace movie {

namespace {

using Indices = std::vector<std::size_t>;

// Takes the parts in the order given until the need is met; the last is cut.
std::vector<Taken> take_in_order(std::span<const Part> parts, const Indices& order, std::uint32_t need) {
    std::vector<Taken> taken;
    for (const std::size_t index : order) {
        if (need == 0) break;
        const std::uint32_t pages = std::min(need, parts[index].pages);
        taken.push_back({index, pages});
        need -= pages;
    }
    return taken;
}

Indices largest_first(std::span<const Part> parts, Indices order) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return parts[a].pages > parts[b].pages; });
    return order;
}

Indices largest_last(std::span<const Part> parts, Indices order) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return parts[a].pages < parts[b].pages; });
    return order;
}

std::vector<Taken> best_fit_decreasing(std::span<const Part> parts, const Indices& usable, std::uint32_t need) {
    std::multimap<std::uint32_t, std::size_t> by_size;
    for (const std::size_t index : usable) by_size.emplace(parts[index].pages, index);
    std::vector<Taken> taken;
    while (need > 0) {
        auto fit = by_size.lower_bound(need);
        if (fit == by_size.end()) --fit;
        const std::uint32_t pages = std::min(need, fit->first);
        taken.push_back({fit->second, pages});
        need -= pages;
        by_size.erase(fit);
    }
    return taken;
}

// The fewest parts that reach `need` are p of the largest; no p - 1 parts do, so with p parts the excess is smaller
// than each of them, and any may be the one that is cut. What is left to choose is the least total of p parts that is
// at least `need`: a bounded knapsack over distinct sizes in which every total knows its fewest (pieces, breaks).
class Knapsack {
  public:
    // `known`: any choice with the fewest pieces; it bounds the totals worth looking at.
    Knapsack(std::span<const Part> parts, const Indices& usable, std::uint32_t need, const std::vector<Taken>& known);
    // Nothing where the grain hides every choice as good as the known one.
    std::optional<std::vector<Taken>> solve();

  private:
    struct Item {
        std::uint32_t size = 0;  // in grains, of all its members together
        std::int32_t cost = 0;
        std::size_t first = 0, count = 0;  // its members in order_
    };
    // Pieces weigh more than any number of breaks.
    static constexpr std::int32_t kPiece = 1 << 14;
    static constexpr std::int32_t kMostBreaks = kPiece - 1;
    static constexpr std::int32_t kUnreached = std::numeric_limits<std::int32_t>::max() / 2;
    // Steps of the inner loop that take about as long as mapping a few pages.
    static constexpr std::size_t kMostSteps = 160'000;

    void add_class(std::size_t begin, std::size_t end, std::uint32_t most);
    void choose_grain();

    std::span<const Part> parts_;
    Indices order_;
    std::uint32_t need_, pieces_, excess_;
    std::uint32_t grain_ = 1;
    std::uint32_t target_ = 0, limit_ = 0;  // totals of interest: target_ ... limit_, in grains
    std::vector<Item> items_;
};

Knapsack::Knapsack(std::span<const Part> parts, const Indices& usable, std::uint32_t need,
                   const std::vector<Taken>& known)
    : parts_(parts),
      order_(usable),
      need_(need),
      pieces_(static_cast<std::uint32_t>(known.size())),
      excess_(cost_of(parts, known).remnant) {
    // Classes of equal size, the least breaking members first: of a class the first few are always a best choice.
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
        return std::tie(parts_[b].pages, parts_[a].breaks, a) < std::tie(parts_[a].pages, parts_[b].breaks, b);
    });
}

void Knapsack::add_class(std::size_t begin, std::size_t end, std::uint32_t most) {
    const std::uint32_t size = parts_[order_[begin]].pages / grain_;
    if (size == 0) return;
    const std::size_t members = std::min<std::size_t>(end - begin, most);
    // Members differ in breaks, and the first of them come first in any best choice, so each is an item of its own
    // unless they are all alike; those go in powers of two.
    const bool alike = parts_[order_[begin]].breaks == parts_[order_[begin + members - 1]].breaks;
    for (std::size_t at = begin, step = 1; at < begin + members; at += step, step = alike ? step * 2 : 1) {
        step = std::min(step, begin + members - at);
        const auto breaks = static_cast<std::int32_t>(std::min<std::uint32_t>(parts_[order_[at]].breaks, 255));
        items_.push_back({.size = size * static_cast<std::uint32_t>(step),
                          .cost = (kPiece + std::min(breaks, kMostBreaks)) * static_cast<std::int32_t>(step),
                          .first = at,
                          .count = step});
    }
}

void Knapsack::choose_grain() {
    for (grain_ = 1;; grain_ *= 2) {
        items_.clear();
        target_ = (need_ + grain_ - 1) / grain_;
        limit_ = target_ + excess_ / grain_;
        for (std::size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
            while (end < order_.size() && parts_[order_[end]].pages == parts_[order_[begin]].pages) ++end;
            add_class(begin, end, pieces_);
        }
        if (items_.size() * (limit_ + 1) <= kMostSteps || grain_ >= need_) return;
    }
}

std::optional<std::vector<Taken>> Knapsack::solve() {
    choose_grain();
    const std::size_t width = limit_ + 1;
    // Row i: the least cost of each total with the first i items. All rows are kept, to walk back along them; the
    // memory is kept too, since fresh pages would cost as much as the search.
    static thread_local std::vector<std::int32_t> rows;
    rows.assign((items_.size() + 1) * width, kUnreached);
    rows[0] = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
        const std::size_t size = std::min<std::size_t>(items_[i].size, width);
        const std::int32_t cost = items_[i].cost;
        const std::int32_t* __restrict from = rows.data() + i * width;
        std::int32_t* __restrict to = rows.data() + (i + 1) * width;
        std::copy(from, from + size, to);
        for (std::size_t w = size; w < width; ++w) to[w] = std::min(from[w], from[w - size] + cost);
    }
    const std::int32_t* const best = rows.data() + items_.size() * width;
    std::size_t at = target_;
    while (at < width && best[at] / kPiece > static_cast<std::int32_t>(pieces_)) ++at;
    if (at == width) return std::nullopt;

    Indices chosen;
    for (std::size_t i = items_.size(); i-- > 0;) {
        if (rows[(i + 1) * width + at] == rows[i * width + at]) continue;
        for (std::size_t k = 0; k < items_[i].count; ++k) chosen.push_back(order_[items_[i].first + k]);
        at -= items_[i].size;
    }
    return take_in_order(parts_, largest_last(parts_, std::move(chosen)), need_);
}

}  // namespace

Combiner combiner_named(std::string_view name) {
    if (name == "dynamic") return Combiner::dynamic;
    if (name == "greedy") return Combiner::greedy;
    if (name == "best-fit-decreasing") return Combiner::best_fit_decreasing;
    throw std::invalid_argument("unknown combiner '" + std::string(name) +
                                "' (known: dynamic, greedy, best-fit-decreasing)");
}

std::optional<std::vector<Taken>> combine(std::span<const Part> parts, std::uint32_t need, Combiner combiner) {
    // The shortest wait that is enough.
    Indices usable(parts.size());
    std::iota(usable.begin(), usable.end(), std::size_t{0});
    std::stable_sort(usable.begin(), usable.end(),
                     [&](std::size_t a, std::size_t b) { return parts[a].wait < parts[b].wait; });
    std::uint64_t pages = 0;
    std::size_t enough = 0;
    while (enough < usable.size() && pages < need) pages += parts[usable[enough++]].pages;
    if (pages < need) return std::nullopt;
    while (enough < usable.size() && parts[usable[enough]].wait == parts[usable[enough - 1]].wait) ++enough;
    usable.resize(enough);

    const auto greedy = [&] { return take_in_order(parts, largest_first(parts, usable), need); };
    if (combiner == Combiner::greedy) return greedy();
    std::vector<Taken> best = best_fit_decreasing(parts, usable, need);
    if (combiner == Combiner::best_fit_decreasing) return best;
    if (std::vector<Taken> largest = greedy(); cost_of(parts, largest) < cost_of(parts, best))
        best = std::move(largest);
    auto solved = Knapsack(parts, usable, need, best).solve();
    return solved ? std::move(*solved) : best;
}

ChoiceCost cost_of(std::span<const Part> parts, std::span<const Taken> choice) {
    ChoiceCost cost;
    for (const Taken& taken : choice) {
        const Part& part = parts[taken.part];
        cost.longest_wait = std::max(cost.longest_wait, part.wait);
        ++cost.pieces;
        cost.remnant += part.pages - taken.pages;
        cost.breaks += part.breaks;
    }
    return cost;
}

}  // namespace movie

// Which free extents together hold a request that no single one holds.
//
// The parts are whole pages; of the last one taken any number of pages may be left over. A choice is better if, in this
// order, its longest wait is shorter, it has fewer pieces, fewer pages are left of the extent that is cut, and fewer
// cached views lose pages.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace movie {

// The whole pages of one free extent.
struct Part {
    std::uint32_t pages = 0;
    std::uint32_t wait = 0;    // how long the request would have to wait for it, in any unit; 0 = not at all
    std::uint32_t breaks = 0;  // cached views that lose pages if it is taken
};

struct Taken {
    std::size_t part = 0;     // index into the parts
    std::uint32_t pages = 0;  // at most those of the part; less only for the last
};

enum class Combiner : std::uint8_t {
    dynamic,              // dynamic programming: the best choice in the order above
    greedy,               // the largest extents first (as GMLake does)
    best_fit_decreasing,  // the smallest extent that holds what is still missing, else the largest
};

// Throws std::invalid_argument for an unknown name ("dynamic", "greedy", "best-fit-decreasing").
Combiner combiner_named(std::string_view name);

// Nothing if all parts together have fewer than `need` pages. Pre: need > 0. Time O(distinct sizes x pages), with pages
// coarsened above about a thousand, so that choosing stays cheaper than mapping a few pages; choices are then best up
// to that grain, never wrong.
std::optional<std::vector<Taken>> combine(std::span<const Part> parts, std::uint32_t need, Combiner combiner);

// The figures by which choices are compared, in order.
struct ChoiceCost {
    std::uint32_t longest_wait = 0, pieces = 0, remnant = 0, breaks = 0;
    auto operator<=>(const ChoiceCost&) const = default;
};
ChoiceCost cost_of(std::span<const Part> parts, std::span<const Taken> choice);

}  // namespace movie

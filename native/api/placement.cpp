#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <ctime>
#include <tuple>

#include "api/bindings.h"
#include "placement/combine.h"

namespace nb = nanobind;

namespace movie {

namespace {

using PartTuple = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

std::vector<Part> parts_of(const std::vector<PartTuple>& tuples) {
    std::vector<Part> parts;
    for (const auto& [pages, wait, breaks] : tuples) parts.push_back({.pages = pages, .wait = wait, .breaks = breaks});
    return parts;
}

double thread_microseconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

}  // namespace

void bind_placement(nb::module_& m) {
    m.def(
        "combine",
        [](const std::vector<PartTuple>& tuples, std::uint32_t need, std::string_view combiner) {
            const std::vector<Part> parts = parts_of(tuples);
            std::optional<std::vector<std::pair<std::size_t, std::uint32_t>>> result;
            if (const auto choice = combine(parts, need, combiner_named(combiner))) {
                result.emplace();
                for (const Taken& taken : *choice) result->emplace_back(taken.part, taken.pages);
            }
            return result;
        },
        nb::arg("parts"), nb::arg("need"), nb::arg("combiner") = "dynamic",
        "Which parts (pages, wait, breaks) hold `need` pages: (index, pages) pairs, the last one perhaps cut; None if "
        "all "
        "together are too few.");
    m.def(
        "choice_cost",
        [](const std::vector<PartTuple>& tuples, const std::vector<std::pair<std::size_t, std::uint32_t>>& choice) {
            const std::vector<Part> parts = parts_of(tuples);
            std::vector<Taken> taken;
            for (const auto& [part, pages] : choice) taken.push_back({part, pages});
            const ChoiceCost cost = cost_of(parts, taken);
            return std::make_tuple(cost.longest_wait, cost.pieces, cost.remnant, cost.breaks);
        },
        nb::arg("parts"), nb::arg("choice"), "(longest wait, pieces, pages left of the cut extent, views broken).");
    m.def(
        "time_combine",
        [](const std::vector<PartTuple>& tuples, std::uint32_t need, std::string_view combiner) {
            const std::vector<Part> parts = parts_of(tuples);
            const Combiner chosen = combiner_named(combiner);
            const double begin = thread_microseconds();
            (void)combine(parts, need, chosen);
            return thread_microseconds() - begin;
        },
        nb::arg("parts"), nb::arg("need"), nb::arg("combiner") = "dynamic",
        "Microseconds of processor time that combine() takes.");
}

}  // namespace movie

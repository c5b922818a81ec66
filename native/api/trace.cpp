#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string_view>

#include "api/bindings.h"
#include "trace/json_scan.h"
#include "trace/pickle_scan.h"

namespace nb = nanobind;

namespace movie {
namespace {

// The bytes stay where they are, and other Python threads run meanwhile: a bytes object does not change.
template <Scan (*scan)(std::string_view, const ScanLimits&)>
Scan scan_bytes(const nb::bytes& data, std::size_t depth, std::size_t items, std::size_t bytes_per_container) {
    if (bytes_per_container == 0) throw nb::value_error("bytes_per_container must be positive");
    const std::string_view view(data.c_str(), data.size());
    const nb::gil_scoped_release others_run;
    return scan(view, {.depth = depth, .items = items, .bytes_per_container = bytes_per_container});
}

}  // namespace

void bind_trace(nb::module_& m) {
    nb::class_<Scan>(m, "Scan", "What a scan found; sizes as of where it ended.")
        .def_prop_ro(
            "problem", [](const Scan& self) { return nb::bytes(self.problem.data(), self.problem.size()); },
            "What is wrong, as UTF-8 with whatever the file held in between; empty if nothing is.")
        .def_ro("offset", &Scan::offset, "Of the byte where the problem was seen.")
        .def_ro("items", &Scan::items, "Values seen.")
        .def_ro("containers", &Scan::containers, "Lists, dicts and tuples seen.")
        .def_ro("depth", &Scan::depth, "Containers inside each other, at most.");

    const ScanLimits usual;
    m.def("scan_pickle", &scan_bytes<scan_pickle>, nb::arg("data"), nb::arg("depth") = usual.depth,
          nb::arg("items") = usual.items, nb::arg("bytes_per_container") = usual.bytes_per_container,
          "Whether a pickle is plain data of bounded depth and size, without building any of it.");
    m.def("scan_json", &scan_bytes<scan_json>, nb::arg("data"), nb::arg("depth") = usual.depth,
          nb::arg("items") = usual.items, nb::arg("bytes_per_container") = usual.bytes_per_container,
          "Whether the brackets of a JSON text pair up, and its depth and size are bounded.");
}

}  // namespace movie

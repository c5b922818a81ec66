#include "replay/replay.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "api/bindings.h"
#include "api/columns.h"
#include "api/statistics.h"
#include "replay/catalogue.h"
#include "replay/check_trace.h"
#include "replay/fidelity.h"
#include "replay/floor.h"

namespace nb = nanobind;

namespace movie {
namespace {

// Called from a loop that runs without the GIL: lets signals through and reports progress.
std::function<bool(std::size_t)> progress_caller(nb::object callback) {
    return [callback = std::move(callback)](std::size_t row) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!callback.is_none()) callback(row);
        return true;
    };
}

ReplayResult run(const TraceColumns& trace, const std::string& name, const AllocatorOptions& allocator_options,
                 const ModelOptions& device, bool validate, bool as_seen, bool reclaim,
                 const std::vector<PoolId>& lendable, std::int64_t samples, nb::object progress) {
    ReplayOptions options;
    options.device = device;
    options.validate = validate;
    options.as_seen = as_seen;
    options.reclaim = reclaim;
    options.lendable = lendable;
    options.samples = samples;
    options.progress = progress_caller(std::move(progress));
    const nb::gil_scoped_release no_gil;
    return replay(trace.view, [&](Driver& driver) { return make_allocator(driver, name, allocator_options); }, options);
}

Fidelity check(const TraceColumns& trace, const Column<std::uint64_t>& block_address,
               const Column<std::int64_t>& block_size, const Column<std::uint64_t>& segment_address,
               const Column<std::int64_t>& segment_size, const Column<std::int64_t>& segment_stream,
               const Column<std::int64_t>& segment_pool, const Column<bool>& segment_small,
               const AllocatorOptions& options) {
    const RecordedState state{.block_address = span_of(block_address),
                              .block_size = span_of(block_size),
                              .segment_address = span_of(segment_address),
                              .segment_size = span_of(segment_size),
                              .segment_stream = span_of(segment_stream),
                              .segment_pool = span_of(segment_pool),
                              .segment_small = span_of(segment_small)};
    const NativeSettings settings = native_settings(options);
    const nb::gil_scoped_release no_gil;
    return check_native(trace.view, state, settings);
}

nb::list rows_of(const std::vector<TimelineSample>& timeline) {
    nb::list rows;
    for (const TimelineSample& sample : timeline)
        rows.append(nb::make_tuple(sample.row, sample.requested, sample.reserved));
    return rows;
}

}  // namespace

void bind_replay(nb::module_& m) {
    nb::class_<TraceColumns>(m, "TraceColumns",
                             "The columns of a trace, kept without a copy: one-dimensional contiguous numpy arrays.")
        .def(nb::init<Column<std::uint8_t>, Column<std::int64_t>, Column<std::int64_t>, Column<std::int64_t>,
                      Column<std::int64_t>, Column<std::uint64_t>, Column<std::int64_t>, Column<std::int64_t>,
                      Column<std::int64_t>, Column<bool>, std::int64_t, bool>(),
             nb::arg("action").noconvert(), nb::arg("id").noconvert(), nb::arg("bytes").noconvert(),
             nb::arg("stream").noconvert(), nb::arg("pool").noconvert(), nb::arg("address").noconvert(),
             nb::arg("start_bytes").noconvert(), nb::arg("start_stream").noconvert(), nb::arg("start_pool").noconvert(),
             nb::arg("start_pending").noconvert(), nb::arg("ids"), nb::arg("completions_recorded"))
        .def(
            "check", [](const TraceColumns& self) { check_trace(self.view); },
            "Raises ValueError that names the first row which contradicts the others.");

    nb::class_<Floor>(m, "Floor", "The lower bound for a trace and its plain peaks, in bytes.")
        .def_ro("requested", &Floor::requested)
        .def_ro("peak_requested", &Floor::peak_requested)
        .def_ro("peak_allocated", &Floor::peak_allocated)
        .def_ro("row", &Floor::row);
    m.def(
        "floor_of",
        [](const TraceColumns& trace) {
            const nb::gil_scoped_release no_gil;
            check_trace(trace.view);
            return floor_of(trace.view);
        },
        nb::arg("trace"));

    nb::class_<ReplayResult>(m, "ReplayResult", "What an allocator made of a trace. Bytes, rows, modelled seconds.")
        .def_ro("completed", &ReplayResult::completed)
        .def_ro("failed_at", &ReplayResult::failed_at)
        .def_ro("failure", &ReplayResult::failure)
        .def_ro("peak_requested", &ReplayResult::peak_requested)
        .def_ro("peak_reserved", &ReplayResult::peak_reserved)
        .def_ro("end_reserved", &ReplayResult::end_reserved)
        .def_ro("reserved_after_empty_cache", &ReplayResult::reserved_after_empty_cache)
        .def_ro("live_after_empty_cache", &ReplayResult::live_after_empty_cache)
        .def_ro("reserved_at_external", &ReplayResult::reserved_at_external)
        .def_ro("retries", &ReplayResult::retries)
        .def_ro("ledger", &ReplayResult::ledger)
        .def_ro("before_last_quarter", &ReplayResult::before_last_quarter)
        .def_ro("seconds_last_quarter", &ReplayResult::seconds_last_quarter)
        .def_ro("seconds_to_first_peak", &ReplayResult::seconds_to_first_peak)
        .def_ro("stalled_rows", &ReplayResult::stalled_rows)
        .def_ro("main_rows", &ReplayResult::main_rows)
        .def_ro("delayed_rows", &ReplayResult::delayed_rows)
        .def_ro("delayed_rows_last_quarter", &ReplayResult::delayed_rows_last_quarter)
        .def_ro("host_ns_per_event", &ReplayResult::host_ns_per_event)
        .def_prop_ro("views", [](const ReplayResult& self) { return to_dict(self.views); })
        .def_prop_ro("views_last_quarter", [](const ReplayResult& self) { return to_dict(self.views_last_quarter); })
        .def_prop_ro("unusable_at_peak", [](const ReplayResult& self) { return to_dict(self.unusable_at_peak); })
        .def_prop_ro(
            "timeline", [](const ReplayResult& self) { return rows_of(self.timeline); },
            "Tuples (row, requested, reserved): the highest values since the tuple before.");
    m.def("replay", &run, nb::arg("trace"), nb::arg("allocator"), nb::arg("options") = AllocatorOptions{},
          nb::arg("device") = ModelOptions{}, nb::kw_only(), nb::arg("validate") = true, nb::arg("as_seen") = false,
          nb::arg("reclaim") = true, nb::arg("lendable") = std::vector<PoolId>{}, nb::arg("samples") = 0,
          nb::arg("progress") = nb::none(),
          "A trace through an allocator of the catalogue on a model device. The GIL is released; `progress` is called\n"
          "with the row every few thousand rows and may raise to stop. Raises ValueError for columns that contradict\n"
          "each other and for unknown allocators or options.");

    nb::class_<Fidelity>(m, "Fidelity", "How a recording of PyTorch's native allocator differs from the model of it.")
        .def_prop_ro("allocations", [](const Fidelity& self) { return self.counts.allocations; })
        .def_prop_ro("wrong_addresses", [](const Fidelity& self) { return self.counts.wrong_addresses; })
        .def_prop_ro("segments", [](const Fidelity& self) { return self.counts.segments; })
        .def_prop_ro("unexpected_segments", [](const Fidelity& self) { return self.counts.unexpected_segments; })
        .def_prop_ro("missing_segments", [](const Fidelity& self) { return self.counts.missing_segments; })
        .def_prop_ro("wrong_segment_sizes", [](const Fidelity& self) { return self.counts.wrong_segment_sizes; })
        .def_prop_ro("lost", [](const Fidelity& self) { return self.counts.lost; })
        .def_prop_ro("mistakes", [](const Fidelity& self) { return self.counts.mistakes(); })
        .def_ro("first_wrong_row", &Fidelity::first_wrong_row)
        .def_ro("resized_start_blocks", &Fidelity::resized_start_blocks);
    m.def(
        "check_native", &check, nb::arg("trace"), nb::arg("block_address").noconvert(),
        nb::arg("block_size").noconvert(), nb::arg("segment_address").noconvert(), nb::arg("segment_size").noconvert(),
        nb::arg("segment_stream").noconvert(), nb::arg("segment_pool").noconvert(),
        nb::arg("segment_small").noconvert(), nb::arg("options") = AllocatorOptions{},
        "Follows a recording and compares every address and segment with the choice of `native` under these options.\n"
        "Start blocks and segments in the order of their addresses. The GIL is released.");
}

}  // namespace movie

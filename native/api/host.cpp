// The host device and the soak that runs on it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "api/bindings.h"
#include "api/statistics.h"
#include "driver/host/host_device.h"
#include "replay/soak/soak.h"

namespace nb = nanobind;

namespace movie {

void bind_host(nb::module_& m) {
    nb::class_<HostOptions>(
        m, "HostOptions",
        "How large a host device is and how late its streams are. Sizes in bytes; lag in ticks, one for each "
        "piece of work that is queued (-1: work is done only when the host waits for it).")
        .def(nb::init<>())
        .def_rw("capacity", &HostOptions::capacity)
        .def_rw("granularity", &HostOptions::granularity)
        .def_rw("costs", &HostOptions::costs)
        .def_rw("address_space", &HostOptions::address_space)
        .def_rw("most_areas", &HostOptions::most_areas, "Memory areas it may make; 0: what vm.max_map_count leaves.")
        .def_prop_rw(
            "lag", [](const HostOptions& self) { return self.streams.lag; },
            [](HostOptions& self, std::int64_t lag) { self.streams.lag = lag; })
        .def_prop_rw(
            "seed", [](const HostOptions& self) { return self.streams.seed; },
            [](HostOptions& self, std::uint64_t seed) { self.streams.seed = seed; },
            "0: all work lags alike; else each stream between 0 and twice the lag, drawn anew now and then.")
        .def_prop_rw(
            "lockstep", [](const HostOptions& self) { return self.streams.lockstep; },
            [](HostOptions& self, bool lockstep) { self.streams.lockstep = lockstep; },
            "What is due is done before the host goes on, so that a run can be repeated.");

    nb::class_<HostReport>(m, "HostReport", "What queued work of a host device saw.")
        .def_ro("checks", &HostReport::checks, "Ranges whose bytes were compared.")
        .def_ro("bytes_checked", &HostReport::bytes_checked, "Length of these ranges.")
        .def_ro("mismatches", &HostReport::mismatches)
        .def_ro("illegal_accesses", &HostReport::illegal_accesses, "Work on ranges that were not mapped when it ran.")
        .def_ro("first_problem", &HostReport::first_problem);

    nb::class_<HostDevice, Driver>(
        m, "HostDevice",
        "A device made of this machine's memory: real pages, real aliases, real bytes; its streams are "
        "threads that do queued work late.")
        .def(nb::init<const HostOptions&>(), nb::arg("options") = HostOptions{})
        .def("fill", &HostDevice::fill, nb::arg("stream"), nb::arg("address"), nb::arg("size"), nb::arg("pattern"),
             nb::arg("stride") = 512, nb::call_guard<nb::gil_scoped_release>(),
             "Queues work that writes a pattern: a word in each 512 bytes near the ends, one each stride between.")
        .def("check", &HostDevice::check, nb::arg("stream"), nb::arg("address"), nb::arg("size"), nb::arg("pattern"),
             nb::arg("stride") = 512, nb::call_guard<nb::gil_scoped_release>(),
             "Queues work that looks for the pattern; report() tells what it found.")
        .def("copy", &HostDevice::copy, nb::arg("stream"), nb::arg("to"), nb::arg("source"), nb::arg("size"),
             nb::call_guard<nb::gil_scoped_release>(), "Queues work that copies bytes.")
        .def("order_behind", &HostDevice::order_behind, nb::arg("stream"), nb::arg("other"),
             "The program's own ordering: later work of the stream comes after what the other has queued so far.")
        .def("advance", &HostDevice::advance, nb::arg("ticks") = 1, nb::call_guard<nb::gil_scoped_release>(),
             "Time passes without new work.")
        .def("report", &HostDevice::report)
        .def_prop_ro("areas", &HostDevice::areas, "Memory areas that its mappings and reservations take.")
        .def_prop_ro("most_areas", &HostDevice::most_areas)
        .def_prop_ro("last_problem", &HostDevice::last_problem,
                     "Why the system last refused something, and what to do about it; empty if it never did.")
        .def_prop_ro("mappings", &HostDevice::mappings)
        .def_prop_ro("handles", &HostDevice::handles)
        .def_prop_ro("reservations", &HostDevice::reservations);

    nb::class_<SoakResult>(m, "SoakResult", "What a soak on the host device saw.")
        .def_ro("allocations", &SoakResult::allocations)
        .def_ro("frees", &SoakResult::frees)
        .def_ro("out_of_memory", &SoakResult::out_of_memory)
        .def_ro("uses_by_others", &SoakResult::uses_by_others, "Uses on other streams, told by record_stream().")
        .def_ro("report", &SoakResult::report)
        .def_prop_ro("views", [](const SoakResult& self) { return to_dict(self.views); })
        .def_ro("waits", &SoakResult::waits, "Waits of streams that the allocator asked for.")
        .def_ro("peak_requested", &SoakResult::peak_requested)
        .def_ro("peak_reserved", &SoakResult::peak_reserved)
        .def_ro("left_reserved", &SoakResult::left_reserved, "Bytes held after everything was freed and given back.")
        .def_ro("left_mappings", &SoakResult::left_mappings)
        .def_ro("left_handles", &SoakResult::left_handles)
        .def_ro("device_problem", &SoakResult::device_problem)
        .def_ro("seconds", &SoakResult::seconds)
        .def_prop_ro("clean", &SoakResult::clean, "Nothing was overwritten early, and nothing unmapped early.");

    m.def(
        "soak_host",
        [](const std::string& allocator, const AllocatorOptions& options, const HostOptions& device,
           std::uint64_t operations, std::int64_t streams, unsigned threads, std::uint64_t seed, Bytes largest,
           double fill_level, Bytes stride, bool pools, bool validate, std::uint64_t drop_wait,
           std::uint64_t drop_every_wait, std::uint64_t early_query) {
            return soak(
                {.allocator = allocator,
                 .options = options,
                 .operations = operations,
                 .streams = streams,
                 .threads = threads,
                 .seed = seed,
                 .largest = largest,
                 .fill_level = fill_level,
                 .stride = stride,
                 .pools = pools,
                 .validate = validate,
                 .device = device,
                 .sabotage = {.drop_wait = drop_wait, .every_wait = drop_every_wait, .early_query = early_query}});
        },
        nb::arg("allocator"), nb::arg("options") = AllocatorOptions{}, nb::arg("device") = HostOptions{}, nb::kw_only(),
        nb::arg("operations") = 100'000, nb::arg("streams") = 4, nb::arg("threads") = 1, nb::arg("seed") = 1,
        nb::arg("largest") = 32 * kMiB, nb::arg("fill_level") = 0.75, nb::arg("stride") = 16 * kKiB,
        nb::arg("pools") = false, nb::arg("validate") = false, nb::arg("drop_wait") = 0, nb::arg("drop_every_wait") = 0,
        nb::arg("early_query") = 0, nb::call_guard<nb::gil_scoped_release>(),
        "Random blocks on late streams of a host device, each with a pattern of its own that is looked for until it is "
        "freed.\n"
        "Sabotage: the `drop_wait`-th stream_wait, or every so many of them, is dropped; from the `early_query`-th "
        "event_query\n"
        "on all work is said to be done. The GIL is released.");
}

}  // namespace movie

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "api/bindings.h"
#include "driver/model/model_device.h"

namespace nb = nanobind;

namespace movie {

void bind_device(nb::module_& m) {
    nb::exception<RuleViolation>(m, "RuleViolation", PyExc_RuntimeError);

    nb::class_<ModelOptions>(m, "ModelOptions",
                             "What the model device pretends to be. Sizes in bytes, lag in rows (-1: never).")
        .def(nb::init<>())
        .def_rw("capacity", &ModelOptions::capacity)
        .def_rw("granularity", &ModelOptions::granularity)
        .def_rw("costs", &ModelOptions::costs)
        .def_rw("lag", &ModelOptions::lag)
        .def_rw("seed", &ModelOptions::seed)
        .def_rw("address_space", &ModelOptions::address_space)
        .def_rw("downwards", &ModelOptions::downwards);

    nb::class_<Ledger>(m, "Ledger", "Calls by kind, physical bytes held, modelled seconds: counted by the device.")
        .def_ro("reserved", &Ledger::reserved)
        .def_ro("peak_reserved", &Ledger::peak_reserved)
        .def_ro("seconds", &Ledger::seconds)
        .def_ro("stalled_rows", &Ledger::stalled_rows)
        .def(
            "count", [](const Ledger& self, std::string_view call) { return self.count(call_named(call)); },
            nb::arg("call"))
        .def("calls", [](const Ledger& self) {
            nb::dict calls;
            for (std::size_t i = 0; i < kCalls; ++i)
                calls[nb::cast(std::string(name_of(static_cast<Call>(i))))] = self.calls[i];
            return calls;
        });

    nb::class_<ModelDevice, Driver>(
        m, "ModelDevice", "A device of books only: capacity, costs, strict rules, late events, injected faults.")
        .def(nb::init<const ModelOptions&>(), nb::arg("options") = ModelOptions{})
        .def_prop_ro("options", &ModelDevice::options, nb::rv_policy::reference_internal)
        .def_prop_ro("mappings", [](const ModelDevice& self) { return self.book().mappings().size(); })
        .def_prop_ro("handles", [](const ModelDevice& self) { return self.book().handles(); })
        .def_prop_ro("reservations", [](const ModelDevice& self) { return self.book().reservations(); })
        .def_prop_ro("plain_allocations", &ModelDevice::plain_allocations)
        .def(
            "mapping",
            [](const ModelDevice& self, Address address) -> nb::object {
                const auto found = self.book().mappings().find(address);
                if (found == self.book().mappings().end()) return nb::none();
                return nb::make_tuple(found->second.size, found->second.handle, found->second.accessible);
            },
            nb::arg("address"), "(size, handle, accessible) of the mapping that begins at the address, or None.")
        .def("script_addresses", &ModelDevice::script_addresses, nb::arg("addresses"),
             "malloc() returns these first, in order.")
        .def_prop_ro("now", [](ModelDevice& self) { return self.clock().now(); })
        .def_prop_ro(
            "delay", [](ModelDevice& self) { return self.clock().delay(); },
            "By how much waits have delayed the device, in rows, its streams running side by side.")
        .def(
            "advance",
            [](ModelDevice& self, Stream stream) {
                self.clock().advance(stream);
                self.clock().busy(stream, 1);
            },
            nb::arg("stream") = 0, "A row passes, with work on the stream.")
        .def(
            "work", [](ModelDevice& self, Stream stream) { self.clock().work(stream); }, nb::arg("stream"))
        .def(
            "plan", [](ModelDevice& self, Stream stream, std::int64_t row) { self.clock().plan(stream, row); },
            nb::arg("stream"), nb::arg("row"))
        .def(
            "finish_all", [](ModelDevice& self) { self.clock().finish_by_program(); },
            "All work of all streams is done: the program waited for it.")
        .def(
            "inject",
            [](ModelDevice& self, std::string_view call, std::uint64_t k, bool memory) {
                self.inject(call_named(call), k, memory ? Status::out_of_memory : Status::failed);
            },
            nb::arg("call"), nb::arg("k") = 1, nb::arg("memory") = false, "The k-th next call of this kind fails.")
        .def("heal", &ModelDevice::heal, "Pending faults are forgotten.")
        .def(
            "external_take", [](ModelDevice& self, Bytes size) { return self.external_take(size) == Status::ok; },
            nb::arg("size"))
        .def("external_give", &ModelDevice::external_give, nb::arg("size"))
        .def("begin_capture", &ModelDevice::begin_capture, nb::arg("stream"))
        .def("end_capture", &ModelDevice::end_capture, nb::arg("stream"))
        .def("shut_down", &ModelDevice::shut_down);
}

}  // namespace movie

#include "driver/driver.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "api/bindings.h"

namespace nb = nanobind;

namespace movie {

namespace {

// How the failure of a driver call reaches Python; the text is the status.
class DriverFailure : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

void check(Status status) {
    if (status != Status::ok) throw DriverFailure(name_of(status));
}

template <class T>
T value_of(const Outcome<T>& outcome) {
    check(outcome.status);
    return outcome.value;
}

}  // namespace

void bind_driver(nb::module_& m) {
    nb::exception<DriverFailure>(m, "DriverFailure", PyExc_RuntimeError);

    nb::class_<Driver>(
        m, "Driver",
        "What a device offers. Sizes in bytes. A call that fails raises DriverFailure with the status as "
        "its text, and has changed nothing; a call that breaks a rule raises RuleViolation.")
        .def_prop_ro("granularity", &Driver::granularity, "The unit of physical memory and of mappings.")
        .def_prop_ro(
            "free_bytes", [](const Driver& self) { return self.memory_info().free; },
            "Memory of the card that nobody holds.")
        .def_prop_ro(
            "total_bytes", [](const Driver& self) { return self.memory_info().total; }, "Memory of the card.")
        .def_prop_ro("ledger", &Driver::ledger, nb::rv_policy::reference_internal)
        .def(
            "reserve", [](Driver& self, Bytes size) { return value_of(self.reserve(size)); }, nb::arg("size"),
            "The address of a new virtual range.")
        .def(
            "free_address", [](Driver& self, Address address, Bytes size) { check(self.free_address(address, size)); },
            nb::arg("address"), nb::arg("size"))
        .def(
            "create", [](Driver& self, Bytes size) { return value_of(self.create(size)); }, nb::arg("size"),
            "A handle of new physical memory.")
        .def(
            "release", [](Driver& self, Handle handle) { check(self.release(handle)); }, nb::arg("handle"))
        .def(
            "map",
            [](Driver& self, Address address, Bytes size, Handle handle) { check(self.map(address, size, handle)); },
            nb::arg("address"), nb::arg("size"), nb::arg("handle"))
        .def(
            "unmap", [](Driver& self, Address address, Bytes size) { check(self.unmap(address, size)); },
            nb::arg("address"), nb::arg("size"))
        .def(
            "set_access", [](Driver& self, Address address, Bytes size) { check(self.set_access(address, size)); },
            nb::arg("address"), nb::arg("size"))
        .def(
            "malloc", [](Driver& self, Bytes size) { return value_of(self.malloc(size)); }, nb::arg("size"),
            "The address of a plain allocation.")
        .def(
            "mfree", [](Driver& self, Address address) { check(self.mfree(address)); }, nb::arg("address"))
        .def(
            "event_record", [](Driver& self, Stream stream) { return value_of(self.event_record(stream)); },
            nb::arg("stream") = 0, "An event behind all work of the stream so far.")
        .def(
            "event_query",
            [](Driver& self, Event event) {
                const Status status = self.event_query(event);
                if (status != Status::not_ready) check(status);
                return status == Status::ok;
            },
            nb::arg("event"), "Whether all work before the event has finished.")
        .def(
            "event_synchronize", [](Driver& self, Event event) { check(self.event_synchronize(event)); },
            nb::arg("event"))
        .def("event_destroy", &Driver::event_destroy, nb::arg("event"))
        .def(
            "stream_wait", [](Driver& self, Stream stream, Event event) { check(self.stream_wait(stream, event)); },
            nb::arg("stream"), nb::arg("event"))
        .def("synchronize", [](Driver& self) { check(self.synchronize()); });
}

}  // namespace movie

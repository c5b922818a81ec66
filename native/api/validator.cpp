#include "replay/validator/validator.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "api/bindings.h"
#include "replay/catalogue.h"
#include "replay/validator/watch.h"

namespace nb = nanobind;

namespace movie {

namespace {

// Raises movie._core.ValidationError with the number of the invariant as its attribute.
void translate(const std::exception_ptr& pointer, void* type) {
    try {
        std::rethrow_exception(pointer);
    } catch (const ValidationError& error) {
        const nb::handle error_type(static_cast<PyObject*>(type));
        const nb::object value = error_type(error.what());
        nb::setattr(value, "invariant", nb::int_(error.invariant()));
        PyErr_SetObject(error_type.ptr(), value.ptr());
    }
}

}  // namespace

void bind_validator(nb::module_& m) {
    static const nb::object& error_type = *new nb::object(nb::steal(PyErr_NewExceptionWithDoc(
        "movie._core.ValidationError",
        "An allocator broke an invariant while it was watched; `invariant` is the number of the invariant.",
        PyExc_RuntimeError, nullptr)));
    m.attr("ValidationError") = error_type;
    nb::register_exception_translator(translate, error_type.ptr());

    nb::class_<Watch>(m, "Watch",
                      "An independent validator between an allocator and its device. Build one allocator with make(); "
                      "each of its calls raises ValidationError if an invariant was broken by then.")
        .def(nb::init<Driver&, std::uint64_t>(), nb::arg("device"), nb::arg("every") = 64, nb::keep_alive<1, 2>(),
             "every: after how many calls the allocator's statistics are compared (0: only in check_all()).")
        .def_prop_ro("driver", &Watch::driver, nb::rv_policy::reference_internal, "The device, watched.")
        .def(
            "make",
            [](Watch& self, const std::string& name, const AllocatorOptions& options) -> Allocator& {
                return self.watch(make_allocator(self.driver(), name, options));
            },
            nb::arg("name"), nb::arg("options") = AllocatorOptions{}, nb::rv_policy::reference_internal,
            "An allocator of the catalogue, watched. Raises ValueError for an unknown name, option or value.")
        .def("check_all", &Watch::check_all, "Compares all sums with the allocator's statistics and report.")
        .def(
            "pin", [](Watch& self, Address address) { self.validator().pin(address); }, nb::arg("address"),
            "The memory of the live block at this address keeps its mappings from now on.")
        .def(
            "begin_capture", [](Watch& self, Stream stream) { self.validator().begin_capture(stream); },
            nb::arg("stream"))
        .def(
            "end_capture", [](Watch& self, Stream stream) { self.validator().end_capture(stream); }, nb::arg("stream"))
        .def_prop_ro(
            "held", [](Watch& self) { return self.validator().held(); },
            "Physical bytes that the allocator holds, by its driver calls.")
        .def_prop_ro("live_blocks", [](Watch& self) { return self.validator().live_blocks(); })
        .def_prop_ro(
            "live_requested", [](Watch& self) { return self.validator().live_requested(); },
            "Bytes of live blocks as asked for.")
        .def_prop_ro("calls", [](Watch& self) { return self.validator().calls(); });
}

}  // namespace movie

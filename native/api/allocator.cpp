#include "allocator/allocator.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "api/bindings.h"
#include "api/statistics.h"
#include "replay/catalogue.h"

namespace nb = nanobind;

namespace movie {

void bind_allocator(nb::module_& m) {
    nb::exception<OutOfMemory>(m, "OutOfMemory", PyExc_MemoryError);

    nb::class_<Allocator>(m, "Allocator", "An allocator on one device. Sizes in bytes; pool 0 is the default pool.")
        .def(
            "malloc",
            [](Allocator& self, Bytes bytes, Stream stream, PoolId pool) {
                return self.malloc({.bytes = bytes, .stream = stream, .pool = pool});
            },
            nb::arg("bytes"), nb::arg("stream") = 0, nb::arg("pool") = 0,
            "The address of a new block. Raises OutOfMemory, with a report, when nothing helps.")
        .def("free", &Allocator::free, nb::arg("address"), "Ends a block. Raises ValueError if there is none.")
        .def("record_stream", &Allocator::record_stream, nb::arg("address"), nb::arg("stream"),
             "Work of the stream uses the block too. Unknown addresses are ignored.")
        .def("empty_cache", &Allocator::empty_cache, "Gives idle memory back to the driver.")
        .def("reclaim", &Allocator::reclaim, nb::arg("bytes"),
             "Gives back at least `bytes` if that much is idle; returns how much.")
        .def("release_pool", &Allocator::release_pool, nb::arg("pool"), "No more allocations go to the pool.")
        .def("set_pool_lendable", &Allocator::set_pool_lendable, nb::arg("pool"), nb::arg("lendable"),
             "Whether free memory of the pool may serve others before a request fails.")
        .def("set_memory_cap", &Allocator::set_memory_cap, nb::arg("bytes"),
             "At most this many bytes reserved; 0 lifts the cap.")
        .def(
            "statistics", [](const Allocator& self) { return to_dict(self.statistics()); },
            "Counters with the keys of torch.cuda.memory_stats().")
        .def(
            "unusable",
            [](const Allocator& self, Stream stream, PoolId pool) { return to_dict(self.unusable(stream, pool)); },
            nb::arg("stream") = 0, nb::arg("pool") = 0,
            "Reserved bytes that a request of this stream and pool cannot use, by cause.")
        .def(
            "views", [](const Allocator& self) { return to_dict(self.views()); },
            "Views created, edited, reused and evicted.");

    nb::class_<AllocatorEntry>(m, "AllocatorEntry", "An allocator of the catalogue.")
        .def_ro("name", &AllocatorEntry::name)
        .def_ro("summary", &AllocatorEntry::summary)
        .def_ro("options", &AllocatorEntry::options);
    m.def("catalogue", [] { return catalogue(); }, "The allocators that there are, with the options they take.");
    m.def("make_allocator", &make_allocator, nb::arg("driver"), nb::arg("name"),
          nb::arg("options") = AllocatorOptions{}, nb::keep_alive<0, 1>(),
          "An allocator on a device, by its name in the catalogue; option values are texts, sizes in bytes.\n"
          "Raises ValueError for an unknown name, option or value.");
}

}  // namespace movie

// The Python module movie._core: thin bindings, one file a subject.
#include <nanobind/nanobind.h>

#include "api/bindings.h"

NB_MODULE(_core, m) {
    m.doc() = "The native core of MOVie: devices, allocators and the replay loop.";
    m.attr("__version__") = MOVIE_VERSION;
    movie::bind_driver(m);
    movie::bind_device(m);
    movie::bind_host(m);
    movie::bind_allocator(m);
    movie::bind_validator(m);
    movie::bind_replay(m);
    movie::bind_trace(m);
    movie::bind_testing(m);
    movie::bind_placement(m);
    movie::bind_cuda(m);
    movie::bind_torch(m);
}

// The CUDA device as a driver, for tests and measurements; under torch devices are made by native/torch.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "api/bindings.h"
#include "driver/cuda/cuda_device.h"
#include "driver/cuda/support.h"

namespace nb = nanobind;

namespace movie {

void bind_cuda(nb::module_& m) {
    nb::exception<cuda::Unavailable>(m, "CudaUnavailable", PyExc_RuntimeError);

    nb::class_<CudaDevice, Driver>(
        m, "CudaDevice",
        "A CUDA device through libcuda, in its primary context. A stream is the value of its "
        "cudaStream_t. Raises CudaUnavailable where there is none, or none that maps memory.")
        .def(nb::init<int>(), nb::arg("ordinal") = 0)
        .def_prop_ro("ordinal", &CudaDevice::ordinal)
        .def(
            "add_peer", [](CudaDevice& self, const CudaDevice& other) { return self.add_peer(other) == Status::ok; },
            nb::arg("other"), "From now on the other device may use all memory here; false: the driver refused.")
        .def("last_problem", &CudaDevice::last_problem, "The last call that failed, and how; empty: none did.");
}

}  // namespace movie

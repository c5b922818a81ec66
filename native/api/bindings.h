// One function a subject; module.cpp calls them in this order.
#pragma once

#include <nanobind/nanobind.h>

namespace movie {

void bind_driver(nanobind::module_& m);     // what every device offers
void bind_device(nanobind::module_& m);     // the model device: options, ledger, faults, its clock
void bind_host(nanobind::module_& m);       // the host device, and soaks on it
void bind_allocator(nanobind::module_& m);  // allocators and what they report
void bind_replay(nanobind::module_& m);     // traces through allocators, the native oracle
void bind_trace(nanobind::module_& m);      // scanning files of strangers before Python loads them
void bind_placement(nanobind::module_& m);  // combine(), for tests and benchmarks
void bind_validator(nanobind::module_& m);  // an allocator under watch
void bind_cuda(nanobind::module_& m);       // the CUDA device
void bind_torch(nanobind::module_& m);      // movie._core.torch: the hooks and what they report
void bind_testing(nanobind::module_& m);    // movie._core.testing

}  // namespace movie

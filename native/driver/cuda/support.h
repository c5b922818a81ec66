// Whether the devices of this machine can do what MOVie needs, and what to say where they cannot.
#pragma once

#include <string>
#include <vector>

#include "driver/cuda/library.h"

namespace movie::cuda {

// Throws Unavailable, with the reason and what to do, unless the device can map memory. Pre: the driver is initialised.
void require_virtual_memory(const Library& cuda, Device device, int ordinal);

struct DeviceFacts {
    std::string name;
    std::string problem;  // empty: MOVie can use it
};

// Of each device. Initialises the driver, which a process that forks later may not want; throws Unavailable.
std::vector<DeviceFacts> inspect_devices();

}  // namespace movie::cuda

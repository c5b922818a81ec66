// The numbered questions about a card that runtime and driver share (cudaDeviceAttr, CUdevice_attribute).
#pragma once

#include <optional>

#include "phantom/device/card.h"

namespace movie::phantom {

// Nothing for a number that the phantom does not know.
std::optional<int> attribute(const Card& card, int number, int device);

// "0000:07:00.0"
std::string bus_id(int device);

}  // namespace movie::phantom

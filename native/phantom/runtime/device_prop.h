// cudaDeviceProp as programs built for CUDA 12 and for CUDA 13 expect it. What nobody fills is left out as padding;
// tests/unit/test_phantom_layouts.py holds the layouts against the toolkit's headers.
#pragma once

#include "phantom/device/card.h"

namespace movie::phantom::runtime {

// Fills the struct of that major version (12 or 13) at `out`.
void fill_properties(void* out, int version, const Card& card, int device, Bytes memory);

}  // namespace movie::phantom::runtime

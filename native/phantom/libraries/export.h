// A function that takes the place of one of NVIDIA's: C linkage, visible, without a symbol version.
#pragma once

#define PHANTOM_EXPORT extern "C" __attribute__((visibility("default")))

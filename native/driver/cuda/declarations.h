// What is used of the driver's interface, declared anew: no CUDA header is needed to build. Layouts and numbers are
// part of the driver's binary interface and never change under these names.
#pragma once

#include <cstddef>
#include <cstdint>

namespace movie::cuda {

using Result = int;
using Device = int;
using Context = void*;
using DriverEvent = void*;
using DriverStream = void*;
using DevicePointer = std::uint64_t;
using MemoryHandle = std::uint64_t;

constexpr Result kSuccess = 0;
constexpr Result kOutOfMemory = 2;
constexpr Result kDeinitialized = 4;
constexpr Result kNotReady = 600;
constexpr Result kContextIsDestroyed = 709;
constexpr Result kNotPermitted = 800;
constexpr Result kNotSupported = 801;

// Attributes of a device.
constexpr int kVirtualMemoryManagement = 102;
constexpr int kPosixFileDescriptor = 103;
constexpr int kGpuDirectRdma = 110;
constexpr int kFabric = 128;

constexpr int kLocationDevice = 1;
constexpr int kPinnedAllocation = 1;
constexpr int kHandlePosixFileDescriptor = 1;
constexpr int kHandleFabric = 8;
constexpr int kReadWrite = 3;
constexpr int kMinimumGranularity = 0;
constexpr unsigned kEventWithoutTiming = 2;
constexpr int kCaptureModeRelaxed = 2;

struct Location {
    int type = kLocationDevice;
    int id = 0;
};

struct AllocationProperties {
    int type = kPinnedAllocation;
    int handle_types = 0;
    Location location{};
    void* win32_metadata = nullptr;
    unsigned char compression = 0;
    unsigned char gpu_direct_rdma = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
};
static_assert(sizeof(AllocationProperties) == 32);

struct AccessDescription {
    Location location{};
    int flags = kReadWrite;
};
static_assert(sizeof(AccessDescription) == 12);

}  // namespace movie::cuda

// What programs built with CUDA's headers pass to the runtime: only the types that the phantom reads or writes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace movie::phantom::runtime {

struct Dim3 {
    unsigned x, y, z;
};

enum MemcpyKind : int { kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3, kDefault = 4 };
enum MemoryType : int { kUnregistered = 0, kHost = 1, kDevice = 2 };

struct PointerAttributes {  // since CUDA 11; CUDA 13 appends reserved words
    int type;
    int device;
    void* device_pointer;
    void* host_pointer;
};

struct FuncAttributes {
    std::size_t shared_size_bytes, const_size_bytes, local_size_bytes;
    int max_threads_per_block, num_regs, ptx_version, binary_version, cache_mode_ca;
    int max_dynamic_shared_size_bytes, preferred_shmem_carveout;
    int cluster_dim_must_be_set, required_cluster_width, required_cluster_height, required_cluster_depth;
    int cluster_scheduling_policy_preference, non_portable_cluster_size_allowed, reserved[16];
};

struct LaunchConfig {
    Dim3 grid, block;
    std::size_t dynamic_shared;
    void* stream;
    void* attributes;
    unsigned attribute_count;
};

// The major version of the runtime that the program was built for: functions of one name differ between 12 and 13.
int major_version();

}  // namespace movie::phantom::runtime

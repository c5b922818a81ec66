#include "phantom/runtime/device_prop.h"

#include <cstring>
#include <limits>

#include "phantom/device/version.h"

namespace movie::phantom::runtime {

namespace {

struct Properties12 {
    char name[256];
    char uuid[16];
    char luid[8];
    unsigned luid_device_node_mask;
    std::size_t total_global_mem;
    std::size_t shared_mem_per_block;
    int regs_per_block;
    int warp_size;
    std::size_t mem_pitch;
    int max_threads_per_block;
    int max_threads_dim[3];
    int max_grid_size[3];
    int clock_rate;
    std::size_t total_const_mem;
    int major, minor;
    std::size_t texture_alignment, texture_pitch_alignment;
    int device_overlap, multiprocessor_count, kernel_exec_timeout_enabled, integrated, can_map_host_memory,
        compute_mode;
    int textures[39];  // limits of textures and surfaces
    std::size_t surface_alignment;
    int concurrent_kernels, ecc_enabled, pci_bus_id, pci_device_id, pci_domain_id, tcc_driver, async_engine_count,
        unified_addressing;
    int memory_clock_rate;
    int memory_bus_width, l2_cache_size, persisting_l2_cache_max_size, max_threads_per_multiprocessor,
        stream_priorities_supported, global_l1_cache_supported, local_l1_cache_supported;
    std::size_t shared_mem_per_multiprocessor;
    int regs_per_multiprocessor, managed_memory, is_multi_gpu_board, multi_gpu_board_group_id,
        host_native_atomic_supported;
    int single_to_double_precision_perf_ratio;
    int pageable_memory_access, concurrent_managed_access, compute_preemption_supported,
        can_use_host_pointer_for_registered_mem, cooperative_launch;
    int cooperative_multi_device_launch;
    std::size_t shared_mem_per_block_optin;
    int pageable_memory_access_uses_host_page_tables, direct_managed_mem_access_from_host,
        max_blocks_per_multiprocessor, access_policy_max_window_size;
    std::size_t reserved_shared_mem_per_block;
    int host_register_supported, sparse_cuda_array_supported, host_register_read_only_supported,
        timeline_semaphore_interop_supported, memory_pools_supported, gpu_direct_rdma_supported;
    unsigned gpu_direct_rdma_flush_writes_options;
    int gpu_direct_rdma_writes_ordering;
    unsigned memory_pool_supported_handle_types;
    int deferred_mapping_cuda_array_supported, ipc_event_supported, cluster_launch, unified_function_pointers;
    int reserved[63];
};

struct Properties13 {
    char name[256];
    char uuid[16];
    char luid[8];
    unsigned luid_device_node_mask;
    std::size_t total_global_mem;
    std::size_t shared_mem_per_block;
    int regs_per_block;
    int warp_size;
    std::size_t mem_pitch;
    int max_threads_per_block;
    int max_threads_dim[3];
    int max_grid_size[3];
    std::size_t total_const_mem;
    int major, minor;
    std::size_t texture_alignment, texture_pitch_alignment;
    int multiprocessor_count, integrated, can_map_host_memory;
    int textures[39];  // limits of textures and surfaces
    std::size_t surface_alignment;
    int concurrent_kernels, ecc_enabled, pci_bus_id, pci_device_id, pci_domain_id, tcc_driver, async_engine_count,
        unified_addressing;
    int memory_bus_width, l2_cache_size, persisting_l2_cache_max_size, max_threads_per_multiprocessor,
        stream_priorities_supported, global_l1_cache_supported, local_l1_cache_supported;
    std::size_t shared_mem_per_multiprocessor;
    int regs_per_multiprocessor, managed_memory, is_multi_gpu_board, multi_gpu_board_group_id,
        host_native_atomic_supported;
    int pageable_memory_access, concurrent_managed_access, compute_preemption_supported,
        can_use_host_pointer_for_registered_mem, cooperative_launch;
    std::size_t shared_mem_per_block_optin;
    int pageable_memory_access_uses_host_page_tables, direct_managed_mem_access_from_host,
        max_blocks_per_multiprocessor, access_policy_max_window_size;
    std::size_t reserved_shared_mem_per_block;
    int host_register_supported, sparse_cuda_array_supported, host_register_read_only_supported,
        timeline_semaphore_interop_supported, memory_pools_supported, gpu_direct_rdma_supported;
    unsigned gpu_direct_rdma_flush_writes_options;
    int gpu_direct_rdma_writes_ordering;
    unsigned memory_pool_supported_handle_types;
    int deferred_mapping_cuda_array_supported, ipc_event_supported, cluster_launch, unified_function_pointers;
    int device_numa_config, device_numa_id, mps_enabled, host_numa_id;
    unsigned gpu_pci_device_id, gpu_pci_subsystem_id;
    int host_numa_multinode_ipc_supported, reserved[56];
};

static_assert(sizeof(Properties12) == 1032);

template <class Properties>
void fill_common(Properties& out, const Card& card, int device, Bytes memory) {
    std::memset(&out, 0, sizeof out);
    std::strncpy(out.name, card.name.c_str(), sizeof out.name - 1);
    fill_uuid(out.uuid, device);
    out.total_global_mem = memory;
    out.shared_mem_per_block = static_cast<std::size_t>(card.shared_per_block);
    out.regs_per_block = card.registers;
    out.warp_size = 32;
    out.mem_pitch = static_cast<std::size_t>(std::numeric_limits<int>::max());
    out.max_threads_per_block = 1024;
    out.max_threads_dim[0] = out.max_threads_dim[1] = 1024;
    out.max_threads_dim[2] = 64;
    out.max_grid_size[0] = std::numeric_limits<int>::max();
    out.max_grid_size[1] = out.max_grid_size[2] = 65535;
    out.total_const_mem = 65536;
    out.major = card.major;
    out.minor = card.minor;
    out.texture_alignment = 512;
    out.texture_pitch_alignment = 32;
    out.multiprocessor_count = card.multiprocessors;
    out.can_map_host_memory = 1;
    for (int& word : out.textures) word = 16384;
    out.surface_alignment = 512;
    out.concurrent_kernels = 1;
    out.ecc_enabled = card.ecc ? 1 : 0;
    out.pci_bus_id = 7 + device;
    out.async_engine_count = card.copy_engines;
    out.unified_addressing = 1;
    out.memory_bus_width = card.bus_width;
    out.l2_cache_size = card.l2_cache;
    out.persisting_l2_cache_max_size = card.major >= 8 ? card.l2_cache / 4 * 3 : 0;
    out.max_threads_per_multiprocessor = card.threads_per_multiprocessor;
    out.stream_priorities_supported = 1;
    out.global_l1_cache_supported = out.local_l1_cache_supported = 1;
    out.shared_mem_per_multiprocessor = static_cast<std::size_t>(card.shared_per_multiprocessor);
    out.regs_per_multiprocessor = card.registers;
    out.managed_memory = 1;
    out.concurrent_managed_access = 1;
    out.compute_preemption_supported = 1;
    out.can_use_host_pointer_for_registered_mem = 1;
    out.cooperative_launch = 1;
    out.shared_mem_per_block_optin = static_cast<std::size_t>(card.shared_per_block_optin);
    out.max_blocks_per_multiprocessor = card.blocks_per_multiprocessor;
    out.access_policy_max_window_size = card.major >= 8 ? 128 * 1024 * 1024 : 0;
    out.reserved_shared_mem_per_block = card.major >= 8 ? static_cast<std::size_t>(card.shared_reserved_per_block) : 0;
    out.host_register_supported = 1;
    out.timeline_semaphore_interop_supported = 1;
    out.memory_pools_supported = 1;
    out.memory_pool_supported_handle_types = 1;
    out.ipc_event_supported = 1;
    out.cluster_launch = card.major >= 9 ? 1 : 0;
}

}  // namespace

void fill_properties(void* out, int version, const Card& card, int device, Bytes memory) {
    if (version < 13) {
        auto& properties = *static_cast<Properties12*>(out);
        fill_common(properties, card, device, memory);
        properties.clock_rate = card.clock;
        properties.memory_clock_rate = card.memory_clock;
        properties.device_overlap = 1;
        properties.single_to_double_precision_perf_ratio = card.minor == 0 && card.major < 10 ? 2 : 64;
        properties.cooperative_multi_device_launch = 1;
    } else {
        auto& properties = *static_cast<Properties13*>(out);
        fill_common(properties, card, device, memory);
        properties.device_numa_id = properties.host_numa_id = -1;
    }
}

}  // namespace movie::phantom::runtime

// Kernels of the runtime: registered, configured, counted, never run.
#include <cstring>
#include <vector>

#include "phantom/device/call.h"
#include "phantom/device/occupancy.h"
#include "phantom/runtime/abi.h"
#include "phantom/runtime/fat_binaries.h"

using namespace movie::phantom;
using runtime::Dim3;

namespace {

int launch(const char* name, Dim3 grid, Dim3 block, std::size_t shared, void* stream_handle) {
    return runtime_call(name, Needs::context, [&](Machine& machine, Lock&) -> int {
        Stream* stream = machine.stream(stream_handle);
        if (stream == nullptr) return kInvalidHandle;
        const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
        if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535 || threads == 0 ||
            threads > 1024 || block.z > 64)
            return kInvalidConfiguration;
        if (shared > static_cast<std::size_t>(machine.card.shared_per_block_optin)) return kInvalidValue;
        return machine.launch(*stream);
    });
}

}  // namespace

PHANTOM_API int cudaLaunchKernel(const void*, Dim3 grid, Dim3 block, void**, std::size_t shared, void* stream) {
    return launch("cudaLaunchKernel", grid, block, shared, stream);
}
PHANTOM_API int cudaLaunchCooperativeKernel(const void*, Dim3 grid, Dim3 block, void**, std::size_t shared,
                                            void* stream) {
    return launch("cudaLaunchCooperativeKernel", grid, block, shared, stream);
}
PHANTOM_API int cudaLaunchKernelExC(const runtime::LaunchConfig* config, const void*, void**) {
    return launch("cudaLaunchKernelExC", config->grid, config->block, config->dynamic_shared, config->stream);
}
// What the compiler of CUDA 13 calls instead.
PHANTOM_API int __cudaLaunchKernel(void*, Dim3 grid, Dim3 block, void**, std::size_t shared, void* stream) {
    return launch("cudaLaunchKernel", grid, block, shared, stream);
}
PHANTOM_API int __cudaLaunchKernel_ptsz(void*, Dim3 grid, Dim3 block, void**, std::size_t shared, void* stream) {
    return launch("cudaLaunchKernel", grid, block, shared,
                  stream == nullptr ? reinterpret_cast<void*>(std::uintptr_t{2}) : stream);
}

// kernel<<<...>>>() pushes its configuration here and pops it in the stub that launches.
namespace {
struct Configuration {
    Dim3 grid, block;
    std::size_t shared;
    void* stream;
};
thread_local std::vector<Configuration> configurations;
}  // namespace

PHANTOM_API unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared, void* stream) {
    configurations.push_back({grid, block, shared, stream});
    return 0;
}
PHANTOM_API int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared, void** stream) {
    if (configurations.empty()) return kIllegalState;
    const Configuration& last = configurations.back();
    *grid = last.grid, *block = last.block, *shared = last.shared, *stream = last.stream;
    configurations.pop_back();
    return kSuccess;
}

// --- registration: programs do this while they are loaded, hundred thousand times: nothing is kept
// --------------------

PHANTOM_API void** __cudaRegisterFatBinary(void* image) {
    static void* handle = nullptr;
    handle = image;
    runtime::remember_fat_binary(image);
    return &handle;
}
PHANTOM_API void __cudaRegisterFatBinaryEnd(void**) {}
PHANTOM_API void __cudaUnregisterFatBinary(void**) {}
PHANTOM_API void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*,
                                        int*) {}
PHANTOM_API void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
PHANTOM_API void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, std::size_t, int, int) {}
PHANTOM_API char __cudaInitModule(void**) { return 1; }
PHANTOM_API int __cudaGetKernel(void** kernel, const void* function) {
    *kernel = const_cast<void*>(function);
    return kSuccess;
}
PHANTOM_API int cudaGetKernel(void** kernel, const void* function) { return __cudaGetKernel(kernel, function); }
PHANTOM_API int cudaGetFuncBySymbol(void** function, const void* symbol) { return __cudaGetKernel(function, symbol); }

// --- what kernels are ------------------------------------------------------------------------------------------------

PHANTOM_API int cudaFuncGetAttributes(runtime::FuncAttributes* out, const void*) {
    return runtime_call("cudaFuncGetAttributes", Needs::context, [&](Machine& machine, Lock&) {
        std::memset(out, 0, sizeof *out);
        out->max_threads_per_block = 1024;
        out->num_regs = kRegistersOfKernels;
        const int architecture = runtime::architecture_for(machine.card.major * 10 + machine.card.minor);
        if (architecture == 0) return kNoKernelImage;
        out->binary_version = out->ptx_version = architecture;
        out->max_dynamic_shared_size_bytes = machine.card.shared_per_block;
        return kSuccess;
    });
}

PHANTOM_API int cudaFuncSetAttribute(const void*, int attribute, int value) {
    return runtime_call("cudaFuncSetAttribute", Needs::context, [&](Machine& machine, Lock&) {
        constexpr int kMostDynamicShared = 8;
        return attribute == kMostDynamicShared && value > machine.card.shared_per_block_optin ? kInvalidValue
                                                                                              : kSuccess;
    });
}

namespace {
int blocks(int* out, int block, std::size_t shared) {
    return runtime_call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", Needs::context, [&](Machine& machine, Lock&) {
        if (block <= 0) return kInvalidValue;
        *out = resident_blocks(machine.card, block, shared);
        return kSuccess;
    });
}
}  // namespace

PHANTOM_API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* out, const void*, int block, std::size_t shared) {
    return blocks(out, block, shared);
}
PHANTOM_API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, const void*, int block,
                                                                       std::size_t shared, unsigned) {
    return blocks(out, block, shared);
}

// Device variables live nowhere: their address stands for them, and what is copied to them is dropped.
PHANTOM_API int cudaGetSymbolAddress(void** out, const void* symbol) {
    return runtime_call("cudaGetSymbolAddress", Needs::context, [&](Machine&, Lock&) {
        *out = const_cast<void*>(symbol);
        return kSuccess;
    });
}
PHANTOM_API int cudaMemcpyToSymbol(const void*, const void*, std::size_t, std::size_t, int) {
    return runtime_call("cudaMemcpyToSymbol", Needs::context,
                        [&](Machine& machine, Lock&) { return machine.launch(*machine.stream(nullptr)); });
}
PHANTOM_API int cudaMemcpyToSymbolAsync(const void*, const void*, std::size_t, std::size_t, int, void* stream_handle) {
    return runtime_call("cudaMemcpyToSymbolAsync", Needs::context, [&](Machine& machine, Lock&) -> int {
        Stream* stream = machine.stream(stream_handle);
        return stream == nullptr ? kInvalidHandle : machine.launch(*stream);
    });
}

// --- libraries of kernels --------------------------------------------------------------------------------------------

namespace {
struct KernelLibrary {
    const void* code;
};
}  // namespace

PHANTOM_API int cudaLibraryLoadData(void** out, const void* code, void*, void**, unsigned, void*, void**, unsigned) {
    return runtime_call("cudaLibraryLoadData", Needs::context, [&](Machine&, Lock&) {
        if (out == nullptr || code == nullptr) return kInvalidValue;
        *out = new KernelLibrary{code};
        return kSuccess;
    });
}
PHANTOM_API int cudaLibraryUnload(void* library) {
    return runtime_call("cudaLibraryUnload", Needs::context, [&](Machine&, Lock&) {
        delete static_cast<KernelLibrary*>(library);
        return kSuccess;
    });
}
PHANTOM_API int cudaLibraryGetKernel(void** kernel, void* library, const char*) {
    return runtime_call("cudaLibraryGetKernel", Needs::context, [&](Machine&, Lock&) {
        *kernel = library;
        return kSuccess;
    });
}

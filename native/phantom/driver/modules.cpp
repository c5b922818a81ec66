// Modules, kernels and launches of the driver.
#include <cstring>

#include "phantom/device/call.h"
#include "phantom/device/occupancy.h"

using namespace movie::phantom;

namespace {

// What is loaded, and the functions in it, are tokens: code is never read.
struct Module {
    int device = 0;
};

int load(const char* name, void** out) {
    return call(name, Needs::context, [&](Machine&, Lock&) {
        *out = new Module{Machine::current()};
        return kSuccess;
    });
}

int launch(const char* name, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared,
           void* stream_handle) {
    return call(name, Needs::context, [&](Machine& machine, Lock&) -> int {
        Stream* stream = machine.stream(stream_handle);
        if (stream == nullptr) return kInvalidHandle;
        const std::uint64_t threads = std::uint64_t{block[0]} * block[1] * block[2];
        if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[1] > 65535 || grid[2] > 65535 || threads == 0 ||
            threads > 1024 || shared > static_cast<unsigned>(machine.card.shared_per_block_optin))
            return kInvalidValue;
        return machine.launch(*stream);
    });
}

struct LaunchConfig {
    unsigned grid[3], block[3], shared;
    void* stream;
    void* attributes;
    unsigned attribute_count;
};

}  // namespace

PHANTOM_API int cuModuleLoad(void** out, const char*) { return load("cuModuleLoad", out); }
PHANTOM_API int cuModuleLoadData(void** out, const void*) { return load("cuModuleLoadData", out); }
PHANTOM_API int cuModuleLoadDataEx(void** out, const void*, unsigned, void*, void**) {
    return load("cuModuleLoadDataEx", out);
}
PHANTOM_API int cuModuleLoadFatBinary(void** out, const void*) { return load("cuModuleLoadFatBinary", out); }
PHANTOM_API int cuLibraryLoadData(void** out, const void*, void*, void**, unsigned, void*, void**, unsigned) {
    return load("cuLibraryLoadData", out);
}

namespace {
int unload(const char* name, void* module) {
    return call(name, Needs::context, [&](Machine&, Lock&) {
        delete static_cast<Module*>(module);
        return kSuccess;
    });
}
int function_of(const char* name, void** out, void* module) {
    return call(name, Needs::context, [&](Machine&, Lock&) {
        if (module == nullptr) return kInvalidHandle;
        *out = module;
        return kSuccess;
    });
}
}  // namespace

PHANTOM_API int cuModuleUnload(void* module) { return unload("cuModuleUnload", module); }
PHANTOM_API int cuLibraryUnload(void* library) { return unload("cuLibraryUnload", library); }
PHANTOM_API int cuModuleGetFunction(void** out, void* module, const char*) {
    return function_of("cuModuleGetFunction", out, module);
}
PHANTOM_API int cuLibraryGetKernel(void** out, void* library, const char*) {
    return function_of("cuLibraryGetKernel", out, library);
}
PHANTOM_API int cuLibraryGetModule(void** out, void* library) {
    return function_of("cuLibraryGetModule", out, library);
}
PHANTOM_API int cuKernelGetFunction(void** out, void* kernel) {
    return function_of("cuKernelGetFunction", out, kernel);
}
PHANTOM_API int cuModuleGetLoadingMode(int* out) {
    *out = 2;  // lazily
    return kSuccess;
}
PHANTOM_API int cuModuleGetGlobal_v2(void*, void*, void*, const char*) {
    return call("cuModuleGetGlobal", Needs::context, [](Machine&, Lock&) { return kNotFound; });
}

// Linking needs nothing of the card.
PHANTOM_API int cuLinkCreate_v2(unsigned, void*, void**, void** out) { return load("cuLinkCreate", out); }
PHANTOM_API int cuLinkComplete(void* state, void** cubin, std::size_t* size) {
    return call("cuLinkComplete", Needs::context, [&](Machine&, Lock&) {
        *cubin = state;
        *size = sizeof(Module);
        return kSuccess;
    });
}
PHANTOM_API int cuLinkDestroy(void* state) { return unload("cuLinkDestroy", state); }

namespace {
int function_attribute(int* out, int number) {
    return call("cuFuncGetAttribute", Needs::context, [&](Machine& machine, Lock&) {
        switch (number) {
            case 0:  // threads a block
                *out = 1024;
                return kSuccess;
            case 4:
                *out = kRegistersOfKernels;
                return kSuccess;
            case 5:
            case 6:  // versions of code
                *out = machine.card.major * 10 + machine.card.minor;
                return kSuccess;
            case 8:  // dynamic shared memory
                *out = machine.card.shared_per_block;
                return kSuccess;
            default:
                *out = 0;
                return number < 0 || number > 15 ? kInvalidValue : kSuccess;
        }
    });
}
int set_attribute(int number, int value) {
    return call("cuFuncSetAttribute", Needs::context, [&](Machine& machine, Lock&) {
        return number == 8 && value > machine.card.shared_per_block_optin ? kInvalidValue : kSuccess;
    });
}
}  // namespace

PHANTOM_API int cuFuncGetAttribute(int* out, int number, void*) { return function_attribute(out, number); }
PHANTOM_API int cuFuncSetAttribute(void*, int number, int value) { return set_attribute(number, value); }
PHANTOM_API int cuKernelGetAttribute(int* out, int number, void*, int) { return function_attribute(out, number); }
PHANTOM_API int cuKernelSetAttribute(int number, int value, void*, int) { return set_attribute(number, value); }

PHANTOM_API int cuLaunchKernel(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                               unsigned shared, void* stream, void**, void**) {
    return launch("cuLaunchKernel", {gx, gy, gz}, {bx, by, bz}, shared, stream);
}
PHANTOM_API int cuLaunchCooperativeKernel(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                          unsigned bz, unsigned shared, void* stream, void**) {
    return launch("cuLaunchCooperativeKernel", {gx, gy, gz}, {bx, by, bz}, shared, stream);
}
PHANTOM_API int cuLaunchKernelEx(const LaunchConfig* config, void*, void**, void**) {
    return launch("cuLaunchKernelEx", config->grid, config->block, config->shared, config->stream);
}
PHANTOM_API int cuLaunchHostFunc(void* stream_handle, void (*function)(void*), void* data) {
    return call("cuLaunchHostFunc", Needs::context, [&](Machine& machine, Lock&) -> int {
        Stream* stream = machine.stream(stream_handle);
        if (stream == nullptr) return kInvalidHandle;
        return machine.host_function(*stream, [=] { function(data); });
    });
}

PHANTOM_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, void*, int block, std::size_t shared) {
    return call("cuOccupancyMaxActiveBlocksPerMultiprocessor", Needs::context, [&](Machine& machine, Lock&) {
        if (block <= 0) return kInvalidValue;
        *out = resident_blocks(machine.card, block, shared);
        return kSuccess;
    });
}
PHANTOM_API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, void* function, int block,
                                                                     std::size_t shared, unsigned) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(out, function, block, shared);
}
PHANTOM_API int cuOccupancyMaxActiveClusters(int* out, void*, const LaunchConfig* config) {
    return call("cuOccupancyMaxActiveClusters", Needs::context, [&](Machine& machine, Lock&) {
        const int threads = static_cast<int>(config->block[0] * config->block[1] * config->block[2]);
        if (threads <= 0 || machine.card.major < 9) return kInvalidValue;
        *out = resident_blocks(machine.card, threads, config->shared) * machine.card.multiprocessors;
        return kSuccess;
    });
}

// A description of a tensor for the copy engines of kernels, which never run: 128 bytes that mean nothing.
PHANTOM_API int cuTensorMapEncodeTiled(void* map, ...) {
    return call("cuTensorMapEncodeTiled", Needs::machine, [&](Machine&, Lock&) {
        std::memset(map, 0, 128);
        return kSuccess;
    });
}
PHANTOM_API int cuTensorMapEncodeIm2col(void* map, ...) {
    return call("cuTensorMapEncodeIm2col", Needs::machine, [&](Machine&, Lock&) {
        std::memset(map, 0, 128);
        return kSuccess;
    });
}

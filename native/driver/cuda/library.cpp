#include "driver/cuda/library.h"

#include <dlfcn.h>

namespace movie::cuda {

namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr)
        throw Unavailable(std::string("the CUDA driver has no ") + name +
                          ", which came with CUDA 11.2; install a newer driver");
}

void* open_library() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    const char* const reason = dlerror();
    throw Unavailable(std::string("there is no CUDA driver on this machine (") + (reason == nullptr ? "" : reason) +
                      "); install it, or run on a phantom device: movie run --phantom a100-80 -- python ...");
}

}  // namespace

Library::Library() {
    void* const library = open_library();
    find(library, "cuInit", init);
    find(library, "cuDriverGetVersion", driver_version);
    find(library, "cuGetErrorName", error_name);
    find(library, "cuGetErrorString", error_text);
    find(library, "cuDeviceGetCount", device_count);
    find(library, "cuDeviceGet", device_get);
    find(library, "cuDeviceGetName", device_name);
    find(library, "cuDeviceGetAttribute", device_attribute);
    find(library, "cuDeviceCanAccessPeer", can_access_peer);
    find(library, "cuDevicePrimaryCtxRetain", retain_primary_context);
    find(library, "cuCtxGetCurrent", current_context);
    find(library, "cuCtxPushCurrent_v2", push_context);
    find(library, "cuCtxPopCurrent_v2", pop_context);
    find(library, "cuCtxSynchronize", synchronize_context);
    find(library, "cuMemGetInfo_v2", memory_info);
    find(library, "cuMemGetAllocationGranularity", granularity);
    find(library, "cuMemAddressReserve", reserve);
    find(library, "cuMemAddressFree", free_address);
    find(library, "cuMemCreate", create);
    find(library, "cuMemRelease", release);
    find(library, "cuMemMap", map);
    find(library, "cuMemUnmap", unmap);
    find(library, "cuMemSetAccess", set_access);
    find(library, "cuMemAlloc_v2", malloc);
    find(library, "cuMemFree_v2", mfree);
    find(library, "cuEventCreate", event_create);
    find(library, "cuEventRecord", event_record);
    find(library, "cuEventQuery", event_query);
    find(library, "cuEventSynchronize", event_synchronize);
    find(library, "cuEventDestroy_v2", event_destroy);
    find(library, "cuStreamWaitEvent", stream_wait);
    find(library, "cuThreadExchangeStreamCaptureMode", exchange_capture_mode);
}

const Library& Library::get() {
    // Never destroyed: calls may come while the process ends. A constructor that throws is tried again at the next
    // call.
    static const Library* const library = new Library();
    return *library;
}

std::string Library::describe(Result result) const {
    const char* name = nullptr;
    const char* text = nullptr;
    if (error_name(result, &name) != kSuccess || name == nullptr) return "CUDA error " + std::to_string(result);
    if (error_text(result, &text) != kSuccess || text == nullptr) return name;
    return std::string(name) + " (" + text + ")";
}

}  // namespace movie::cuda

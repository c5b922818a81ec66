#include "phantom/libraries/cudnn/handle.h"

#include <cstdio>
#include <new>

#include "phantom/device/wheel.h"
#include "phantom/libraries/export.h"

namespace movie::phantom::cudnn {

std::size_t size_of(int type) {
    constexpr std::size_t kSizes[] = {4, 8, 2, 1, 4, 4, 1, 4, 32, 2, 8, 1, 1, 1, 1, 1, 1, 1, 1, 4, 8, 16};
    return type < 0 || type >= static_cast<int>(std::size(kSizes)) ? 0 : kSizes[type];
}

}  // namespace movie::phantom::cudnn

using namespace movie::phantom::cudnn;
using movie::phantom::of_wheel;

namespace {

// Versions to name where no wheel is loaded.
constexpr std::size_t kVersion = 90100;
constexpr std::size_t kRuntimeVersion = 12000;

}  // namespace

PHANTOM_EXPORT int cudnnCreate(Handle** handle) {
    if (!handle) return kNullPointer;
    const int device = movie::phantom::current_device();
    if (device < 0) return kNotInitialized;
    *handle = new (std::nothrow) Handle;
    if (!*handle) return kOutOfHostMemory;
    (*handle)->device = device;
    return kSuccess;
}
PHANTOM_EXPORT int cudnnDestroy(Handle* handle) {
    if (!good(handle)) return kNotInitialized;
    handle->mark = 0;
    delete handle;
    return kSuccess;
}
PHANTOM_EXPORT int cudnnSetStream(Handle* handle, void* stream) {
    if (!good(handle)) return kNotInitialized;
    handle->stream = stream;
    return kSuccess;
}
PHANTOM_EXPORT int cudnnGetStream(const Handle* handle, void** stream) {
    if (!good(handle)) return kNotInitialized;
    if (!stream) return kNullPointer;
    *stream = handle->stream;
    return kSuccess;
}

PHANTOM_EXPORT std::size_t cudnnGetVersion() {
    // Asked for with every operation by cuDNN's frontend.
    static const std::size_t version = [] {
        auto* real = of_wheel<std::size_t()>("libcudnn.so", "cudnnGetVersion");
        return real ? real() : kVersion;
    }();
    return version;
}
PHANTOM_EXPORT std::size_t cudnnGetCudartVersion() {
    auto* real = of_wheel<std::size_t()>("libcudnn.so", "cudnnGetCudartVersion");
    return real ? real() : kRuntimeVersion;
}
PHANTOM_EXPORT int cudnnGetProperty(int property, int* value) {
    if (!value || property < 0 || property > 2) return kBadParameter;
    const auto version = cudnnGetVersion();
    const std::size_t parts[] = {version / 10000, version / 100 % 100, version % 100};
    *value = static_cast<int>(parts[property]);
    return kSuccess;
}

PHANTOM_EXPORT const char* cudnnGetErrorString(int status) {
    switch (status) {
        case kSuccess:
            return "CUDNN_STATUS_SUCCESS";
        case kNotInitialized:
            return "CUDNN_STATUS_NOT_INITIALIZED";
        case kBadParameter:
            return "CUDNN_STATUS_BAD_PARAM";
        case kNullPointer:
            return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
        case kNotFinalized:
            return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
        case kWorkspaceTooSmall:
            return "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT";
        case kBadAttributeType:
            return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
        case kNotSupported:
            return "CUDNN_STATUS_NOT_SUPPORTED";
        case kOutOfHostMemory:
            return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
        case kExecutionFailed:
            return "CUDNN_STATUS_EXECUTION_FAILED";
        default:
            return "CUDNN_UNKNOWN_STATUS";
    }
}
PHANTOM_EXPORT void cudnnGetLastErrorString(char* message, std::size_t bytes) {
    if (message && bytes) std::snprintf(message, bytes, "the phantom keeps no log of cuDNN");
}

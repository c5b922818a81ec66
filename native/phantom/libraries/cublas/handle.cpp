#include "phantom/libraries/cublas/handle.h"

#include <cstddef>
#include <new>

#include "phantom/libraries/export.h"

using namespace movie::phantom::cublas;

namespace {

constexpr std::size_t kWorkspaceAlignment = 256;

bool good(const Handle* handle) { return handle && handle->valid(); }

template <typename Value, typename Field>
Status get(const Handle* handle, Field Handle::* field, Value* value) {
    if (!good(handle)) return kNotInitialized;
    if (!value) return kInvalidValue;
    *value = static_cast<Value>(handle->*field);
    return kSuccess;
}

template <typename Value, typename Field>
Status set(Handle* handle, Field Handle::* field, Value value) {
    if (!good(handle)) return kNotInitialized;
    handle->*field = static_cast<Field>(value);
    return kSuccess;
}

}  // namespace

PHANTOM_EXPORT int cublasCreate_v2(Handle** handle) {
    if (!handle) return kInvalidValue;
    const int device = movie::phantom::current_device();
    if (device < 0) return kNotInitialized;
    *handle = new (std::nothrow) Handle;
    if (!*handle) return kAllocationFailed;
    (*handle)->device = device;
    return kSuccess;
}

PHANTOM_EXPORT int cublasDestroy_v2(Handle* handle) {
    if (!good(handle)) return kNotInitialized;
    handle->mark = 0;
    delete handle;
    return kSuccess;
}

PHANTOM_EXPORT int cublasSetStream_v2(Handle* handle, void* stream) { return set(handle, &Handle::stream, stream); }
PHANTOM_EXPORT int cublasGetStream_v2(Handle* handle, void** stream) { return get(handle, &Handle::stream, stream); }

PHANTOM_EXPORT int cublasSetWorkspace_v2(Handle* handle, void* workspace, std::size_t) {
    if (!good(handle)) return kNotInitialized;
    if (reinterpret_cast<std::size_t>(workspace) % kWorkspaceAlignment) return kInvalidValue;
    return kSuccess;  // no work needs it
}

PHANTOM_EXPORT int cublasSetPointerMode_v2(Handle* handle, int mode) {
    if (mode != static_cast<int>(PointerMode::host) && mode != static_cast<int>(PointerMode::device)) {
        return kInvalidValue;
    }
    return set(handle, &Handle::pointers, mode);
}
PHANTOM_EXPORT int cublasGetPointerMode_v2(Handle* handle, int* mode) { return get(handle, &Handle::pointers, mode); }
PHANTOM_EXPORT int cublasSetMathMode(Handle* handle, int mode) { return set(handle, &Handle::math, mode); }
PHANTOM_EXPORT int cublasGetMathMode(Handle* handle, int* mode) { return get(handle, &Handle::math, mode); }
PHANTOM_EXPORT int cublasSetAtomicsMode(Handle* handle, int mode) { return set(handle, &Handle::atomics, mode); }
PHANTOM_EXPORT int cublasGetAtomicsMode(Handle* handle, int* mode) { return get(handle, &Handle::atomics, mode); }
PHANTOM_EXPORT int cublasSetSmCountTarget(Handle* handle, int count) {
    return set(handle, &Handle::multiprocessors, count);
}
PHANTOM_EXPORT int cublasGetSmCountTarget(Handle* handle, int* count) {
    return get(handle, &Handle::multiprocessors, count);
}

// Plain memory, copies, streams and events of the driver, for callers that use it directly: over the runtime's, since
// the two share handles and codes.
#include <cstring>

#include "phantom/device/call.h"
#include "phantom/device/copies.h"

using namespace movie::phantom;

extern "C" {
int cudaMalloc(void**, std::size_t);
int cudaFree(void*);
int cudaHostAlloc(void**, std::size_t, unsigned);
int cudaFreeHost(void*);
int cudaHostRegister(void*, std::size_t, unsigned);
int cudaHostUnregister(void*);
int cudaMemGetInfo(std::size_t*, std::size_t*);
int cudaMemcpy(void*, const void*, std::size_t, int);
int cudaMemcpyAsync(void*, const void*, std::size_t, int, void*);
int cudaStreamCreateWithPriority(void**, unsigned, int);
int cudaStreamDestroy(void*);
int cudaStreamQuery(void*);
int cudaStreamSynchronize(void*);
int cudaStreamWaitEvent(void*, void*, unsigned);
int cudaStreamIsCapturing(void*, int*);
int cudaThreadExchangeStreamCaptureMode(int*);
int cudaEventCreateWithFlags(void**, unsigned);
int cudaEventDestroy(void*);
int cudaEventRecord(void*, void*);
int cudaEventQuery(void*);
int cudaEventSynchronize(void*);
int cudaEventElapsedTime(float*, void*, void*);
}

namespace {
void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
constexpr int kToDevice = 1, kToHost = 2, kOnDevice = 3, kAny = 4;

// What goes wrong in a call of the driver is not among the runtime's errors: cudaGetLastError() says nothing of it.
struct NotOfTheRuntime {
    int before = last_error();
    ~NotOfTheRuntime() { last_error() = before; }
};
}  // namespace

PHANTOM_API int cuMemAlloc_v2(std::uint64_t* out, std::size_t size) {
    if (out == nullptr || size == 0) return kInvalidValue;
    const NotOfTheRuntime call;
    return cudaMalloc(reinterpret_cast<void**>(out), size);
}
PHANTOM_API int cuMemFree_v2(std::uint64_t address) {
    const NotOfTheRuntime call;
    return cudaFree(pointer(address));
}
PHANTOM_API int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    const NotOfTheRuntime call;
    return cudaMemGetInfo(free, total);
}
PHANTOM_API int cuMemHostAlloc(void** out, std::size_t size, unsigned flags) {
    const NotOfTheRuntime call;
    return cudaHostAlloc(out, size, flags);
}
PHANTOM_API int cuMemAllocHost_v2(void** out, std::size_t size) {
    const NotOfTheRuntime call;
    return cudaHostAlloc(out, size, 0);
}
PHANTOM_API int cuMemFreeHost(void* host) {
    const NotOfTheRuntime call;
    return cudaFreeHost(host);
}
PHANTOM_API int cuMemHostRegister_v2(void* host, std::size_t size, unsigned flags) {
    const NotOfTheRuntime call;
    return cudaHostRegister(host, size, flags);
}
PHANTOM_API int cuMemHostUnregister(void* host) {
    const NotOfTheRuntime call;
    return cudaHostUnregister(host);
}
PHANTOM_API int cuMemHostGetDevicePointer_v2(std::uint64_t* out, void* host, unsigned) {
    return call("cuMemHostGetDevicePointer", Needs::context, [&](Machine& machine, Lock&) {
        if (!machine.pinned.find(host)) return kInvalidValue;
        *out = reinterpret_cast<std::uint64_t>(host);
        return kSuccess;
    });
}

PHANTOM_API int cuMemGetAddressRange_v2(std::uint64_t* begin, std::size_t* size, std::uint64_t address) {
    return call("cuMemGetAddressRange", Needs::context, [&](Machine& machine, Lock&) {
        auto whole = machine.memory.find(address);
        if (whole && whole->mapped_handle) whole = machine.memory.find_reservation(address);
        if (!whole) return kNotFound;
        if (begin != nullptr) *begin = whole->begin;
        if (size != nullptr) *size = whole->size;
        return kSuccess;
    });
}

PHANTOM_API int cuPointerGetAttribute(void* out, int number, std::uint64_t address) {
    return call("cuPointerGetAttribute", Needs::context, [&](Machine& machine, Lock&) {
        const auto whole = machine.memory.find(address);
        const auto range = machine.pinned.find(pointer(address));
        if (!whole && !range) return kInvalidValue;
        const int device = whole ? whole->device : range->device;
        switch (number) {
            case 1:  // context
                *static_cast<void**>(out) = &machine.device(device);
                return kSuccess;
            case 2:  // type of memory: 1 host, 2 device
                *static_cast<unsigned*>(out) = whole ? 2 : 1;
                return kSuccess;
            case 3:  // device pointer
                *static_cast<std::uint64_t*>(out) = address;
                return kSuccess;
            case 4:  // host pointer
                if (whole) return kInvalidValue;
                *static_cast<void**>(out) = pointer(address);
                return kSuccess;
            case 6:  // synchronise memory operations: may be set, is not
            case 8:  // managed
                *static_cast<unsigned*>(out) = 0;
                return kSuccess;
            case 7:  // buffer number
                *static_cast<unsigned long long*>(out) = whole ? whole->begin : range->begin;
                return kSuccess;
            case 9:  // device ordinal
                *static_cast<int*>(out) = device;
                return kSuccess;
            case 10:  // can be exported with the old way of sharing
                *static_cast<unsigned*>(out) = whole && !whole->mapped_handle ? 1 : 0;
                return kSuccess;
            case 11:  // beginning and size of the allocation
                *static_cast<std::uint64_t*>(out) = whole ? whole->begin : range->begin;
                return kSuccess;
            case 12:
                *static_cast<std::size_t*>(out) = whole ? whole->size : range->size;
                return kSuccess;
            case 13:  // mapped
                *static_cast<unsigned*>(out) = 1;
                return kSuccess;
            default:
                stop("cuPointerGetAttribute", ("attribute " + std::to_string(number)).c_str());
        }
    });
}

PHANTOM_API int cuPointerGetAttributes(unsigned count, const int* numbers, void** out, std::uint64_t address) {
    for (unsigned at = 0; at < count; ++at)
        if (const int code = cuPointerGetAttribute(out[at], numbers[at], address); code != kSuccess) return code;
    return kSuccess;
}
// The one attribute that can be set: whether copies of this memory are always waited for. Nothing depends on it.
PHANTOM_API int cuPointerSetAttribute(const void*, int number, std::uint64_t) {
    constexpr int kSyncMemops = 6;
    return number == kSyncMemops ? kSuccess : kInvalidValue;
}

namespace {
int fill(const char* name, std::uint64_t to, std::uint32_t value, std::size_t count, unsigned unit,
         void* stream_handle) {
    return call(name, Needs::context, [&](Machine& machine, Lock&) -> int {
        Stream* stream = machine.stream(stream_handle);
        if (stream == nullptr) return kInvalidHandle;
        return set_block(machine, *stream, name, {pointer(to), count * unit}, value, unit);
    });
}
}  // namespace

PHANTOM_API int cuMemsetD8Async(std::uint64_t to, unsigned char value, std::size_t count, void* stream) {
    return fill("cuMemsetD8Async", to, value, count, 1, stream);
}
PHANTOM_API int cuMemsetD16Async(std::uint64_t to, unsigned short value, std::size_t count, void* stream) {
    return fill("cuMemsetD16Async", to, value, count, 2, stream);
}
PHANTOM_API int cuMemsetD32Async(std::uint64_t to, unsigned value, std::size_t count, void* stream) {
    return fill("cuMemsetD32Async", to, value, count, 4, stream);
}
PHANTOM_API int cuMemsetD32_v2(std::uint64_t to, unsigned value, std::size_t count) {
    return fill("cuMemsetD32", to, value, count, 4, nullptr);
}
PHANTOM_API int cuMemsetD8_v2(std::uint64_t to, unsigned char value, std::size_t count) {
    return fill("cuMemsetD8", to, value, count, 1, nullptr);
}

// A word in device memory, written in the stream's order.
PHANTOM_API int cuStreamWriteValue32_v2(void* stream, std::uint64_t to, std::uint32_t value, unsigned) {
    return cuMemsetD32Async(to, value, 1, stream);
}

PHANTOM_API int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t size, void* stream) {
    const NotOfTheRuntime call;
    return cudaMemcpyAsync(pointer(to), from, size, kToDevice, stream);
}
PHANTOM_API int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t size, void* stream) {
    const NotOfTheRuntime call;
    return cudaMemcpyAsync(to, pointer(from), size, kToHost, stream);
}
PHANTOM_API int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t size, void* stream) {
    const NotOfTheRuntime call;
    return cudaMemcpyAsync(pointer(to), pointer(from), size, kOnDevice, stream);
}
PHANTOM_API int cuMemcpyAsync(std::uint64_t to, std::uint64_t from, std::size_t size, void* stream) {
    const NotOfTheRuntime call;
    return cudaMemcpyAsync(pointer(to), pointer(from), size, kAny, stream);
}
PHANTOM_API int cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t size) {
    const NotOfTheRuntime call;
    return cudaMemcpy(pointer(to), from, size, kToDevice);
}
PHANTOM_API int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t size) {
    const NotOfTheRuntime call;
    return cudaMemcpy(to, pointer(from), size, kToHost);
}
PHANTOM_API int cuMemcpyDtoD_v2(std::uint64_t to, std::uint64_t from, std::size_t size) {
    const NotOfTheRuntime call;
    return cudaMemcpy(pointer(to), pointer(from), size, kOnDevice);
}

// --- streams and events ----------------------------------------------------------------------------------------------

PHANTOM_API int cuStreamCreate(void** out, unsigned flags) {
    const NotOfTheRuntime call;
    return cudaStreamCreateWithPriority(out, flags, 0);
}
PHANTOM_API int cuStreamCreateWithPriority(void** out, unsigned flags, int priority) {
    const NotOfTheRuntime call;
    return cudaStreamCreateWithPriority(out, flags, priority);
}
PHANTOM_API int cuStreamDestroy_v2(void* stream) {
    const NotOfTheRuntime call;
    return cudaStreamDestroy(stream);
}
PHANTOM_API int cuStreamQuery(void* stream) {
    const NotOfTheRuntime call;
    return cudaStreamQuery(stream);
}
PHANTOM_API int cuStreamSynchronize(void* stream) {
    const NotOfTheRuntime call;
    return cudaStreamSynchronize(stream);
}
PHANTOM_API int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
    const NotOfTheRuntime call;
    return cudaStreamWaitEvent(stream, event, flags);
}
PHANTOM_API int cuStreamIsCapturing(void* stream, int* status) {
    const NotOfTheRuntime call;
    return cudaStreamIsCapturing(stream, status);
}
PHANTOM_API int cuThreadExchangeStreamCaptureMode(int* mode) {
    const NotOfTheRuntime call;
    return cudaThreadExchangeStreamCaptureMode(mode);
}
PHANTOM_API int cuStreamGetCtx(void* handle, void** out) {
    return call("cuStreamGetCtx", Needs::context, [&](Machine& machine, Lock&) {
        const Stream* stream = machine.stream(handle);
        if (stream == nullptr) return kInvalidHandle;
        *out = &machine.device(stream->device);
        return kSuccess;
    });
}
PHANTOM_API int cuEventCreate(void** out, unsigned flags) {
    const NotOfTheRuntime call;
    return cudaEventCreateWithFlags(out, flags);
}
PHANTOM_API int cuEventDestroy_v2(void* event) {
    const NotOfTheRuntime call;
    return cudaEventDestroy(event);
}
PHANTOM_API int cuEventRecord(void* event, void* stream) {
    const NotOfTheRuntime call;
    return cudaEventRecord(event, stream);
}
PHANTOM_API int cuEventQuery(void* event) {
    const NotOfTheRuntime call;
    return cudaEventQuery(event);
}
PHANTOM_API int cuEventSynchronize(void* event) {
    const NotOfTheRuntime call;
    return cudaEventSynchronize(event);
}
PHANTOM_API int cuEventElapsedTime(float* out, void* begin, void* end) {
    const NotOfTheRuntime call;
    return cudaEventElapsedTime(out, begin, end);
}

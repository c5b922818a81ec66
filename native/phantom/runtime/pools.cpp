// Memory pools of the runtime: cudaMallocAsync and what belongs to it.
#include "phantom/device/call.h"

using namespace movie::phantom;

namespace {

constexpr int kReleaseThreshold = 4, kReservedNow = 5, kReservedHigh = 6, kUsedNow = 7, kUsedHigh = 8;

template <class Body>
int with_pool(const char* name, void* handle, Body&& body) {
    return runtime_call(name, Needs::context, [&](Machine& machine, Lock&) -> int {
        for (const auto& pool : machine.pools)
            if (pool.get() == handle) return body(machine, *pool);
        return kInvalidValue;
    });
}

int allocate(const char* name, void** out, std::size_t size, void* pool_handle, void* stream_handle) {
    return runtime_call(name, Needs::context, [&](Machine& machine, Lock&) -> int {
        if (out == nullptr) return kInvalidValue;
        Stream* stream = machine.stream(stream_handle);
        if (stream == nullptr) return kInvalidHandle;
        if (const int code = machine.check_enqueue(*stream); code != kSuccess) return code;
        if (stream->capture) {
            // A graph would own the memory, at addresses of its own: not modelled.
            machine.invalidate(*stream->capture);
            return kCaptureUnsupported;
        }
        *out = nullptr;
        if (size == 0) return kSuccess;
        Pool* pool = pool_handle == nullptr ? machine.pools[static_cast<std::size_t>(stream->device)].get() : nullptr;
        for (const auto& one : machine.pools)
            if (one.get() == pool_handle) pool = one.get();
        if (pool == nullptr) return kInvalidValue;
        const Bytes before = pool->reserved.now;
        const auto got = pool->allocate(size, stream->id, [&](Place place) { return machine.late.reached(place); });
        // What the pool has costs next to nothing; more of the card costs what any allocation does.
        if (pool->reserved.now > before || !got.ok()) machine.charge(pool->device(), Call::malloc);
        if (!got.ok()) return kOutOfMemory;
        *out = reinterpret_cast<void*>(got.value);
        return kSuccess;
    });
}

}  // namespace

PHANTOM_API int cudaDeviceGetDefaultMemPool(void** out, int device) {
    return runtime_call("cudaDeviceGetDefaultMemPool", Needs::context, [&](Machine& machine, Lock&) {
        if (!machine.has(device)) return kInvalidDevice;
        *out = machine.pools[static_cast<std::size_t>(device)].get();
        return kSuccess;
    });
}
PHANTOM_API int cudaDeviceGetMemPool(void** out, int device) { return cudaDeviceGetDefaultMemPool(out, device); }

PHANTOM_API int cudaMallocAsync(void** out, std::size_t size, void* stream) {
    return allocate("cudaMallocAsync", out, size, nullptr, stream);
}
PHANTOM_API int cudaMallocFromPoolAsync(void** out, std::size_t size, void* pool, void* stream) {
    return allocate("cudaMallocFromPoolAsync", out, size, pool, stream);
}

PHANTOM_API int cudaFreeAsync(void* pointer, void* stream_handle) {
    return runtime_call("cudaFreeAsync", Needs::context, [&](Machine& machine, Lock&) -> int {
        if (pointer == nullptr) return kSuccess;
        Stream* stream = machine.stream(stream_handle);
        if (stream == nullptr) return kInvalidHandle;
        if (const int code = machine.check_enqueue(*stream); code != kSuccess) return code;
        if (stream->capture) {
            machine.invalidate(*stream->capture);
            return kCaptureUnsupported;
        }
        for (const auto& pool : machine.pools)
            if (pool->deallocate(reinterpret_cast<Address>(pointer), stream->id, machine.tail(*stream)))
                return kSuccess;
        machine.violation("cudaFreeAsync: no block of a pool begins at that address");
        return kInvalidValue;
    });
}

PHANTOM_API int cudaMemPoolGetAttribute(void* handle, int number, void* out) {
    return with_pool("cudaMemPoolGetAttribute", handle, [&](Machine&, Pool& pool) {
        auto& number64 = *static_cast<std::uint64_t*>(out);
        switch (number) {
            case 1:  // reuse along events, when passed, with dependencies of the driver's own
            case 2:
            case 3:
                *static_cast<int*>(out) = number == 2 ? 1 : 0;
                return kSuccess;
            case kReleaseThreshold:
                number64 = pool.release_threshold;
                return kSuccess;
            case kReservedNow:
                number64 = pool.reserved.now;
                return kSuccess;
            case kReservedHigh:
                number64 = pool.reserved.high;
                return kSuccess;
            case kUsedNow:
                number64 = pool.used.now;
                return kSuccess;
            case kUsedHigh:
                number64 = pool.used.high;
                return kSuccess;
            default:
                return kInvalidValue;
        }
    });
}

PHANTOM_API int cudaMemPoolSetAttribute(void* handle, int number, void* value) {
    return with_pool("cudaMemPoolSetAttribute", handle, [&](Machine&, Pool& pool) {
        switch (number) {
            case 1:  // how the pool reuses memory is fixed
            case 2:
            case 3:
                return kSuccess;
            case kReleaseThreshold:
                pool.release_threshold = *static_cast<std::uint64_t*>(value);
                return kSuccess;
            case kReservedHigh:
                pool.reserved.high = pool.reserved.now;
                return kSuccess;
            case kUsedHigh:
                pool.used.high = pool.used.now;
                return kSuccess;
            default:
                return kInvalidValue;
        }
    });
}

PHANTOM_API int cudaMemPoolTrimTo(void* handle, std::size_t keep) {
    return with_pool("cudaMemPoolTrimTo", handle, [&](Machine& machine, Pool& pool) {
        pool.trim(keep, [&](Place place) { return machine.late.reached(place); });
        return kSuccess;
    });
}

PHANTOM_API int cudaMemPoolSetAccess(void* handle, const void*, std::size_t) {
    return with_pool("cudaMemPoolSetAccess", handle, [](Machine& machine, Pool& pool) {
        for (int other = 0; other < machine.settings.count; ++other)
            if (machine.card.nvlink && other != pool.device()) machine.memory.set_peers(other, pool.device(), true);
        return kSuccess;
    });
}

// Memory that graphs allocate for themselves: captures with such nodes are refused, so there is none.
PHANTOM_API int cudaDeviceGetGraphMemAttribute(int device, int, void* out) {
    return runtime_call("cudaDeviceGetGraphMemAttribute", Needs::context, [&](Machine& machine, Lock&) {
        if (!machine.has(device)) return kInvalidDevice;
        *static_cast<std::uint64_t*>(out) = 0;
        return kSuccess;
    });
}
PHANTOM_API int cudaDeviceSetGraphMemAttribute(int device, int, void*) {
    return runtime_call("cudaDeviceSetGraphMemAttribute", Needs::context,
                        [&](Machine& machine, Lock&) { return machine.has(device) ? kSuccess : kInvalidDevice; });
}
PHANTOM_API int cudaDeviceGraphMemTrim(int device) {
    return runtime_call("cudaDeviceGraphMemTrim", Needs::context,
                        [&](Machine& machine, Lock&) { return machine.has(device) ? kSuccess : kInvalidDevice; });
}

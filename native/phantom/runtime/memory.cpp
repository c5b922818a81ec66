// Memory of the runtime: device, pinned host, and what a pointer is.
#include <cstdio>
#include <cstring>

#include "phantom/device/call.h"
#include "phantom/device/copies.h"
#include "phantom/runtime/abi.h"

using namespace movie::phantom;
using runtime::MemcpyKind;

namespace {

std::string hex(const void* pointer) {
    char text[24];
    std::snprintf(text, sizeof text, "%p", pointer);
    return text;
}

int malloc_on_device(const char* name, void** out, std::size_t size) {
    return runtime_call(name, Needs::context, [&](Machine& machine, Lock&) -> int {
        if (out == nullptr) return kInvalidValue;
        *out = nullptr;
        if (size == 0) return kSuccess;
        if (const int code = machine.forbid_unsafe(); code != kSuccess) return code;
        const int device = Machine::current();
        machine.charge(device, Call::malloc);
        const auto got = machine.memory.allocate(device, size);
        if (!got.ok()) {
            machine.log("cudaMalloc " + std::to_string(size) + " -> out of memory");
            return kOutOfMemory;
        }
        machine.device(device).ledger.hold(round_up(size, machine.memory.granularity()));
        *out = reinterpret_cast<void*>(got.value);
        machine.log("cudaMalloc " + std::to_string(size) + " -> " + hex(*out));
        return kSuccess;
    });
}

}  // namespace

PHANTOM_API int cudaMalloc(void** out, std::size_t size) { return malloc_on_device("cudaMalloc", out, size); }

PHANTOM_API int cudaMallocManaged(void**, std::size_t, unsigned) {
    stop("cudaMallocManaged", "device memory or pinned host memory serve instead");
}

PHANTOM_API int cudaFree(void* pointer) {
    return runtime_call("cudaFree", Needs::context, [&](Machine& machine, Lock& lock) -> int {
        if (pointer == nullptr) return kSuccess;
        if (const int code = machine.forbid_unsafe(); code != kSuccess) return code;
        const auto address = reinterpret_cast<Address>(pointer);
        const int device = machine.memory.device_of_allocation(address);
        if (device < 0) {
            machine.violation("cudaFree(" + hex(pointer) + "): no allocation begins there");
            return kInvalidValue;
        }
        machine.charge(device, Call::mfree);
        machine.wait_for_all(device, lock);
        const auto whole = machine.memory.find(address);
        machine.memory.deallocate(address);
        machine.device(device).ledger.give_back(whole->size);
        machine.log("cudaFree " + hex(pointer));
        return machine.broken;
    });
}

PHANTOM_API int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    return runtime_call("cudaMemGetInfo", Needs::context, [&](Machine& machine, Lock&) {
        const Room& room = machine.memory.room(Machine::current());
        *free = room.free();
        *total = room.total;
        return kSuccess;
    });
}

PHANTOM_API int cudaMallocPitch(void** out, std::size_t* pitch, std::size_t width, std::size_t height) {
    *pitch = round_up(width, 512);
    return cudaMalloc(out, *pitch * height);
}

// --- pinned host memory ----------------------------------------------------------------------------------------------

PHANTOM_API int cudaHostAlloc(void** out, std::size_t size, unsigned flags) {
    return runtime_call("cudaHostAlloc", Needs::context, [&](Machine& machine, Lock&) -> int {
        if (out == nullptr) return kInvalidValue;
        *out = nullptr;
        if (size == 0) return kSuccess;
        if (const int code = machine.forbid_unsafe(); code != kSuccess) return code;
        const auto got = machine.pinned.allocate(size, Machine::current(), flags);
        if (!got.ok()) return kOutOfMemory;
        *out = got.value;
        return kSuccess;
    });
}

PHANTOM_API int cudaMallocHost(void** out, std::size_t size) { return cudaHostAlloc(out, size, 0); }

PHANTOM_API int cudaFreeHost(void* pointer) {
    return runtime_call("cudaFreeHost", Needs::context, [&](Machine& machine, Lock& lock) -> int {
        if (pointer == nullptr) return kSuccess;
        if (const int code = machine.forbid_unsafe(); code != kSuccess) return code;
        for (int device = 0; device < machine.settings.count; ++device) machine.wait_for_all(device, lock);
        if (machine.pinned.deallocate(pointer)) return kSuccess;
        machine.violation("cudaFreeHost(" + hex(pointer) + "): no pinned allocation begins there");
        return kInvalidValue;
    });
}

PHANTOM_API int cudaHostRegister(void* pointer, std::size_t size, unsigned flags) {
    return runtime_call("cudaHostRegister", Needs::context, [&](Machine& machine, Lock&) -> int {
        if (pointer == nullptr || size == 0) return kInvalidValue;
        if (const int code = machine.forbid_unsafe(); code != kSuccess) return code;
        return machine.pinned.add(pointer, size, Machine::current(), flags) ? kSuccess : kHostMemoryAlreadyRegistered;
    });
}

PHANTOM_API int cudaHostUnregister(void* pointer) {
    return runtime_call("cudaHostUnregister", Needs::context, [&](Machine& machine, Lock& lock) -> int {
        if (const int code = machine.forbid_unsafe(); code != kSuccess) return code;
        for (int device = 0; device < machine.settings.count; ++device) machine.wait_for_all(device, lock);
        return machine.pinned.remove(pointer) ? kSuccess : kHostMemoryNotRegistered;
    });
}

PHANTOM_API int cudaHostGetDevicePointer(void** out, void* pointer, unsigned) {
    return runtime_call("cudaHostGetDevicePointer", Needs::context, [&](Machine& machine, Lock&) {
        if (!machine.pinned.find(pointer)) return kInvalidValue;
        *out = pointer;
        return kSuccess;
    });
}

PHANTOM_API int cudaHostGetFlags(unsigned* flags, void* pointer) {
    return runtime_call("cudaHostGetFlags", Needs::context, [&](Machine& machine, Lock&) {
        const auto range = machine.pinned.find(pointer);
        if (!range) return kInvalidValue;
        *flags = range->flags;
        return kSuccess;
    });
}

PHANTOM_API int cudaPointerGetAttributes(runtime::PointerAttributes* out, const void* pointer) {
    return runtime_call("cudaPointerGetAttributes", Needs::context, [&](Machine& machine, Lock&) {
        *out = {.type = runtime::kUnregistered, .device = -2, .device_pointer = nullptr, .host_pointer = nullptr};
        auto* address = const_cast<void*>(pointer);
        if (const auto whole = machine.memory.find(reinterpret_cast<Address>(pointer)))
            *out = {runtime::kDevice, whole->device, address, nullptr};
        else if (const auto range = machine.pinned.find(pointer))
            *out = {runtime::kHost, range->device, address, address};
        return kSuccess;
    });
}

// --- copies ----------------------------------------------------------------------------------------------------------

namespace {

// Which sides of a copy are on the card. Addresses tell; the kind must agree, but that pinned memory of the host may
// pass for memory of the card. False: they contradict.
bool sides_of(const Machine& machine, const Block& to, const Block& from, int kind, bool& to_device,
              bool& from_device) {
    to_device = machine.memory.ours(reinterpret_cast<Address>(to.pointer));
    from_device = machine.memory.ours(reinterpret_cast<Address>(from.pointer));
    if (kind == runtime::kDefault) return true;
    const auto agrees = [&](const Block& block, bool on_device, bool said) {
        return on_device == said || (said && machine.pinned.holds(block.pointer, block.span()));
    };
    const bool to_said = kind == runtime::kHostToDevice || kind == runtime::kDeviceToDevice;
    const bool from_said = kind == runtime::kDeviceToHost || kind == runtime::kDeviceToDevice;
    return agrees(to, to_device, to_said) && agrees(from, from_device, from_said);
}

int copy(const char* name, const Block& to, const Block& from, int kind, void* stream_handle, bool wait) {
    return runtime_call(name, Needs::context, [&](Machine& machine, Lock& lock) -> int {
        Stream* stream = machine.stream(stream_handle);
        if (stream == nullptr) return kInvalidHandle;
        if (kind < runtime::kHostToHost || kind > runtime::kDefault) return kInvalidValue;
        bool to_device = false, from_device = false;
        if (to.span() > 0 && !sides_of(machine, to, from, kind, to_device, from_device)) {
            machine.violation(std::string(name) + "(" + hex(to.pointer) + ", " + hex(from.pointer) + ", " +
                              std::to_string(to.span()) + "): the kind " + std::to_string(kind) +
                              " is not that of the addresses");
            return kInvalidValue;
        }
        return copy_block(machine, lock, *stream, name, {to, to_device}, {from, from_device}, wait);
    });
}

}  // namespace

PHANTOM_API int cudaMemcpyAsync(void* to, const void* from, std::size_t size, int kind, void* stream) {
    return copy("cudaMemcpyAsync", {to, size}, {const_cast<void*>(from), size}, kind, stream, false);
}

PHANTOM_API int cudaMemcpy(void* to, const void* from, std::size_t size, int kind) {
    return copy("cudaMemcpy", {to, size}, {const_cast<void*>(from), size}, kind, nullptr, true);
}

PHANTOM_API int cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                  std::size_t width, std::size_t height, int kind, void* stream) {
    return copy("cudaMemcpy2DAsync", {to, width, height, to_pitch},
                {const_cast<void*>(from), width, height, from_pitch}, kind, stream, false);
}

PHANTOM_API int cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                             std::size_t width, std::size_t height, int kind) {
    return copy("cudaMemcpy2D", {to, width, height, to_pitch}, {const_cast<void*>(from), width, height, from_pitch},
                kind, nullptr, true);
}

PHANTOM_API int cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t size,
                                    void* stream_handle) {
    return runtime_call("cudaMemcpyPeerAsync", Needs::context, [&](Machine& machine, Lock& lock) -> int {
        if (!machine.has(to_device) || !machine.has(from_device)) return kInvalidDevice;
        Stream* stream = machine.stream(stream_handle);
        if (stream == nullptr) return kInvalidHandle;
        return copy_block(machine, lock, *stream, "cudaMemcpyPeerAsync", {{to, size}, true, to_device},
                          {{const_cast<void*>(from), size}, true, from_device}, false);
    });
}

PHANTOM_API int cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, std::size_t size) {
    return cudaMemcpyPeerAsync(to, to_device, from, from_device, size, nullptr);
}

namespace {
int set(const char* name, const Block& block, int value, void* stream_handle) {
    return runtime_call(name, Needs::context, [&](Machine& machine, Lock&) -> int {
        Stream* stream = machine.stream(stream_handle);
        if (stream == nullptr) return kInvalidHandle;
        return set_block(machine, *stream, name, block, static_cast<std::uint32_t>(value), 1);
    });
}
}  // namespace

PHANTOM_API int cudaMemsetAsync(void* to, int value, std::size_t size, void* stream) {
    return set("cudaMemsetAsync", {to, size}, value, stream);
}

PHANTOM_API int cudaMemset(void* to, int value, std::size_t size) {
    return set("cudaMemset", {to, size}, value, nullptr);
}

PHANTOM_API int cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                                  void* stream) {
    return set("cudaMemset2DAsync", {to, width, height, pitch}, value, stream);
}

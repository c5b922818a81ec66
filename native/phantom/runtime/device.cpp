// Devices of the runtime: how many, which, what they are.
#include <cstdio>
#include <cstring>

#include "phantom/device/attributes.h"
#include "phantom/device/call.h"
#include "phantom/runtime/abi.h"
#include "phantom/runtime/device_prop.h"

using namespace movie::phantom;

PHANTOM_API int cudaGetDeviceCount(int* count) {
    if (count == nullptr) return last_error() = kInvalidValue;
    *count = 0;
    return runtime_call("cudaGetDeviceCount", Needs::machine, [&](Machine& machine, Lock&) {
        *count = machine.settings.count;
        return kSuccess;
    });
}

PHANTOM_API int cudaGetDevice(int* device) {
    return runtime_call("cudaGetDevice", Needs::machine, [&](Machine&, Lock&) {
        *device = Machine::current();
        return kSuccess;
    });
}

PHANTOM_API int cudaSetDevice(int device) {
    return runtime_call("cudaSetDevice", Needs::machine, [&](Machine& machine, Lock&) -> int {
        if (!machine.has(device)) return kInvalidDevice;
        Machine::make_current(device);
        return machine.activate(device);
    });
}

PHANTOM_API int cudaChooseDevice(int* device, const void*) {
    return runtime_call("cudaChooseDevice", Needs::machine, [&](Machine&, Lock&) {
        *device = 0;
        return kSuccess;
    });
}

namespace {
int properties(const char* name, void* out, int device, int version) {
    return runtime_call(name, Needs::machine, [&](Machine& machine, Lock&) {
        if (!machine.has(device)) return kInvalidDevice;
        runtime::fill_properties(out, version, machine.card, device, machine.memory.room(device).total);
        return kSuccess;
    });
}
}  // namespace

// CUDA 12 calls its layout _v2; CUDA 13 has the unversioned name to itself.
PHANTOM_API int cudaGetDeviceProperties_v2(void* out, int device) {
    return properties("cudaGetDeviceProperties", out, device, 12);
}
PHANTOM_API int cudaGetDeviceProperties(void* out, int device) {
    return properties("cudaGetDeviceProperties", out, device, 13);
}

PHANTOM_API int cudaDeviceGetAttribute(int* value, int number, int device) {
    return runtime_call("cudaDeviceGetAttribute", Needs::machine, [&](Machine& machine, Lock&) {
        if (!machine.has(device)) return kInvalidDevice;
        const auto found = attribute(machine.card, number, device);
        if (!found) return kInvalidValue;
        *value = *found;
        return kSuccess;
    });
}

PHANTOM_API int cudaDeviceGetPCIBusId(char* text, int size, int device) {
    return runtime_call("cudaDeviceGetPCIBusId", Needs::machine, [&](Machine& machine, Lock&) {
        if (!machine.has(device)) return kInvalidDevice;
        const std::string id = bus_id(device);
        if (size <= static_cast<int>(id.size())) return kInvalidValue;
        std::memcpy(text, id.c_str(), id.size() + 1);
        return kSuccess;
    });
}

PHANTOM_API int cudaDeviceGetByPCIBusId(int* device, const char* text) {
    return runtime_call("cudaDeviceGetByPCIBusId", Needs::machine, [&](Machine& machine, Lock&) {
        for (int index = 0; index < machine.settings.count; ++index)
            if (bus_id(index) == text) {
                *device = index;
                return kSuccess;
            }
        return kInvalidDevice;
    });
}

PHANTOM_API int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return runtime_call("cudaDeviceGetStreamPriorityRange", Needs::context, [&](Machine&, Lock&) {
        if (least != nullptr) *least = 0;
        if (greatest != nullptr) *greatest = -5;
        return kSuccess;
    });
}

PHANTOM_API int cudaDeviceSynchronize() {
    return runtime_call("cudaDeviceSynchronize", Needs::context, [&](Machine& machine, Lock& lock) -> int {
        if (const int code = machine.forbid_while_capturing(Machine::current()); code != kSuccess) return code;
        machine.charge(Machine::current(), Call::synchronize);
        machine.wait_for_all(Machine::current(), lock);
        return machine.broken;
    });
}

PHANTOM_API int cudaDeviceReset() { stop("cudaDeviceReset", "another process starts with a fresh card"); }

PHANTOM_API int cudaDeviceGetLimit(std::size_t* value, int) {
    return runtime_call("cudaDeviceGetLimit", Needs::context, [&](Machine&, Lock&) {
        *value = 0;
        return kSuccess;
    });
}

PHANTOM_API int cudaGetDeviceFlags(unsigned* flags) {
    return runtime_call("cudaGetDeviceFlags", Needs::machine, [&](Machine& machine, Lock&) {
        *flags = machine.device(Machine::current()).context_flags;
        return kSuccess;
    });
}

PHANTOM_API int cudaSetDeviceFlags(unsigned flags) {
    return runtime_call("cudaSetDeviceFlags", Needs::machine, [&](Machine& machine, Lock&) {
        machine.device(Machine::current()).context_flags = flags;
        return kSuccess;
    });
}

// --- peers -----------------------------------------------------------------------------------------------------------

PHANTOM_API int cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    return runtime_call("cudaDeviceCanAccessPeer", Needs::machine, [&](Machine& machine, Lock&) {
        if (!machine.has(device) || !machine.has(peer)) return kInvalidDevice;
        *can = machine.card.nvlink && device != peer ? 1 : 0;
        return kSuccess;
    });
}

PHANTOM_API int cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    return runtime_call("cudaDeviceEnablePeerAccess", Needs::context, [&](Machine& machine, Lock&) -> int {
        const int own = Machine::current();
        if (!machine.has(peer) || peer == own) return kInvalidDevice;
        if (flags != 0) return kInvalidValue;
        if (!machine.card.nvlink) return kPeerAccessUnsupported;
        if (machine.memory.peers(own, peer)) return kPeerAccessAlreadyEnabled;
        if (const int code = machine.activate(peer); code != kSuccess) return code;
        machine.memory.set_peers(own, peer, true);
        return kSuccess;
    });
}

PHANTOM_API int cudaDeviceDisablePeerAccess(int peer) {
    return runtime_call("cudaDeviceDisablePeerAccess", Needs::context, [&](Machine& machine, Lock&) {
        const int own = Machine::current();
        if (!machine.has(peer) || peer == own) return kInvalidDevice;
        if (!machine.memory.peers(own, peer)) return kPeerAccessNotEnabled;
        machine.memory.set_peers(own, peer, false);
        return kSuccess;
    });
}

PHANTOM_API int cudaDeviceGetP2PAttribute(int* value, int number, int device, int peer) {
    return runtime_call("cudaDeviceGetP2PAttribute", Needs::machine, [&](Machine& machine, Lock&) {
        if (!machine.has(device) || !machine.has(peer) || device == peer) return kInvalidDevice;
        // 1 performance rank, 2 access, 3 native atomics, 4 arrays
        *value = machine.card.nvlink && number != 1 ? 1 : 0;
        return kSuccess;
    });
}

// Devices and contexts of the driver. A context is the primary one of its device; there are no others.
#include <cstring>

#include "phantom/device/attributes.h"
#include "phantom/device/call.h"
#include "phantom/device/version.h"

using namespace movie::phantom;

PHANTOM_API int cuInit(unsigned flags) {
    return call("cuInit", Needs::machine, [&](Machine&, Lock&) { return flags == 0 ? kSuccess : kInvalidValue; });
}

PHANTOM_API int cuDriverGetVersion(int* version) {
    *version = driver_version();
    return kSuccess;
}

PHANTOM_API int cuDeviceGetCount(int* count) {
    *count = 0;
    return call("cuDeviceGetCount", Needs::machine, [&](Machine& machine, Lock&) {
        *count = machine.settings.count;
        return kSuccess;
    });
}

namespace {
template <class Body>
int with_device(const char* name, int device, Body&& body) {
    return call(name, Needs::machine, [&](Machine& machine, Lock&) -> int {
        return machine.has(device) ? static_cast<int>(body(machine)) : kInvalidDevice;
    });
}
}  // namespace

PHANTOM_API int cuDeviceGet(int* out, int ordinal) {
    return with_device("cuDeviceGet", ordinal, [&](Machine&) {
        *out = ordinal;
        return kSuccess;
    });
}

PHANTOM_API int cuDeviceGetName(char* out, int size, int device) {
    return with_device("cuDeviceGetName", device, [&](Machine& machine) {
        if (size <= 0) return kInvalidValue;
        std::strncpy(out, machine.card.name.c_str(), static_cast<std::size_t>(size) - 1);
        out[size - 1] = '\0';
        return kSuccess;
    });
}

PHANTOM_API int cuDeviceGetAttribute(int* out, int number, int device) {
    return with_device("cuDeviceGetAttribute", device, [&](Machine& machine) {
        const auto found = attribute(machine.card, number, device);
        if (!found) return kInvalidValue;
        *out = *found;
        return kSuccess;
    });
}

PHANTOM_API int cuDeviceTotalMem_v2(std::size_t* out, int device) {
    return with_device("cuDeviceTotalMem", device, [&](Machine& machine) {
        *out = machine.memory.room(device).total;
        return kSuccess;
    });
}

PHANTOM_API int cuDeviceComputeCapability(int* major, int* minor, int device) {
    return with_device("cuDeviceComputeCapability", device, [&](Machine& machine) {
        *major = machine.card.major;
        *minor = machine.card.minor;
        return kSuccess;
    });
}

PHANTOM_API int cuDeviceGetUuid_v2(void* out, int device) {
    return with_device("cuDeviceGetUuid", device, [&](Machine&) {
        fill_uuid(static_cast<char*>(out), device);
        return kSuccess;
    });
}
PHANTOM_API int cuDeviceGetUuid(void* out, int device) { return cuDeviceGetUuid_v2(out, device); }

PHANTOM_API int cuDeviceGetPCIBusId(char* out, int size, int device) {
    return with_device("cuDeviceGetPCIBusId", device, [&](Machine&) {
        const std::string id = bus_id(device);
        if (size <= static_cast<int>(id.size())) return kInvalidValue;
        std::memcpy(out, id.c_str(), id.size() + 1);
        return kSuccess;
    });
}

PHANTOM_API int cuDeviceCanAccessPeer(int* can, int device, int peer) {
    return with_device("cuDeviceCanAccessPeer", device, [&](Machine& machine) {
        if (!machine.has(peer)) return kInvalidDevice;
        *can = machine.card.nvlink && device != peer ? 1 : 0;
        return kSuccess;
    });
}

// --- contexts --------------------------------------------------------------------------------------------------------

namespace {
// The handle of a device's context.
void* context_of(Machine& machine, int device) { return &machine.device(device); }
int device_of(Machine& machine, const void* context) {
    for (const Device& one : machine.devices)
        if (&one == context) return one.index;
    return -1;
}
thread_local bool unbound = false;  // cuCtxSetCurrent(null) was called
}  // namespace

PHANTOM_API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
    return with_device("cuDevicePrimaryCtxGetState", device, [&](Machine& machine) {
        *flags = machine.device(device).context_flags;
        *active = machine.device(device).active ? 1 : 0;
        return kSuccess;
    });
}

PHANTOM_API int cuDevicePrimaryCtxRetain(void** out, int device) {
    return with_device("cuDevicePrimaryCtxRetain", device, [&](Machine& machine) {
        *out = context_of(machine, device);
        return machine.activate(device);
    });
}
PHANTOM_API int cuDevicePrimaryCtxRelease_v2(int device) {
    return with_device("cuDevicePrimaryCtxRelease", device, [](Machine&) { return kSuccess; });
}
PHANTOM_API int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
    return with_device("cuDevicePrimaryCtxSetFlags", device, [&](Machine& machine) {
        machine.device(device).context_flags = flags;
        return kSuccess;
    });
}

PHANTOM_API int cuCtxGetCurrent(void** out) {
    return call("cuCtxGetCurrent", Needs::machine, [&](Machine& machine, Lock&) {
        const Device& one = machine.device(Machine::current());
        *out = one.active && !unbound ? context_of(machine, one.index) : nullptr;
        return kSuccess;
    });
}

PHANTOM_API int cuCtxSetCurrent(void* context) {
    return call("cuCtxSetCurrent", Needs::machine, [&](Machine& machine, Lock&) {
        unbound = context == nullptr;
        if (unbound) return kSuccess;
        const int device = device_of(machine, context);
        if (device < 0) return kInvalidContext;
        Machine::make_current(device);
        return kSuccess;
    });
}

namespace {
thread_local std::vector<std::pair<int, bool>> pushed;
}

PHANTOM_API int cuCtxPushCurrent_v2(void* context) {
    return call("cuCtxPushCurrent", Needs::machine, [&](Machine& machine, Lock&) {
        const int device = device_of(machine, context);
        if (device < 0) return kInvalidContext;
        pushed.emplace_back(Machine::current(), unbound);
        unbound = false;
        Machine::make_current(device);
        return kSuccess;
    });
}

PHANTOM_API int cuCtxPopCurrent_v2(void** out) {
    return call("cuCtxPopCurrent", Needs::machine, [&](Machine& machine, Lock&) {
        if (pushed.empty()) return kInvalidContext;
        if (out != nullptr) *out = context_of(machine, Machine::current());
        Machine::make_current(pushed.back().first);
        unbound = pushed.back().second;
        pushed.pop_back();
        return kSuccess;
    });
}

PHANTOM_API int cuCtxGetDevice(int* out) {
    return call("cuCtxGetDevice", Needs::machine, [&](Machine&, Lock&) {
        if (unbound) return kInvalidContext;
        *out = Machine::current();
        return kSuccess;
    });
}

PHANTOM_API int cuCtxSynchronize() {
    return call("cuCtxSynchronize", Needs::context, [](Machine& machine, Lock& lock) -> int {
        if (const int code = machine.forbid_while_capturing(Machine::current()); code != kSuccess) return code;
        machine.charge(Machine::current(), Call::synchronize);
        machine.wait_for_all(Machine::current(), lock);
        return machine.broken;
    });
}

PHANTOM_API int cuCtxGetLimit(std::size_t* out, int) {
    return call("cuCtxGetLimit", Needs::context, [&](Machine&, Lock&) {
        *out = 0;
        return kSuccess;
    });
}
PHANTOM_API int cuCtxGetApiVersion(void*, unsigned* version) {
    *version = 3020;  // of contexts, the same for many years
    return kSuccess;
}
PHANTOM_API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return call("cuCtxGetStreamPriorityRange", Needs::context, [&](Machine&, Lock&) {
        *least = 0;
        *greatest = -5;
        return kSuccess;
    });
}

// --- errors ----------------------------------------------------------------------------------------------------------

PHANTOM_API int cuGetErrorString(int code, const char** out) {
    const CodeText* text = text_of(code);
    *out = text == nullptr ? nullptr : text->text;
    return text == nullptr ? kInvalidValue : kSuccess;
}
PHANTOM_API int cuGetErrorName(int code, const char** out) {
    const CodeText* text = text_of(code);
    *out = text == nullptr ? nullptr : text->driver;
    return text == nullptr ? kInvalidValue : kSuccess;
}

// --- log of the driver's errors: ours are said on standard error, where people see them
// -------------------------------

PHANTOM_API int cuLogsRegisterCallback(void* function, void*, void** out) {
    if (function == nullptr || out == nullptr) return kInvalidValue;
    *out = function;
    return kSuccess;
}

// The driver's virtual memory management, with its rules enforced.
#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "phantom/device/call.h"

using namespace movie::phantom;

namespace {

struct Location {
    int type;  // 1: a device
    int id;
};

struct AllocationProp {
    int type;               // 1: pinned memory
    int requested_handles;  // a bit each: 1 POSIX file descriptor, 8 fabric
    Location location;
    void* win32_metadata;
    struct {
        unsigned char compression, rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};

struct AccessDesc {
    Location location;
    int flags;  // 0 none, 1 read, 3 read and write
};

constexpr int kPinnedMemory = 1, kDeviceLocation = 1;
constexpr int kPosixDescriptor = 1, kFabric = 8;

template <class... Arguments>
std::string form(const char* format, Arguments... arguments) {
    char text[256];
    std::snprintf(text, sizeof text, format, arguments...);
    return text;
}

int check_prop(const Machine& machine, const AllocationProp* prop) {
    if (prop == nullptr || prop->type != kPinnedMemory) return kInvalidValue;
    if (prop->location.type != kDeviceLocation) return kNotSupported;
    if (!machine.has(prop->location.id)) return kInvalidDevice;
    return kSuccess;
}

}  // namespace

PHANTOM_API int cuMemGetAllocationGranularity(std::size_t* out, const AllocationProp* prop, int) {
    return call("cuMemGetAllocationGranularity", Needs::machine, [&](Machine& machine, Lock&) -> int {
        if (const int code = check_prop(machine, prop); code != kSuccess) return code;
        *out = machine.memory.granularity();
        return kSuccess;
    });
}

PHANTOM_API int cuMemAddressReserve(std::uint64_t* out, std::size_t size, std::size_t alignment, std::uint64_t wanted,
                                    unsigned long long flags) {
    return call("cuMemAddressReserve", Needs::context, [&](Machine& machine, Lock&) -> int {
        if (out == nullptr || flags != 0 || (alignment & (alignment - 1)) != 0) return kInvalidValue;
        machine.charge(Machine::current(), Call::reserve);
        const auto got = machine.memory.reserve(size, alignment, wanted);
        machine.log(form("cuMemAddressReserve %zu -> 0x%" PRIx64, size, got.value));
        if (!got.ok()) return kOutOfMemory;
        *out = got.value;
        return kSuccess;
    });
}

PHANTOM_API int cuMemAddressFree(std::uint64_t address, std::size_t size) {
    return call("cuMemAddressFree", Needs::context, [&](Machine& machine, Lock&) {
        machine.charge(Machine::current(), Call::free_address);
        machine.memory.free_reservation(address, size);
        machine.log(form("cuMemAddressFree 0x%" PRIx64 " %zu", address, size));
        return kSuccess;
    });
}

PHANTOM_API int cuMemCreate(std::uint64_t* out, std::size_t size, const AllocationProp* prop,
                            unsigned long long flags) {
    return call("cuMemCreate", Needs::context, [&](Machine& machine, Lock&) -> int {
        if (out == nullptr || flags != 0) return kInvalidValue;
        if (const int code = check_prop(machine, prop); code != kSuccess) return code;
        if ((prop->requested_handles & kFabric) != 0 && !machine.card.fabric) return kNotPermitted;
        if ((prop->requested_handles & ~(kFabric | kPosixDescriptor)) != 0) return kNotSupported;
        const int device = prop->location.id;
        machine.charge(device, Call::create);
        const auto got = machine.memory.create(device, size, (prop->requested_handles & kPosixDescriptor) != 0);
        machine.log(form("cuMemCreate %zu -> %" PRIu64, size, got.value));
        if (!got.ok()) return kOutOfMemory;
        machine.device(device).ledger.hold(size);
        *out = got.value;
        return kSuccess;
    });
}

PHANTOM_API int cuMemRelease(std::uint64_t handle) {
    return call("cuMemRelease", Needs::context, [&](Machine& machine, Lock&) {
        const int device = machine.memory.device_of(handle);
        machine.charge(device < 0 ? Machine::current() : device, Call::release);
        machine.memory.release(handle);
        machine.log(form("cuMemRelease %" PRIu64, handle));
        return kSuccess;
    });
}

PHANTOM_API int cuMemMap(std::uint64_t address, std::size_t size, std::size_t offset, std::uint64_t handle,
                         unsigned long long flags) {
    return call("cuMemMap", Needs::context, [&](Machine& machine, Lock&) -> int {
        if (flags != 0) return kInvalidValue;
        const int device = machine.memory.device_of(handle);
        machine.charge(device < 0 ? Machine::current() : device, Call::map);
        if (machine.memory.map(address, size, offset, handle) != Status::ok) {
            say("cuMemMap: this system has no room for one more mapping (see /proc/sys/vm/max_map_count)");
            return kOutOfMemory;
        }
        machine.log(form("cuMemMap 0x%" PRIx64 " %zu handle %" PRIu64, address, size, handle));
        return kSuccess;
    });
}

PHANTOM_API int cuMemUnmap(std::uint64_t address, std::size_t size) {
    return call("cuMemUnmap", Needs::context, [&](Machine& machine, Lock&) -> int {
        const auto whole = machine.memory.find(address);
        const int device = whole ? whole->device : Machine::current();
        machine.charge(device, Call::unmap);
        const std::uint64_t handles = machine.memory.handles_in("unmap", address, size);
        machine.charge_handles(device, Call::unmap, handles);
        if (const char* what = machine.late.touching(address, size, false); what != nullptr)
            machine.violation(form("cuMemUnmap(address=0x%" PRIx64 ", size=%zu): queued work (%s) still touches the "
                                   "range, and the driver does not wait for it",
                                   address, size, what));
        machine.memory.unmap(address, size);
        machine.log(form("cuMemUnmap 0x%" PRIx64 " %zu", address, size));
        return kSuccess;
    });
}

PHANTOM_API int cuMemSetAccess(std::uint64_t address, std::size_t size, const AccessDesc* descriptions,
                               std::size_t count) {
    return call("cuMemSetAccess", Needs::context, [&](Machine& machine, Lock&) -> int {
        const auto whole = machine.memory.find(address);
        const int device = whole ? whole->device : Machine::current();
        machine.charge(device, Call::set_access);
        const std::uint64_t handles = machine.memory.handles_in("set_access", address, size);
        for (std::size_t at = 0; at < count; ++at) {
            const AccessDesc& one = descriptions[at];
            if (one.location.type != kDeviceLocation || (one.flags != 0 && one.flags != 1 && one.flags != 3))
                return kInvalidValue;
            if (!machine.has(one.location.id)) return kInvalidDevice;
            if (one.location.id != device && !machine.card.nvlink) return kInvalidDevice;
        }
        machine.charge_handles(device, Call::set_access, handles);
        for (std::size_t at = 0; at < count; ++at)
            machine.memory.set_access(address, size, descriptions[at].location.id, descriptions[at].flags != 0);
        machine.log(form("cuMemSetAccess 0x%" PRIx64 " %zu", address, size));
        return kSuccess;
    });
}

PHANTOM_API int cuMemGetAccess(unsigned long long* flags, const Location* location, std::uint64_t address) {
    return call("cuMemGetAccess", Needs::context, [&](Machine& machine, Lock&) {
        if (!machine.memory.find(address) || location->type != kDeviceLocation) return kInvalidValue;
        if (!machine.has(location->id)) return kInvalidDevice;
        *flags = machine.memory.has_access(address, location->id) ? 3 : 0;
        return kSuccess;
    });
}

PHANTOM_API int cuMemRetainAllocationHandle(std::uint64_t* out, void* address) {
    return call("cuMemRetainAllocationHandle", Needs::context, [&](Machine& machine, Lock&) {
        const auto handle = machine.memory.handle_at(reinterpret_cast<Address>(address));
        if (!handle) return kInvalidValue;
        machine.memory.retain(*handle);
        *out = *handle;
        return kSuccess;
    });
}

PHANTOM_API int cuMemGetAllocationPropertiesFromHandle(AllocationProp* out, std::uint64_t handle) {
    return call("cuMemGetAllocationPropertiesFromHandle", Needs::context, [&](Machine& machine, Lock&) {
        const int device = machine.memory.device_of(handle);
        if (device < 0) return kInvalidValue;
        std::memset(out, 0, sizeof *out);
        out->type = kPinnedMemory;
        out->requested_handles = machine.memory.shareable(handle) ? kPosixDescriptor : 0;
        out->location = {kDeviceLocation, device};
        return kSuccess;
    });
}

PHANTOM_API int cuMemExportToShareableHandle(void* out, std::uint64_t handle, int type, unsigned long long) {
    return call("cuMemExportToShareableHandle", Needs::context, [&](Machine& machine, Lock&) -> int {
        if (machine.memory.device_of(handle) < 0) return kInvalidValue;
        if (type == kFabric) return machine.card.fabric ? kNotPermitted : kNotSupported;
        if (type != kPosixDescriptor || !machine.memory.shareable(handle)) return kInvalidValue;
        const int descriptor = fcntl(machine.memory.descriptor(handle), F_DUPFD_CLOEXEC, 0);
        if (descriptor < 0) return kUnknown;
        *static_cast<int*>(out) = descriptor;
        return kSuccess;
    });
}

PHANTOM_API int cuMemImportFromShareableHandle(std::uint64_t* out, void* shared, int type) {
    return call("cuMemImportFromShareableHandle", Needs::context, [&](Machine& machine, Lock&) -> int {
        if (type == kFabric) return kNotSupported;
        if (type != kPosixDescriptor) return kInvalidValue;
        const int descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(shared));
        const auto handle = machine.memory.import_descriptor(Machine::current(), descriptor);
        if (!handle) return kInvalidValue;
        *out = *handle;
        return kSuccess;
    });
}

// The part of NVML that PyTorch and its tools ask: which cards there are, and how they are connected.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "phantom/device/attributes.h"
#include "phantom/device/call.h"
#include "phantom/device/version.h"

using namespace movie::phantom;

namespace {

enum Return : int {
    kOk = 0,
    kUninitialized = 1,
    kInvalidArgument = 2,
    kUnsupported = 3,
    kMissing = 6,
    kInsufficientSize = 7,
};

// NVML works without a context, and in children of a process that used the card.
Machine* machine() { return Machine::instance(); }

int index_of(void* handle) {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    return machine() != nullptr && number >= 1 && machine()->has(static_cast<int>(number - 1))
               ? static_cast<int>(number - 1)
               : -1;
}

int give(void** out, int index) {
    if (machine() == nullptr || !machine()->has(index)) return kInvalidArgument;
    *out = reinterpret_cast<void*>(static_cast<std::uintptr_t>(index) + 1);
    return kOk;
}

int give_text(char* out, unsigned size, const std::string& text) {
    if (size <= text.size()) return kInsufficientSize;
    std::memcpy(out, text.c_str(), text.size() + 1);
    return kOk;
}

std::string uuid(int index) {
    char bytes[16];
    fill_uuid(bytes, index);
    std::string text = "GPU-";
    for (int at = 0; at < 16; ++at) {
        char pair[4];
        std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned char>(bytes[at]));
        text += pair;
        if (at == 3 || at == 5 || at == 7 || at == 9) text += '-';
    }
    return text;
}

}  // namespace

PHANTOM_API int nvmlInit_v2() { return machine() == nullptr ? 9 : kOk; }  // 9: no driver
PHANTOM_API int nvmlInit() { return nvmlInit_v2(); }
PHANTOM_API int nvmlInitWithFlags(unsigned) { return nvmlInit_v2(); }

PHANTOM_API const char* nvmlErrorString(int code) {
    switch (code) {
        case kOk:
            return "The operation was successful";
        case kInvalidArgument:
            return "A supplied argument is invalid";
        case kUnsupported:
            return "The phantom card does not support this";
        case kMissing:
            return "Not found";
        case kInsufficientSize:
            return "The buffer is too small";
        case 9:
            return "There is no driver";
        default:
            return "Unknown error";
    }
}

PHANTOM_API int nvmlSystemGetCudaDriverVersion_v2(int* out) {
    *out = driver_version();
    return kOk;
}
PHANTOM_API int nvmlSystemGetCudaDriverVersion(int* out) { return nvmlSystemGetCudaDriverVersion_v2(out); }
PHANTOM_API int nvmlSystemGetDriverVersion(char* out, unsigned size) { return give_text(out, size, "580.0"); }
PHANTOM_API int nvmlSystemGetNVMLVersion(char* out, unsigned size) { return give_text(out, size, "13.580.0"); }

PHANTOM_API int nvmlDeviceGetCount_v2(unsigned* out) {
    *out = machine() == nullptr ? 0 : static_cast<unsigned>(machine()->settings.count);
    return kOk;
}
PHANTOM_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** out) { return give(out, static_cast<int>(index)); }
PHANTOM_API int nvmlDeviceGetHandleByPciBusId_v2(const char* text, void** out) {
    // Programs write the domain with four digits or eight.
    const std::string asked(text);
    for (int index = 0; machine() != nullptr && index < machine()->settings.count; ++index) {
        const std::string id = bus_id(index);
        if (asked.size() >= id.size() && asked.compare(asked.size() - id.size(), id.size(), id) == 0)
            return give(out, index);
    }
    return kMissing;
}
PHANTOM_API int nvmlDeviceGetHandleByUUID(const char* text, void** out) {
    for (int index = 0; machine() != nullptr && index < machine()->settings.count; ++index)
        if (uuid(index) == text) return give(out, index);
    return kMissing;
}
PHANTOM_API int nvmlDeviceGetIndex(void* device, unsigned* out) {
    if (index_of(device) < 0) return kInvalidArgument;
    *out = static_cast<unsigned>(index_of(device));
    return kOk;
}
PHANTOM_API int nvmlDeviceGetName(void* device, char* out, unsigned size) {
    return index_of(device) < 0 ? static_cast<int>(kInvalidArgument) : give_text(out, size, machine()->card.name);
}
PHANTOM_API int nvmlDeviceGetUUID(void* device, char* out, unsigned size) {
    return index_of(device) < 0 ? static_cast<int>(kInvalidArgument) : give_text(out, size, uuid(index_of(device)));
}
PHANTOM_API int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
    if (index_of(device) < 0) return kInvalidArgument;
    *major = machine()->card.major;
    *minor = machine()->card.minor;
    return kOk;
}

namespace {
struct MemoryV1 {
    unsigned long long total, free, used;
};
struct MemoryV2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
Room room_of(int index) {
    // In a child of a process that used the card nobody changes the books, and the lock may have been held at the fork.
    const Lock lock = Machine::forked() ? Lock() : Lock(machine()->mutex);
    return machine()->memory.room(index);
}
}  // namespace

PHANTOM_API int nvmlDeviceGetMemoryInfo(void* device, MemoryV1* out) {
    if (index_of(device) < 0) return kInvalidArgument;
    const Room room = room_of(index_of(device));
    *out = {room.total, room.free(), room.total - room.free()};
    return kOk;
}
PHANTOM_API int nvmlDeviceGetMemoryInfo_v2(void* device, MemoryV2* out) {
    if (index_of(device) < 0) return kInvalidArgument;
    const Room room = room_of(index_of(device));
    out->total = room.total;
    out->reserved = 0;
    out->free = room.free();
    out->used = room.total - room.free();
    return kOk;
}

// The only process that a phantom card knows is this one.
namespace {
struct ProcessV1 {
    unsigned process;
    unsigned long long used;
};
struct ProcessV3 {
    unsigned process;
    unsigned long long used;
    unsigned instance, compute_instance;
};

template <class Process>
int processes(void* device, unsigned* count, Process* out) {
    if (index_of(device) < 0 || count == nullptr) return kInvalidArgument;
    const Room room = room_of(index_of(device));
    const unsigned room_for = *count;
    *count = room.context == 0 ? 0 : 1;
    if (room_for < *count) return kInsufficientSize;
    if (*count == 1) {
        out->process = static_cast<unsigned>(getpid());
        out->used = room.context + room.used;
    }
    return kOk;
}
}  // namespace

PHANTOM_API int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, ProcessV1* out) {
    return processes(device, count, out);
}
PHANTOM_API int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, ProcessV3* out) {
    return processes(device, count, out);
}
PHANTOM_API int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessV3* out) {
    return processes(device, count, out);
}

namespace {
struct FabricInfo {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;  // 0: the card has no fabric
    unsigned health;
};
}  // namespace

PHANTOM_API int nvmlDeviceGetGpuFabricInfoV(void* device, FabricInfo* out) {
    if (index_of(device) < 0) return kInvalidArgument;
    if (machine()->card.major < 9) return kUnsupported;
    *out = {.version = out->version, .cluster = {}, .status = kOk, .clique = 0, .state = 0, .health = 0};
    return kOk;
}

// What is not there, or has no value on a card that does nothing.
PHANTOM_API int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int*) { return kUnsupported; }
PHANTOM_API int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, void*) { return kUnsupported; }
PHANTOM_API int nvmlDeviceGetNvLinkState(void*, unsigned, int*) { return kUnsupported; }
PHANTOM_API int nvmlDeviceGetUtilizationRates(void*, void*) { return kUnsupported; }
PHANTOM_API int nvmlDeviceGetTemperature(void*, int, unsigned*) { return kUnsupported; }
PHANTOM_API int nvmlDeviceGetPowerUsage(void*, unsigned*) { return kUnsupported; }
PHANTOM_API int nvmlDeviceGetClockInfo(void*, int, unsigned*) { return kUnsupported; }

PHANTOM_API int nvmlDeviceGetP2PStatus(void* device, void* peer, int, int* status) {
    if (index_of(device) < 0 || index_of(peer) < 0) return kInvalidArgument;
    *status = machine()->card.nvlink ? 0 : 4;  // 0 fine, 4 not supported
    return kOk;
}

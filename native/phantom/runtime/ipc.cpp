// Memory and events shared between processes in the old way. Each process has books of its own: memory of another one
// has an address here and takes no room, and its events count as passed.
#include <unistd.h>

#include <cstring>

#include "phantom/device/call.h"

using namespace movie::phantom;

namespace {

constexpr std::uint64_t kMagic = 0x6d6f6e7470686131;

struct Token {
    std::uint64_t magic;
    std::int32_t process, device;
    std::uint64_t begin, size;
    char rest[32];
};
static_assert(sizeof(Token) == 64);

}  // namespace

PHANTOM_API int cudaIpcGetMemHandle(Token* out, void* pointer) {
    return runtime_call("cudaIpcGetMemHandle", Needs::context, [&](Machine& machine, Lock&) {
        const auto whole = machine.memory.find(reinterpret_cast<Address>(pointer));
        if (!whole || whole->mapped_handle) return kInvalidValue;
        *out = {.magic = kMagic,
                .process = getpid(),
                .device = whole->device,
                .begin = whole->begin,
                .size = whole->size,
                .rest = {}};
        return kSuccess;
    });
}

PHANTOM_API int cudaIpcOpenMemHandle(void** out, Token token, unsigned) {
    return runtime_call("cudaIpcOpenMemHandle", Needs::context, [&](Machine& machine, Lock&) -> int {
        if (token.magic != kMagic) return kInvalidValue;
        if (token.process == getpid()) return kInvalidContext;  // only for other processes
        if (!machine.has(token.device)) return kInvalidDevice;
        if (machine.memory.bytes()) {
            say("cudaIpcOpenMemHandle: bytes mode does not share plain allocations between processes; share handles of "
                "cuMemCreate by file descriptors instead");
            return kNotSupported;
        }
        const auto got = machine.memory.import_range(token.device, token.size);
        if (!got.ok()) return kOutOfMemory;
        *out = reinterpret_cast<void*>(got.value);
        return kSuccess;
    });
}

PHANTOM_API int cudaIpcCloseMemHandle(void* pointer) {
    return runtime_call("cudaIpcCloseMemHandle", Needs::context, [&](Machine& machine, Lock&) {
        return machine.memory.forget_range(reinterpret_cast<Address>(pointer)) ? kSuccess : kInvalidValue;
    });
}

PHANTOM_API int cudaIpcGetEventHandle(Token* out, void* handle) {
    return runtime_call("cudaIpcGetEventHandle", Needs::context, [&](Machine& machine, Lock&) {
        const Event* event = machine.event(handle);
        constexpr unsigned kInterprocess = 4;
        if (event == nullptr || (event->flags & kInterprocess) == 0) return kInvalidHandle;
        *out = {.magic = kMagic,
                .process = getpid(),
                .device = event->device,
                .begin = reinterpret_cast<Address>(handle),
                .size = 0,
                .rest = {}};
        return kSuccess;
    });
}

PHANTOM_API int cudaIpcOpenEventHandle(void** out, Token token) {
    return runtime_call("cudaIpcOpenEventHandle", Needs::context, [&](Machine& machine, Lock&) {
        if (token.magic != kMagic || token.size != 0) return kInvalidValue;
        if (token.process == getpid()) return kInvalidContext;
        *out = machine.create_event(2);
        return kSuccess;
    });
}

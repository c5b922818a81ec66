#include "phantom/libraries/nccl/communicator.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>

#include "phantom/device/wheel.h"
#include "phantom/libraries/export.h"

namespace movie::phantom::nccl {

Communicator* make_communicator(int rank, int size, int device) {
    auto* made = new (std::nothrow) Communicator;
    if (made) made->rank = rank, made->size = size, made->device = device;
    return made;
}

}  // namespace movie::phantom::nccl

using namespace movie::phantom::nccl;

namespace {

constexpr int kNoColor = -1;                 // of a split: this rank is in none
constexpr int kVersionWithoutWheel = 22809;  // a version to name where no wheel is loaded

struct UniqueId {
    std::array<char, 128> bytes;
};

bool good(const Communicator* communicator) { return communicator && communicator->valid(); }

Result join(Communicator** communicator, int size, int rank, int device) {
    if (!communicator || size < 1 || rank < 0 || rank >= size) return kInvalidArgument;
    if (device < 0) return kUnhandledCudaError;
    *communicator = make_communicator(rank, size, device);
    return *communicator ? kSuccess : kSystemError;
}

Result join(Communicator** communicator, int size, int rank) {
    return join(communicator, size, rank, movie::phantom::current_device());
}

Result leave(Communicator* communicator) {
    if (!good(communicator)) return kInvalidArgument;
    communicator->mark = 0;
    delete communicator;
    return kSuccess;
}

template <typename Value>
Result tell(const Communicator* communicator, int Communicator::* field, Value* value) {
    if (!good(communicator) || !value) return kInvalidArgument;
    *value = communicator->*field;
    return kSuccess;
}

void fill(UniqueId* id) {
    std::random_device random;
    for (auto& byte : id->bytes) byte = static_cast<char>(random());
}

}  // namespace

PHANTOM_EXPORT int ncclGetVersion(int* version) {
    if (!version) return kInvalidArgument;
    auto* real = movie::phantom::of_wheel<int(int*)>("libnccl.so", "ncclGetVersion");
    if (real) return real(version);
    *version = kVersionWithoutWheel;
    return kSuccess;
}

PHANTOM_EXPORT const char* ncclGetErrorString(int result) {
    switch (result) {
        case kSuccess:
            return "no error";
        case kUnhandledCudaError:
            return "unhandled cuda error";
        case kSystemError:
            return "unhandled system error";
        case kInvalidArgument:
            return "invalid argument";
        case kInvalidUsage:
            return "invalid usage";
        default:
            return "unknown result code";
    }
}
PHANTOM_EXPORT const char* ncclGetLastError(const Communicator*) { return "the phantom keeps no log"; }

PHANTOM_EXPORT int ncclGetUniqueId(UniqueId* id) {
    if (!id) return kInvalidArgument;
    fill(id);
    return kSuccess;
}
PHANTOM_EXPORT int ncclCommGetUniqueId(const Communicator* communicator, UniqueId* id) {
    if (!good(communicator) || !id) return kInvalidArgument;
    fill(id);
    return kSuccess;
}

PHANTOM_EXPORT int ncclCommInitRank(Communicator** communicator, int size, UniqueId, int rank) {
    return join(communicator, size, rank);
}
PHANTOM_EXPORT int ncclCommInitRankConfig(Communicator** communicator, int size, UniqueId, int rank, const void*) {
    return join(communicator, size, rank);
}
PHANTOM_EXPORT int ncclCommInitRankScalable(Communicator** communicator, int size, int rank, int, const UniqueId*,
                                            const void*) {
    return join(communicator, size, rank);
}
// One process with a communicator on each of its devices.
PHANTOM_EXPORT int ncclCommInitAll(Communicator** communicators, int size, const int* devices) {
    if (!communicators || size < 1) return kInvalidArgument;
    for (int rank = 0; rank < size; ++rank) {
        const auto result = join(&communicators[rank], size, rank, devices ? devices[rank] : rank);
        if (result != kSuccess) return result;
    }
    return kSuccess;
}
// Which ranks have the same colour is known only to all of them together, and here one is there. So the part is taken
// to be as large as its parent. Callers number the ranks of the part with the keys.
PHANTOM_EXPORT int ncclCommSplit(const Communicator* parent, int color, int key, Communicator** made, const void*) {
    if (!good(parent) || !made) return kInvalidArgument;
    *made = nullptr;
    if (color == kNoColor) return kSuccess;
    const int rank = key >= 0 && key < parent->size ? key : parent->rank;
    return join(made, parent->size, rank, parent->device);
}
PHANTOM_EXPORT int ncclCommShrink(const Communicator* parent, const int* excluded, int count, Communicator** made,
                                  const void*, int) {
    if (!good(parent) || !made || (count && !excluded)) return kInvalidArgument;
    int before = 0;
    for (int i = 0; i < count; ++i) {
        if (excluded[i] == parent->rank) return kInvalidArgument;
        before += excluded[i] < parent->rank;
    }
    return join(made, parent->size - count, parent->rank - before, parent->device);
}
PHANTOM_EXPORT int ncclCommGrow(const Communicator* parent, int size, const UniqueId*, int rank, Communicator** made,
                                const void*) {
    if (parent && !good(parent)) return kInvalidArgument;
    return join(made, size, parent ? parent->rank : rank);
}
PHANTOM_EXPORT int ncclCommDestroy(Communicator* communicator) { return leave(communicator); }
PHANTOM_EXPORT int ncclCommAbort(Communicator* communicator) { return leave(communicator); }
PHANTOM_EXPORT int ncclCommFinalize(const Communicator* communicator) {
    return good(communicator) ? kSuccess : kInvalidArgument;
}
PHANTOM_EXPORT int ncclCommRevoke(Communicator* communicator, int) {
    if (!good(communicator)) return kInvalidArgument;
    communicator->aborted = true;
    return kSuccess;
}
PHANTOM_EXPORT int ncclCommGetAsyncError(const Communicator* communicator, int* error) {
    if (!good(communicator) || !error) return kInvalidArgument;
    *error = kSuccess;
    return kSuccess;
}
PHANTOM_EXPORT int ncclCommCount(const Communicator* communicator, int* count) {
    return tell(communicator, &Communicator::size, count);
}
PHANTOM_EXPORT int ncclCommUserRank(const Communicator* communicator, int* rank) {
    return tell(communicator, &Communicator::rank, rank);
}
PHANTOM_EXPORT int ncclCommCuDevice(const Communicator* communicator, int* device) {
    return tell(communicator, &Communicator::device, device);
}

// Registration only spares copies on the card: the handle is the buffer's address.
PHANTOM_EXPORT int ncclCommRegister(const Communicator* communicator, void* buffer, std::size_t, void** handle) {
    if (!good(communicator) || !buffer || !handle) return kInvalidArgument;
    *handle = buffer;
    return kSuccess;
}
PHANTOM_EXPORT int ncclCommDeregister(const Communicator* communicator, void* handle) {
    return good(communicator) && handle ? kSuccess : kInvalidArgument;
}
PHANTOM_EXPORT int ncclMemAlloc(void** address, std::size_t bytes) {
    if (!address) return kInvalidArgument;
    *address = movie::phantom::allocate(bytes);
    return *address ? kSuccess : kUnhandledCudaError;
}
PHANTOM_EXPORT int ncclMemFree(void* address) {
    return movie::phantom::release(address) ? kSuccess : kUnhandledCudaError;
}

PHANTOM_EXPORT int ncclRedOpCreatePreMulSum(int* operation, const void* scalar, int type, int,
                                            Communicator* communicator) {
    constexpr int kBuiltIn = 5;  // sum, product, maximum, minimum, average
    if (!operation || !scalar || !size_of(type) || !good(communicator)) return kInvalidArgument;
    *operation = kBuiltIn + static_cast<int>(communicator->operations++);
    return kSuccess;
}
PHANTOM_EXPORT int ncclRedOpDestroy(int, const Communicator* communicator) {
    return good(communicator) ? kSuccess : kInvalidArgument;
}

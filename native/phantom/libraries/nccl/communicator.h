// A NCCL communicator as one of its ranks sees it. The other ranks are not there: nothing waits for them, and nothing
// comes from them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "phantom/libraries/card.h"

namespace movie::phantom::nccl {

enum Result : int {
    kSuccess = 0,
    kUnhandledCudaError = 1,
    kSystemError = 2,
    kInvalidArgument = 4,
    kInvalidUsage = 5,
};

struct Communicator {
    static constexpr unsigned kMark = 0x6e63636c;

    unsigned mark = kMark;
    int rank = 0;
    int size = 1;
    int device = 0;
    bool aborted = false;
    std::uint64_t operations = 0;  // made so far: names premultiplied operators

    [[nodiscard]] bool valid() const { return mark == kMark; }
};

inline bool usable(const Communicator* communicator) {
    return communicator && communicator->valid() && !communicator->aborted;
}

// Null where the memory of the host ends.
Communicator* make_communicator(int rank, int size, int device);

// Groups: what is called between start and end of this thread's group is one launch for each stream, at the end.
void group_start();
Result group_end();
// Work of `communicator` on `stream`, now or at the end of the group.
Result enqueue(const Communicator* communicator, Stream stream);

// Bytes of one element; 0 for an unknown type.
std::size_t size_of(int type);

}  // namespace movie::phantom::nccl

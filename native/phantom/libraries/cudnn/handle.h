// A cuDNN handle, and the status codes that all of the stand-in answers with.
#pragma once

#include <cstddef>

#include "phantom/libraries/card.h"

namespace movie::phantom::cudnn {

enum Status : int {
    kSuccess = 0,
    kNotInitialized = 1001,
    kBadParameter = 2000,
    kNullPointer = 2002,
    kNotFinalized = 2004,
    kWorkspaceTooSmall = 2006,
    kBadAttributeType = 2010,
    kNotSupported = 3000,
    kOutOfHostMemory = 4003,
    kExecutionFailed = 5000,
};

struct Handle {
    static constexpr unsigned kMark = 0x63444e4e;

    unsigned mark = kMark;
    int device = 0;
    Stream stream = nullptr;
};

inline bool good(const Handle* handle) { return handle && handle->mark == Handle::kMark; }

// One operation: one launch on the handle's stream.
inline Status enqueue(const Handle* handle) {
    if (!good(handle)) return kNotInitialized;
    return launch(handle->stream) ? kSuccess : kExecutionFailed;
}

// Bytes of one element of a cudnnDataType_t; 0 for an unknown one.
std::size_t size_of(int type);

}  // namespace movie::phantom::cudnn

// A cuBLAS handle: which stream its work goes to, and the settings that callers read back.
#pragma once

#include "phantom/libraries/card.h"

namespace movie::phantom::cublas {

enum Status : int {
    kSuccess = 0,
    kNotInitialized = 1,
    kAllocationFailed = 3,
    kInvalidValue = 7,
    kExecutionFailed = 13,
    kNotSupported = 15,
};

enum class PointerMode : int { host = 0, device = 1 };

struct Handle {
    static constexpr unsigned kMark = 0x63424c41;

    unsigned mark = kMark;  // so that a stray pointer is told apart
    int device = 0;
    Stream stream = nullptr;
    PointerMode pointers = PointerMode::host;
    int math = 0;
    int atomics = 0;
    int multiprocessors = 0;  // 0: all of them

    [[nodiscard]] bool valid() const { return mark == kMark; }
};

// One launch on the stream of a good handle.
inline Status enqueue(const Handle* handle) {
    if (!handle || !handle->valid()) return kNotInitialized;
    return launch(handle->stream) ? kSuccess : kExecutionFailed;
}

}  // namespace movie::phantom::cublas

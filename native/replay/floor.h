// The lower bound for a trace, and the plain peaks that reports name beside it.
#pragma once

#include "driver/types.h"
#include "replay/trace_view.h"

namespace movie {

struct Floor {
    Bytes requested = 0;       // no allocator that keeps pools apart can reserve less
    Bytes peak_requested = 0;  // live bytes as asked for, pools ignored
    Bytes peak_allocated = 0;  // the same, each block rounded up to 512 bytes
    std::int64_t row = -1;     // where `requested` is first reached; -1: in the start state
};

// Pre: check_trace(trace).
Floor floor_of(const TraceView& trace);

}  // namespace movie

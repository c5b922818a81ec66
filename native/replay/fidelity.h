// A recording of PyTorch's native allocator against our model of it: every address and every segment compared.
#pragma once

#include <span>

#include "baselines/native/oracle.h"
#include "replay/trace_view.h"

namespace movie {

// What the recorded allocator held before the first row; blocks and segments in the order of their addresses.
struct RecordedState {
    std::span<const std::uint64_t> block_address;  // of the trace's start blocks
    std::span<const std::int64_t> block_size;      // as large as they were, or as far as that is known
    std::span<const std::uint64_t> segment_address;
    std::span<const std::int64_t> segment_size;
    std::span<const std::int64_t> segment_stream;
    std::span<const std::int64_t> segment_pool;
    std::span<const bool> segment_small;
};

struct Fidelity {
    OracleCounts counts;
    std::int64_t first_wrong_row = -1;
    // Start blocks for which the recording itself told a larger size than the state did.
    std::uint64_t resized_start_blocks = 0;
};

// Follows the recording under these settings. Sizes of start blocks that are freed later are uncertain: a block of more
// than 1 MiB may own up to 1 MiB more than was asked for. What later rows tell about them is used (start_sizes.h).
// Throws std::invalid_argument for columns that contradict each other, or a trace without addresses.
Fidelity check_native(const TraceView& trace, const RecordedState& state, const NativeSettings& settings);

}  // namespace movie

// A trace as the replay loop sees it: columns of equal length, owned by somebody else (numpy arrays).
// src/movie/trace/model.py is the same model on the Python side, and says what each column means.
#pragma once

#include <cstdint>
#include <span>

#include "driver/types.h"

namespace movie {

// The values are part of the file format: only append.
enum class Action : std::uint8_t {
    alloc = 0,
    free_requested = 1,
    free_completed = 2,
    use = 3,   // another stream works with the block
    sync = 4,  // all streams have finished
    empty_cache = 5,
    external = 6,  // another owner takes `bytes` of the card
    external_free = 7,
    mark = 8,  // a step or phase begins: `phase` says which
    oom = 9,
    segment_alloc = 10,  // what the recorded allocator did: input for the oracle, ignored by replays
    segment_free = 11,
    segment_map = 12,
    segment_unmap = 13,
    snapshot = 14,
    release_pool = 15,
    seen = 16,  // the recorded allocator saw its `bytes`-th event on `stream` complete
};

struct TraceView {
    std::span<const std::uint8_t> action;
    std::span<const std::int64_t>
        id;  // dense: 0 ... ids - 1, one for each allocation; start blocks come first; -1 none
    std::span<const std::int64_t> bytes;  // as asked for; of segment rows and external rows: their size
    std::span<const std::int64_t> stream;
    std::span<const std::int64_t> pool;      // 0 is the default pool
    std::span<const std::uint64_t> address;  // as recorded; 0 where the format has none

    // Blocks alive before the first row, one entry each; their ids are 0 ... start - 1, in this order.
    std::span<const std::int64_t> start_bytes;
    std::span<const std::int64_t> start_stream;
    std::span<const std::int64_t> start_pool;
    std::span<const bool> start_pending;  // freed already: only the free_completed row is still to come

    std::int64_t ids = 0;
    // True: a free_completed row tells when a block may be used again. A free_requested row that its free_completed row
    // does not follow at once is a free behind a fence of an unnamed stream, which opens at the free_completed row (or
    // never within the trace). False: a free_requested row is a free like any other; what may still use the block are
    // the streams of `use` rows, and they lag as the replay says.
    bool completions_recorded = true;

    [[nodiscard]] std::size_t rows() const { return action.size(); }
};

}  // namespace movie

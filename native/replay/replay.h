// A trace through an allocator on the model device: what would it have reserved, and at what price?
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "allocator/allocator.h"
#include "driver/ledger.h"
#include "driver/model/model_device.h"
#include "replay/trace_view.h"

namespace movie {

struct ReplayOptions {
    ModelOptions device;
    bool validate = true;          // watch every call with the independent validator
    bool as_seen = false;          // events complete when the trace says that the recorded allocator saw it
    bool reclaim = true;           // another owner asks the allocator to reclaim() before it takes memory
    std::vector<PoolId> lendable;  // pools marked as lendable
    std::int64_t samples = 0;      // > 0: keep a timeline of about so many points
    // Called every few thousand rows with the row; returning false stops the replay (ctrl-C).
    std::function<bool(std::size_t)> progress;
};

// The highest values between the sample before and this row.
struct TimelineSample {
    std::int64_t row = 0;
    std::int64_t requested = 0, reserved = 0;
};

struct ReplayResult {
    bool completed = false;
    std::int64_t failed_at = -1;  // the row that could not be served
    std::string failure;          // the allocator's report, or which other owner could not be served
    Bytes peak_requested = 0;     // live bytes as asked for, at most, with isolated pools apart (baselines/bound.h)
    Bytes peak_reserved = 0;      // counted by the device
    Bytes end_reserved = 0;
    std::vector<std::int64_t> reserved_after_empty_cache;  // one entry an empty_cache row
    std::vector<std::int64_t> live_after_empty_cache;
    std::vector<std::int64_t> reserved_at_external;  // held when another owner takes its memory, after any reclaim()
    std::uint64_t retries = 0;
    Ledger ledger;                     // of the rows, start state included
    Ledger before_last_quarter;        // the account when the last quarter of the rows began, if it did
    double seconds_last_quarter = 0;   // modelled driver time in the last quarter of the rows
    double seconds_to_first_peak = 0;  // until requested bytes first reached their peak
    std::uint64_t stalled_rows = 0;
    // By how much waits delay the device, its streams running side by side (stream_times.h), in rows of the stream that
    // has most. The others' rows are as much longer as makes all others together as busy as that one: streams that end
    // at the same time have most to lose.
    double delayed_rows = 0, delayed_rows_last_quarter = 0;
    std::uint64_t main_rows = 0;  // of the stream that has most
    ViewCounters views, views_last_quarter;
    Unusable unusable_at_peak;
    double host_ns_per_event = 0;  // processor time in the replay loop, validator included if it is on
    std::vector<TimelineSample> timeline;
};

using AllocatorMaker = std::function<std::unique_ptr<Allocator>(Driver&)>;

// The start blocks first, in their order, then the rows. An ordinary free is one free; a free that a recording shows in
// two separate steps is a free behind an anonymous stream, whose work ends at the row of the second step.
// Throws std::invalid_argument for columns that contradict each other (check_trace.h), ValidationError if the allocator
// breaks an invariant while it is watched.
ReplayResult replay(const TraceView& trace, const AllocatorMaker& make_allocator, const ReplayOptions& options);

}  // namespace movie

// When the work of a stream is done, on a device that lags behind the host.
// Time is counted in rows of a replay. Work queued on a stream at row r is done at row r + lag.
#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <unordered_map>

#include "driver/model/stream_times.h"
#include "driver/types.h"

namespace movie {

constexpr std::int64_t kNeverCompletes = -1;  // a lag: only a waiting host sees events complete

class DeviceClock {
  public:
    // `seed` 0: every event lags exactly `lag` rows; else each lags between 0 and 2 x lag rows, drawn from the seed.
    DeviceClock(std::int64_t lag, std::uint64_t seed) : lag_(lag), seed_(seed), random_(seed), times_(lag) {}

    // A row passes, with work on `stream`.
    void advance(Stream stream) {
        ++now_;
        work(stream);
    }
    // The work of a row is queued, behind what the allocator made its stream wait for: it takes `length`.
    void busy(Stream stream, double length) { times_.work(stream, length); }
    // Work is queued on `stream` in the current row.
    void work(Stream stream) {
        Timeline& timeline = timelines_[stream];
        timeline.last_work = now_;
        timeline.idle = false;
    }
    // Events recorded on `stream` from now on complete at this row, whatever the lag.
    void plan(Stream stream, std::int64_t row) { timelines_[stream].planned = row; }
    // The number-th event (from 1) that was recorded on `stream` is complete now, and those before it.
    void complete(Stream stream, std::int64_t number);
    // All work of all streams is done: the allocator asked for it, or the program did, whatever allocates.
    void finish_all();
    void finish_by_program();

    Event record(Stream stream);
    [[nodiscard]] bool complete(Event event) const;
    void forget(Event event) {
        events_.erase(event);
        times_.forget(event);
    }
    // Rows until the event completes (0 if it has); 0 where that is unknown (never).
    [[nodiscard]] std::uint64_t remaining(Event event) const;
    // The host waits for the event.
    void wait_on_host(Event event);
    // Later work of `stream` waits for the event.
    void wait_on_device(Stream stream, Event event);

    // The host waited for all work, in a call that completes no event.
    void drained() { times_.finish_for_allocator(); }
    // By how much waits have delayed the device so far, in lengths of work, its streams running side by side.
    [[nodiscard]] double delay() const { return times_.delay(); }

    [[nodiscard]] std::int64_t now() const { return now_; }
    [[nodiscard]] std::size_t events() const { return events_.size(); }
    // Throws RuleViolation if there is no such event.
    void check(const char* call, Event event) const;

  private:
    void complete_all();

    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    struct Timeline {
        std::int64_t last_work = -1;  // -1: unknown, taken as now
        std::int64_t planned = -1;
        std::int64_t blocked_until = 0;  // an event of another stream that later work waits for
        std::int64_t last_due = 0;
        std::int64_t recorded = 0;  // events
        Event finished = 0;         // events up to this one are complete
        bool idle = false;          // all its work is done, and none came since
    };
    struct Recorded {
        Stream stream = 0;
        std::int64_t due = 0;
        std::int64_t number = 0;  // of the stream's events, from 1
    };

    std::int64_t lag_;
    std::uint64_t seed_;
    std::mt19937_64 random_;
    StreamTimes times_;
    std::int64_t now_ = 0;
    std::int64_t caught_up_ = 0;  // a host that waited saw all work up to this row done
    Event next_event_ = 1;
    Event finished_ = 0;  // events of all streams up to this one are complete
    std::unordered_map<Stream, Timeline> timelines_;
    std::unordered_map<Event, Recorded> events_;
};

}  // namespace movie

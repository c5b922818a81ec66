// Streams of the host device: each has a thread that takes its queued work in order, and late.
//
// Time is counted in ticks, one for each piece of work that is queued on any stream. A piece of work becomes due some
// ticks after it was queued, or when the host waits for it; its thread starts it then, and never before.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>

#include "driver/types.h"

namespace movie {

struct LateOptions {
    std::int64_t lag = 0;  // ticks until queued work is due; -1: never, only when the host waits for it
    // 0: all work lags exactly `lag` ticks; else each stream has a lag of its own, between 0 and 2 x lag, that is drawn
    // anew now and then, so that some streams are far behind others.
    std::uint64_t seed = 0;
    // All work that is due is done before the host goes on. What is done when then depends on the calls alone, not on
    // how the system runs the threads.
    bool lockstep = true;
};

class LateStreams {
  public:
    explicit LateStreams(const LateOptions& options);
    // Work that nobody waited for is dropped.
    ~LateStreams();
    LateStreams(const LateStreams&) = delete;
    LateStreams& operator=(const LateStreams&) = delete;

    // Pre: `work` throws nothing and does not call this object.
    void queue(Stream stream, std::function<void()> work);
    // Time passes without new work.
    void advance(std::uint64_t ticks);

    Event record(Stream stream);
    // Whether all work before the event is done. Never waits, but for work that is due where the threads run in
    // lockstep.
    bool complete(Event event);
    // Ticks until the work before the event is due, 0 where it is or that is unknown.
    std::uint64_t remaining(Event event);
    void wait_on_host(Event event);
    void wait_on_device(Stream stream, Event event);
    void forget(Event event);
    // The host waits for all work.
    void finish_all();

  private:
    static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
    struct Line;
    struct Place {  // behind the first `position` entries of a line
        Line* line = nullptr;
        std::uint64_t position = 0;
        std::uint64_t due = 0;
    };
    struct Entry {
        std::uint64_t due = 0;
        std::function<void()> work;  // empty: wait for `until`
        Place until{};
    };
    struct Line {
        std::deque<Entry> entries;
        std::uint64_t queued = 0, done = 0;  // entries so far
        std::uint64_t urged = 0;             // the host waits for this many
        std::uint64_t last_due = 0;
        std::uint64_t lag = 0, lag_until = 0;  // the lag that was drawn, and for how many entries
        std::condition_variable wake;
        std::thread thread;
    };
    using Lock = std::unique_lock<std::mutex>;

    Line& line_of(Stream stream);
    void run(Line& line);
    void tick(Lock& lock, std::uint64_t ticks);
    void wake_runnable();
    [[nodiscard]] bool runnable(const Line& line) const;
    void settle(Lock& lock);
    // The place, and all that its line waits for before, is due now.
    void urge(const Place& place);
    [[nodiscard]] const Place& place_of(const char* call, Event event) const;
    static bool reached(const Place& place) { return place.line->done >= place.position; }

    LateOptions options_;
    std::mt19937_64 random_;
    std::mutex mutex_;
    std::condition_variable progress_;  // for hosts that wait
    std::uint64_t now_ = 0;
    bool stopping_ = false;
    Event next_event_ = 1;
    std::unordered_map<Stream, std::unique_ptr<Line>> lines_;
    std::unordered_map<Event, Place> events_;
};

}  // namespace movie

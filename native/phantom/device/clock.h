// When the work of a stream is done, on a card that lags behind the program.
//
// Time is virtual: each piece of work that is handed over is one tick, and it is due `lag` ticks after it was handed
// over, never before the work ahead of it. A program that waits makes the time pass until what it waits for is due, and
// with it everything that is due by then. So the order of all work is known when it is handed over, and depends on the
// calls and the seed alone.
#pragma once

#include <compare>
#include <cstdint>
#include <random>

namespace movie::phantom {

// A place in the order of all work: what is due earlier comes first; among equals what was handed over first.
struct Place {
    std::uint64_t due = 0;
    std::uint64_t order = 0;
    auto operator<=>(const Place&) const = default;
};

// One stream's line of work.
struct Line {
    std::uint64_t last_due = 0;
    std::uint64_t lag = 0;      // of this stretch
    std::uint64_t stretch = 0;  // pieces of work that it still holds for
};

class Clock {
  public:
    // `lag` -1: work is due only when somebody waits for it.
    Clock(std::int64_t lag, std::uint64_t seed);

    // A piece of work on `line`, behind everything that is due until `not_before`.
    Place work(Line& line, std::uint64_t not_before);
    // The place behind everything that is due until `due`.
    Place behind(std::uint64_t due) { return {due, ++order_}; }
    // The program waits.
    void pass_until(std::uint64_t due);
    void advance(std::uint64_t ticks) { now_ += ticks; }
    [[nodiscard]] std::uint64_t now() const { return now_; }
    [[nodiscard]] std::uint64_t latest() const { return latest_; }  // when all work handed over so far is done

  private:
    std::uint64_t lag_;
    std::uint64_t seed_;
    std::mt19937_64 random_;
    std::uint64_t now_ = 0;
    std::uint64_t order_ = 0;
    std::uint64_t latest_ = 0;
};

}  // namespace movie::phantom

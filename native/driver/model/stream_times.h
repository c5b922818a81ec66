// What waits cost a device whose streams run side by side.
//
// A timeline of each stream: each row of a replay is work of some length on its stream. A trace does not say what its
// program makes streams wait for, so one rule stands for that: a stretch (rows of one stream, one after another) runs
// beside the stretch just before it, and after all others. That is double buffering: a layer is gathered, or gradients
// are scattered, while another is computed. And the host is at most so many rows ahead of the device.
//
// The same timeline is kept twice, with the waits that the allocator asked for and without. How much longer the first
// takes is what they cost: a wait for what had to be finished anyway costs nothing.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "driver/types.h"

namespace movie {

class StreamTimes {
  public:
    // `lead`: rows that the host may be ahead; negative: any number.
    explicit StreamTimes(std::int64_t lead);

    // A row's work is queued on the stream: it keeps the stream busy for `length`.
    void work(Stream stream, double length = 1);
    // An event behind all work of the stream so far.
    void record(Stream stream, Event event) { due_[event] = lane(stream).end[kWaiting]; }
    // The same, for work that the trace alone knows of: it ends `later` than all that is queued now.
    void record_in(double later, Event event) { due_[event] = all_[kWaiting] + later; }
    void forget(Event event) { due_.erase(event); }
    // Later work of the stream waits for the event; later work of any stream does, since the host waited for it.
    void wait(Stream stream, Event event);
    void wait_on_host(Event event);
    // The host waits for all work: because the allocator wants it, or because the program does, whoever allocates.
    void finish_for_allocator() { floor_[kWaiting] = all_[kWaiting]; }
    void finish_for_program() { floor_ = all_; }

    // By how much waits have delayed the device so far, in lengths of work.
    [[nodiscard]] double delay() const { return all_[kWaiting] - all_[kFree]; }

  private:
    static constexpr std::size_t kWaiting = 0, kFree = 1;  // the timeline with waits, and the one without
    using Times = std::array<double, 2>;
    struct Lane {
        Times end{};  // of the stream's work
    };

    Lane& lane(Stream stream);
    [[nodiscard]] double due(Event event) const;

    std::int64_t lead_;
    std::unordered_map<Stream, Lane> lanes_;
    std::unordered_map<Event, double> due_;
    Stream current_ = 0;  // whose stretch it is
    Lane* current_lane_ = nullptr;
    Times before_{};           // when all stretches but the last two have ended
    Times previous_{};         // when the last but one has
    Times stretch_{};          // when the current one has, as far as it goes
    Times floor_{};            // nothing that is queued from now on begins earlier
    Times all_{};              // the end of everything
    std::vector<Times> ends_;  // of everything, as of each of the last `lead` rows
    std::size_t next_ = 0;
};

}  // namespace movie

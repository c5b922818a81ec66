#include "driver/model/clock.h"

#include <algorithm>
#include <string>

namespace movie {

void DeviceClock::finish_all() {
    times_.finish_for_allocator();
    complete_all();
}

void DeviceClock::finish_by_program() {
    times_.finish_for_program();
    complete_all();
}

void DeviceClock::complete_all() {
    finished_ = next_event_ - 1;
    for (auto& [stream, timeline] : timelines_) {
        timeline.blocked_until = 0;
        timeline.last_due = 0;
        timeline.last_work = now_;
        timeline.idle = true;
    }
}

void DeviceClock::complete(Stream stream, std::int64_t number) {
    for (const auto& [event, recorded] : events_)
        if (recorded.stream == stream && recorded.number == number)
            timelines_[stream].finished = std::max(timelines_[stream].finished, event);
}

Event DeviceClock::record(Stream stream) {
    Timeline& timeline = timelines_[stream];
    std::int64_t due = kNever;
    if (timeline.planned >= 0) {
        due = timeline.planned;
    } else if (lag_ != kNeverCompletes) {
        std::int64_t lag = timeline.idle ? 0 : lag_;
        if (seed_ != 0 && !timeline.idle) lag = std::uniform_int_distribution<std::int64_t>(0, 2 * lag_)(random_);
        due = std::max(
            {(timeline.last_work < 0 ? now_ : timeline.last_work) + lag, timeline.blocked_until, timeline.last_due});
        timeline.last_due = due;
    }
    const Event event = next_event_++;
    events_.emplace(event, Recorded{.stream = stream, .due = due, .number = ++timeline.recorded});
    if (timeline.planned < 0)
        times_.record(stream, event);
    else if (due > now_ && due != kNever)
        times_.record_in(static_cast<double>(due - now_), event);
    return event;
}

void DeviceClock::check(const char* call, Event event) const {
    if (!events_.contains(event))
        throw RuleViolation(std::string(call) + "(event=" + std::to_string(event) + "): no such event, or destroyed");
}

bool DeviceClock::complete(Event event) const {
    const Recorded& recorded = events_.at(event);
    return event <= finished_ || recorded.due <= std::max(now_, caught_up_) ||
           event <= timelines_.at(recorded.stream).finished;
}

std::uint64_t DeviceClock::remaining(Event event) const {
    const std::int64_t due = events_.at(event).due;
    if (due == kNever || complete(event)) return 0;
    return static_cast<std::uint64_t>(due - now_);
}

void DeviceClock::wait_on_host(Event event) {
    if (complete(event)) return;
    times_.wait_on_host(event);
    const Recorded& recorded = events_.at(event);
    Timeline& timeline = timelines_.at(recorded.stream);
    timeline.finished = std::max(timeline.finished, event);
    if (recorded.due != kNever) caught_up_ = std::max(caught_up_, recorded.due);
}

void DeviceClock::wait_on_device(Stream stream, Event event) {
    if (complete(event)) return;
    times_.wait(stream, event);
    const std::int64_t due = events_.at(event).due;
    if (due != kNever) timelines_[stream].blocked_until = std::max(timelines_[stream].blocked_until, due);
}

}  // namespace movie

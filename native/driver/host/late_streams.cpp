#include "driver/host/late_streams.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace movie {

namespace {

constexpr std::uint64_t kStretch = 64;  // entries for which a drawn lag holds, at most

}  // namespace

LateStreams::LateStreams(const LateOptions& options) : options_(options), random_(options.seed) {
    if (options.lag < -1) throw std::invalid_argument("the lag must be at least 0 ticks, or -1 for never");
}

LateStreams::~LateStreams() {
    {
        const Lock lock(mutex_);
        stopping_ = true;
        for (auto& [stream, line] : lines_) line->wake.notify_one();
    }
    for (auto& [stream, line] : lines_) line->thread.join();
}

LateStreams::Line& LateStreams::line_of(Stream stream) {
    auto& line = lines_[stream];
    if (!line) {
        line = std::make_unique<Line>();
        line->thread = std::thread([this, of = line.get()] { run(*of); });
    }
    return *line;
}

bool LateStreams::runnable(const Line& line) const {
    if (line.entries.empty()) return false;
    const Entry& front = line.entries.front();
    if (front.due > now_ && line.urged <= line.done) return false;
    return front.work || reached(front.until);
}

void LateStreams::run(Line& line) {
    Lock lock(mutex_);
    for (;;) {
        line.wake.wait(lock, [&] { return stopping_ || runnable(line); });
        if (stopping_) return;
        // The entry stays in the queue while it runs: the line is not at rest before it is done.
        if (line.entries.front().work) {
            const std::function<void()> work = std::move(line.entries.front().work);
            line.entries.front().work = [] {};
            lock.unlock();
            work();
            lock.lock();
        }
        line.entries.pop_front();
        ++line.done;
        wake_runnable();
        progress_.notify_all();
    }
}

void LateStreams::wake_runnable() {
    for (auto& [stream, line] : lines_)
        if (runnable(*line)) line->wake.notify_one();
}

void LateStreams::settle(Lock& lock) {
    progress_.wait(lock, [this] {
        return std::none_of(lines_.begin(), lines_.end(),
                            [this](const auto& entry) { return runnable(*entry.second); });
    });
}

void LateStreams::tick(Lock& lock, std::uint64_t ticks) {
    now_ += ticks;
    wake_runnable();
    if (options_.lockstep) settle(lock);
}

void LateStreams::queue(Stream stream, std::function<void()> work) {
    Lock lock(mutex_);
    Line& line = line_of(stream);
    std::uint64_t due = kNever;
    if (options_.lag >= 0 && line.last_due != kNever) {
        auto lag = static_cast<std::uint64_t>(options_.lag);
        if (options_.seed != 0) {
            if (line.queued >= line.lag_until) {
                line.lag = std::uniform_int_distribution<std::uint64_t>(0, 2 * lag)(random_);
                line.lag_until = line.queued + std::uniform_int_distribution<std::uint64_t>(1, kStretch)(random_);
            }
            lag = line.lag;
        }
        due = std::max(line.last_due, now_ + 1 + lag);
    }
    line.last_due = due;
    line.entries.push_back({.due = due, .work = std::move(work)});
    ++line.queued;
    tick(lock, 1);
}

void LateStreams::advance(std::uint64_t ticks) {
    Lock lock(mutex_);
    tick(lock, ticks);
}

Event LateStreams::record(Stream stream) {
    const Lock lock(mutex_);
    Line& line = line_of(stream);
    const Event event = next_event_++;
    events_.emplace(event, Place{.line = &line, .position = line.queued, .due = line.last_due});
    return event;
}

const LateStreams::Place& LateStreams::place_of(const char* call, Event event) const {
    const auto found = events_.find(event);
    if (found == events_.end())
        throw RuleViolation(std::string(call) + "(event=" + std::to_string(event) + "): no such event, or destroyed");
    return found->second;
}

bool LateStreams::complete(Event event) {
    Lock lock(mutex_);
    const Place place = place_of("event_query", event);
    if (options_.lockstep) settle(lock);
    return reached(place);
}

std::uint64_t LateStreams::remaining(Event event) {
    const Lock lock(mutex_);
    const Place& place = place_of("event", event);
    return reached(place) || place.due == kNever || place.due <= now_ ? 0 : place.due - now_;
}

void LateStreams::urge(const Place& place) {
    Line& line = *place.line;
    if (line.urged >= place.position) return;
    const std::uint64_t first = std::max(line.urged, line.done);
    line.urged = place.position;
    for (std::uint64_t position = first; position < place.position; ++position) {
        const Entry& entry = line.entries[static_cast<std::size_t>(position - line.done)];
        if (!entry.work) urge(entry.until);
    }
}

void LateStreams::wait_on_host(Event event) {
    Lock lock(mutex_);
    const Place place = place_of("event_synchronize", event);
    urge(place);
    wake_runnable();
    progress_.wait(lock, [&] { return reached(place); });
}

void LateStreams::wait_on_device(Stream stream, Event event) {
    const Lock lock(mutex_);
    const Place place = place_of("stream_wait", event);
    Line& line = line_of(stream);
    if (reached(place) || place.line == &line) return;
    line.entries.push_back({.due = line.last_due, .work = {}, .until = place});
    ++line.queued;
}

void LateStreams::forget(Event event) {
    const Lock lock(mutex_);
    (void)place_of("event_destroy", event);
    events_.erase(event);
}

void LateStreams::finish_all() {
    Lock lock(mutex_);
    std::unordered_map<Line*, std::uint64_t> until;
    for (auto& [stream, line] : lines_) {
        until.emplace(line.get(), line->queued);
        urge({.line = line.get(), .position = line->queued});
    }
    wake_runnable();
    progress_.wait(lock, [&] {
        return std::all_of(until.begin(), until.end(),
                           [](const auto& each) { return each.first->done >= each.second; });
    });
}

}  // namespace movie

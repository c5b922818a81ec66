#include "ordering/timelines.h"

#include <algorithm>
#include <utility>

namespace movie {

namespace {

// An epoch is closed when it is as old as this part of what work usually takes until it is done: hardly any memory is
// then held back longer because its event was recorded late. Events cost, so there are never more than one in so many
// operations.
constexpr double kPartOfWait = 1.0 / 4;
constexpr double kLeastAge = 32;
// Operations after the last look at other streams' memory in which there may well be another.
constexpr std::uint64_t kInterest = 1 << 14;
// A question is a call of the driver. It is asked again when an event has become older by this part of its age: what is
// not asked for at once is known late by no more than that.
constexpr std::uint64_t kPartOfAge = 16;

}  // namespace

TimelineId Timelines::of(Stream stream) {
    const auto [found, fresh] = ids_.try_emplace(stream, static_cast<TimelineId>(lines_.size()));
    if (fresh) {
        lines_.emplace_back();
        lines_.back().stream = stream;
    }
    return found->second;
}

Mark Timelines::now(TimelineId id) {
    Line& line = lines_[id];
    if (!line.marked) {
        line.marked = true;
        line.marked_at = ticks_;
        if (!std::exchange(line.listed, true)) marked_.push_back(id);
    }
    return {id, line.open};
}

void Timelines::tick() {
    ++ticks_;
    // Where nobody wants the memory of others no event is needed.
    if (wanted_at_ != 0 && ticks_ - wanted_at_ < kInterest && !capturing_) close_old_epochs();
}

bool Timelines::is_old(const Line& line) const {
    return static_cast<double>(ticks_ - line.marked_at) >= std::max(kLeastAge, line.usual_wait * kPartOfWait);
}

void Timelines::close_old_epochs() {
    std::erase_if(marked_, [this](TimelineId id) {
        Line& line = lines_[id];
        if (line.marked && is_old(line) && record(id) != Status::ok) line.marked_at = ticks_;  // some other time
        line.listed = line.marked;
        return !line.listed;
    });
}

void Timelines::learn(Knowledge& knowledge, TimelineId id, Epoch epoch) {
    if (knowledge.size() <= id) knowledge.resize(id + 1, 0);
    knowledge[id] = std::max(knowledge[id], epoch);
}

const Timelines::Recorded* Timelines::covering(Mark mark) const {
    const auto& events = lines_[mark.timeline].events;
    const auto found = std::lower_bound(events.begin(), events.end(), mark.epoch,
                                        [](const Recorded& recorded, Epoch epoch) { return recorded.epoch < epoch; });
    return found == events.end() ? nullptr : &*found;
}

std::uint32_t Timelines::likely_wait(Mark mark) const {
    if (passed(mark)) return 0;
    const Line& line = lines_[mark.timeline];
    const Recorded* recorded = covering(mark);
    const double gone = recorded == nullptr ? 0.0 : static_cast<double>(ticks_ - recorded->at);
    return static_cast<std::uint32_t>(std::max(1.0, line.usual_wait - gone));
}

Status Timelines::record(TimelineId id) {
    Line& line = lines_[id];
    const auto event = driver_.event_record(line.stream);
    if (!event.ok()) return event.status;
    if (line.events.empty()) outstanding_.push_back(id);
    line.events.push_back({.epoch = line.open, .event = event.value, .at = ticks_, .known = line.known});
    ++line.open;
    line.marked = false;
    return Status::ok;
}

Status Timelines::wait_on_device(TimelineId id, const Fence& fence) {
    Status status = Status::ok;
    fence.for_each([&](Mark mark) {
        if (status != Status::ok || implied(id, mark)) return;
        if (covering(mark) == nullptr) {
            status = record(mark.timeline);
            if (status != Status::ok) return;
        }
        const Recorded& recorded = *covering(mark);
        status = driver_.stream_wait(lines_[id].stream, recorded.event);
        if (status != Status::ok) return;
        Knowledge& knowledge = lines_[id].known;
        learn(knowledge, mark.timeline, recorded.epoch);
        for (TimelineId other = 0; other < recorded.known.size(); ++other)
            if (recorded.known[other] > 0) learn(knowledge, other, recorded.known[other]);
    });
    return status;
}

void Timelines::ask_for(const Fence& fence) {
    fence.for_each([this](Mark mark) {
        if (!capturing_ && !passed(mark) && covering(mark) == nullptr) (void)record(mark.timeline);
    });
}

void Timelines::pass(Line& line) {
    const Recorded front = std::move(line.events.front());
    constexpr double kWeight = 1.0 / 16;
    line.usual_wait += (static_cast<double>(ticks_ - front.at) - line.usual_wait) * kWeight;
    line.passed = std::max(line.passed, front.epoch);
    driver_.event_destroy(front.event);
    line.events.pop_front();
    line.ask_at = 0;
    // What the stream waited for before that event has passed too, and with it the events that stand for it.
    for (TimelineId id = 0; id < front.known.size(); ++id) {
        Line& other = lines_[id];
        other.passed = std::max(other.passed, front.known[id]);
        while (!other.events.empty() && other.events.front().epoch <= other.passed) pass(other);
    }
}

void Timelines::drop_idle() {
    std::erase_if(outstanding_, [this](TimelineId id) { return lines_[id].events.empty(); });
}

Status Timelines::wait_on_host(Mark mark) {
    if (passed(mark)) return Status::ok;
    if (covering(mark) == nullptr)
        if (const Status status = record(mark.timeline); status != Status::ok) return status;
    const Recorded* recorded = covering(mark);
    if (const Status status = driver_.event_synchronize(recorded->event); status != Status::ok) return status;
    Line& line = lines_[mark.timeline];
    const Epoch epoch = recorded->epoch;
    while (!line.events.empty() && line.events.front().epoch <= epoch) pass(line);
    drop_idle();
    return Status::ok;
}

bool Timelines::collect(const std::function<void(Stream, Epoch)>& seen) {
    if (capturing_ || outstanding_.empty()) return false;
    bool any = false;
    for (const TimelineId id : outstanding_) {
        Line& line = lines_[id];
        while (!line.events.empty() && front_passed(line)) {
            if (seen) seen(line.stream, line.events.front().epoch);
            pass(line);
            any = true;
        }
    }
    if (any) drop_idle();
    return any;
}

bool Timelines::front_passed(Line& line) {
    if (ticks_ < line.ask_at) return false;
    const Recorded& front = line.events.front();
    if (driver_.event_query(front.event) == Status::ok) return true;
    line.ask_at = ticks_ + (ticks_ - front.at) / kPartOfAge;
    return false;
}

std::optional<Mark> Timelines::oldest_outstanding() const {
    std::optional<Mark> oldest;
    std::uint64_t at = 0;
    for (const TimelineId id : outstanding_) {
        const Line& line = lines_[id];
        // Events that have passed because another stream waited for them stay until they are asked for.
        const auto open = std::find_if(line.events.begin(), line.events.end(),
                                       [&line](const Recorded& each) { return each.epoch > line.passed; });
        if (open != line.events.end() && (!oldest || open->at < at)) {
            oldest = Mark{id, open->epoch};
            at = open->at;
        }
    }
    return oldest;
}

}  // namespace movie

#include "replay/validator/order.h"

#include <algorithm>

namespace movie::validation {

void add_use(Uses& uses, Use use) {
    for (Use& known : uses) {
        if (known.stream != use.stream) continue;
        known.position = std::max(known.position, use.position);
        return;
    }
    uses.push_back(use);
}

std::uint32_t Order::index_of(Stream stream) {
    const auto [found, fresh] = index_.try_emplace(stream, static_cast<std::uint32_t>(streams_.size()));
    if (fresh) streams_.push_back({.raw = stream, .position = 0, .clock = {}});
    return found->second;
}

void Order::join(Clock& into, const Clock& from) {
    if (into.size() < from.size()) into.resize(from.size(), 0);
    for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void Order::record(Event event, Stream stream) {
    const std::uint32_t index = index_of(stream);
    // The event is recorded now, so it completes after all that the host knows by now.
    Clock clock = host_;
    join(clock, streams_[index].clock);
    if (clock.size() <= index) clock.resize(index + 1, 0);
    clock[index] = streams_[index].position;
    events_[event] = std::move(clock);
}

void Order::wait(Stream stream, Event event) {
    const std::uint32_t index = index_of(stream);
    if (const auto found = events_.find(event); found != events_.end()) join(streams_[index].clock, found->second);
}

void Order::seen_by_host(Event event) {
    if (const auto found = events_.find(event); found != events_.end()) join(host_, found->second);
}

void Order::all_seen_by_host() {
    host_.resize(streams_.size(), 0);
    for (std::size_t i = 0; i < streams_.size(); ++i) host_[i] = streams_[i].position;
}

std::string Order::describe(const Use& use) const {
    return "stream " + std::to_string(stream(use.stream)) + " at position " + std::to_string(use.position);
}

}  // namespace movie::validation

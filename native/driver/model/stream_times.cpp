#include "driver/model/stream_times.h"

#include <algorithm>

namespace movie {

StreamTimes::StreamTimes(std::int64_t lead) : lead_(lead) {
    if (lead > 0) ends_.resize(static_cast<std::size_t>(lead));
}

StreamTimes::Lane& StreamTimes::lane(Stream stream) {
    if (current_lane_ != nullptr && stream == current_) return *current_lane_;
    return lanes_[stream];
}

void StreamTimes::work(Stream stream, double length) {
    if (current_lane_ == nullptr || stream != current_) {
        current_lane_ = &lanes_[stream];  // stays where it is when others come
        current_ = stream;
        for (const std::size_t world : {kWaiting, kFree}) {
            before_[world] = std::max(before_[world], previous_[world]);
            previous_[world] = stretch_[world];
            stretch_[world] = 0;
        }
    }
    Times* const long_ago = lead_ > 0 ? &ends_[next_] : nullptr;
    for (const std::size_t world : {kWaiting, kFree}) {
        double begin = std::max({current_lane_->end[world], before_[world], floor_[world]});
        if (long_ago != nullptr) begin = std::max(begin, (*long_ago)[world]);
        if (lead_ == 0) begin = std::max(begin, all_[world]);
        const double end = begin + length;
        current_lane_->end[world] = end;
        stretch_[world] = std::max(stretch_[world], end);
        all_[world] = std::max(all_[world], end);
        if (long_ago != nullptr) (*long_ago)[world] = all_[world];
    }
    if (lead_ > 0) next_ = (next_ + 1) % ends_.size();
}

double StreamTimes::due(Event event) const {
    const auto found = due_.find(event);
    return found == due_.end() ? 0 : found->second;
}

void StreamTimes::wait(Stream stream, Event event) {
    double& end = lane(stream).end[kWaiting];
    end = std::max(end, due(event));
}

void StreamTimes::wait_on_host(Event event) { floor_[kWaiting] = std::max(floor_[kWaiting], due(event)); }

}  // namespace movie

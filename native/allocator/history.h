// The last events of an allocator, for snapshots: a ring that never grows.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "driver/types.h"

namespace movie {

struct HistoryEvent {
    enum class Kind : std::uint8_t {
        alloc,
        free_requested,
        free_completed,
        segment_map,
        segment_unmap,
        stitch,
        edit,
        out_of_memory
    } kind = Kind::alloc;
    Address address = 0;
    Bytes size = 0;
    Stream stream = 0;
    std::uint64_t pool = 0;
    std::uint64_t number = 0;  // of the event, from the first one ever
};

constexpr std::string_view name_of(HistoryEvent::Kind kind) {
    constexpr std::string_view kNames[] = {"alloc",         "free_requested", "free_completed", "segment_map",
                                           "segment_unmap", "stitch",         "edit",           "oom"};
    return kNames[static_cast<std::size_t>(kind)];
}

class History {
  public:
    explicit History(std::size_t most) : most_(most) {}

    void add(HistoryEvent event) {
        event.number = next_++;
        if (most_ == 0) return;
        if (ring_.size() < most_)
            ring_.push_back(event);
        else
            ring_[static_cast<std::size_t>(event.number) % most_] = event;
    }

    // Oldest first.
    [[nodiscard]] std::vector<HistoryEvent> events() const {
        std::vector<HistoryEvent> ordered;
        ordered.reserve(ring_.size());
        for (std::size_t i = 0; i < ring_.size(); ++i)
            ordered.push_back(ring_[(static_cast<std::size_t>(next_) + i) % ring_.size()]);
        return ordered;
    }
    [[nodiscard]] std::uint64_t total() const { return next_; }

  private:
    std::size_t most_;
    std::uint64_t next_ = 0;
    std::vector<HistoryEvent> ring_;
};

}  // namespace movie

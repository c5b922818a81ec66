// The last events of an allocator, for snapshots: a ring that never grows.
#pragma once

#include <chrono>
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
        out_of_memory,
        lend,       // bytes at home now belong to the block in a view whose alloc follows
        give_home,  // and are at home again; follows the free_completed
        empty_cache,
        use,   // record_stream: `stream` works with the block too
        seen,  // the host saw the size-th event of `stream` complete
    } kind = Kind::alloc;
    Address address = 0;  // out_of_memory: bytes that the card had left
    Bytes size = 0;
    Stream stream = 0;
    std::uint64_t pool = 0;
    std::uint64_t context = 0;  // where in the program: a number of whoever gave the source of contexts; 0: unknown
    std::uint64_t number = 0;   // of the event, from the first one ever
    std::int64_t time_us = 0;   // since the Unix epoch
};

constexpr std::string_view name_of(HistoryEvent::Kind kind) {
    constexpr std::string_view kNames[] = {
        "alloc", "free_requested", "free_completed", "segment_map", "segment_unmap", "stitch", "edit",
        "oom",   "lend",           "give_home",      "empty_cache", "use",           "seen"};
    return kNames[static_cast<std::size_t>(kind)];
}

class History {
  public:
    explicit History(std::size_t most) : most_(most) {}

    [[nodiscard]] bool records() const { return most_ > 0; }

    void add(HistoryEvent event) {
        event.number = next_++;
        if (most_ == 0) return;
        event.time_us =
            std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
                .count();
        if (ring_.size() < most_)
            ring_.push_back(event);
        else
            ring_[oldest_++ % most_] = event;
    }

    // Keeps at most this many events from now on (0: none). What was kept is dropped, but where `keep` asks for it and
    // the number stays as it was.
    void restart(std::size_t most, bool keep) {
        if (keep && most == most_) return;
        most_ = most;
        oldest_ = 0;
        ring_.clear();
        ring_.shrink_to_fit();
    }

    // Oldest first.
    [[nodiscard]] std::vector<HistoryEvent> events() const {
        std::vector<HistoryEvent> ordered;
        ordered.reserve(ring_.size());
        for (std::size_t i = 0; i < ring_.size(); ++i) ordered.push_back(ring_[(oldest_ + i) % ring_.size()]);
        return ordered;
    }
    [[nodiscard]] std::uint64_t total() const { return next_; }

  private:
    std::size_t most_;
    std::size_t oldest_ = 0;  // where in the ring, once it is full
    std::uint64_t next_ = 0;
    std::vector<HistoryEvent> ring_;
};

}  // namespace movie

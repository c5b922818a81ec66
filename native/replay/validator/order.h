// What is known to run before what: vector clocks over the streams of a device, and over the host.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/types.h"

namespace movie::validation {

// Work of a stream up to a position in it.
struct Use {
    std::uint32_t stream = 0;  // an index of Order, not the raw value
    std::uint64_t position = 0;
};
using Uses = std::vector<Use>;  // at most one entry a stream

// Extends `uses` by one more.
void add_use(Uses& uses, Use use);

class Order {
  public:
    std::uint32_t index_of(Stream stream);
    [[nodiscard]] Stream stream(std::uint32_t index) const { return streams_[index].raw; }

    // One more piece of work on the stream; returns it.
    Use queue(std::uint32_t stream) { return {stream, ++streams_[stream].position}; }

    // What the driver was told, and what it answered.
    void record(Event event, Stream stream);
    void wait(Stream stream, Event event);
    void seen_by_host(Event event);
    void all_seen_by_host();
    void forget(Event event) { events_.erase(event); }

    [[nodiscard]] bool known_to_host(const Use& use) const { return reaches(host_, use); }
    // Whether work queued on `stream` from now on runs after `use`.
    [[nodiscard]] bool before(const Use& use, std::uint32_t stream) const {
        return use.stream == stream || reaches(streams_[stream].clock, use) || known_to_host(use);
    }
    // For people: "stream 3 at position 17".
    [[nodiscard]] std::string describe(const Use& use) const;

  private:
    using Clock = std::vector<std::uint64_t>;  // position reached, by stream index; what is missing is 0
    struct Timeline {
        Stream raw = 0;
        std::uint64_t position = 0;
        Clock clock;  // what this stream waits for, other streams' work
    };

    static bool reaches(const Clock& clock, const Use& use) {
        return use.stream < clock.size() && clock[use.stream] >= use.position;
    }
    static void join(Clock& into, const Clock& from);

    std::vector<Timeline> streams_;
    std::unordered_map<Stream, std::uint32_t> index_;
    std::unordered_map<Event, Clock> events_;  // all that is done when the event is complete
    Clock host_;
};

}  // namespace movie::validation

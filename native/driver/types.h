// The plain words that every layer shares: addresses, handles, streams, statuses.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace movie {

using Address = std::uint64_t;  // a device virtual address; 0 is never a valid one
using Bytes = std::uint64_t;
using Handle = std::uint64_t;  // a physical allocation of the driver; 0 is never a valid one
using Event = std::uint64_t;   // 0 is never a valid one
using Stream = std::int64_t;   // the raw value of a cudaStream_t; negative values are free for replays

constexpr Bytes kKiB = Bytes{1} << 10;
constexpr Bytes kMiB = Bytes{1} << 20;
constexpr Bytes kGiB = Bytes{1} << 30;

constexpr Bytes round_up(Bytes value, Bytes step) { return (value + step - 1) / step * step; }
constexpr Bytes round_down(Bytes value, Bytes step) { return value / step * step; }

// Ranges of addresses are reserved so far apart that a stray access to one does not reach the next.
constexpr Bytes kRangeDistance = 32 * kMiB;
constexpr Bytes with_distance(Bytes size) { return round_up(size, kRangeDistance) + kRangeDistance; }

// How a driver call ended. Everything but `ok` leaves the device exactly as it was before the call.
enum class Status : std::uint8_t {
    ok,
    out_of_memory,     // no physical memory left
    out_of_addresses,  // no virtual range of that size left
    not_ready,         // event_query only: the work before the event has not finished
    failed,            // anything else that the environment may do to us (also injected faults)
    shutting_down,     // the driver is being torn down: stop calling it, silently
};

const char* name_of(Status status);

template <class T>
struct Outcome {
    Status status = Status::ok;
    T value{};
    [[nodiscard]] bool ok() const { return status == Status::ok; }
};

// The caller broke a rule of the driver (a bug, never an environment condition).
class RuleViolation : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

}  // namespace movie

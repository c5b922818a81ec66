// The account of a device: calls by kind, physical bytes held, modelled time by a named cost table.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "driver/types.h"

namespace movie {

enum class Call : std::uint8_t {
    create,
    release,
    map,
    unmap,
    set_access,
    reserve,
    free_address,
    malloc,
    mfree,
    synchronize,
    event_record,
    stream_wait,
    event_query,
    event_synchronize,
};
constexpr std::size_t kCalls = 14;

std::string_view name_of(Call call);
// Throws std::invalid_argument for an unknown name.
Call call_named(std::string_view name);

// Microseconds a call. `per_page`: set_access and unmap are charged for each handle in their range, not once a call.
struct CostTable {
    std::string_view name;
    bool per_page = false;
    double create = 29, map = 2, set_access = 38, unmap = 34, release = 23, malloc = 700, mfree = 1000;
    double event = 1, wait = 1, reserve = 2, free_address = 2;
};

// "per-call" and "per-page" (the figures of published measurements: vAttention's table for the driver's calls).
// Throws std::invalid_argument for an unknown name.
const CostTable& cost_table(std::string_view name);

struct Ledger {
    std::array<std::uint64_t, kCalls> calls{};
    Bytes reserved = 0;  // physical bytes held: handles created and not released, and plain allocations
    Bytes peak_reserved = 0;
    double seconds = 0;              // modelled time of all calls
    std::uint64_t stalled_rows = 0;  // rows of a replay for which streams (or the host) were made to wait, summed

    [[nodiscard]] std::uint64_t count(Call call) const { return calls[static_cast<std::size_t>(call)]; }
    // A call was made (successful or not).
    void charge(const CostTable& costs, Call call);
    // A call over a range of this many handles did its work: what a per-page table asks beyond the call itself.
    void charge_handles(const CostTable& costs, Call call, std::uint64_t handles);
    void hold(Bytes bytes);
    void give_back(Bytes bytes) { reserved -= bytes; }
};

}  // namespace movie

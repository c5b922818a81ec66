// What the environment asks of the phantom: MOVIE_PHANTOM_*.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/types.h"

namespace movie::phantom {

struct Fault {
    std::string function;
    std::uint64_t call = 0;  // the k-th call fails; 0: every call
    int code = 0;            // 0: what that function most likely answers when it fails
};

struct Settings {
    std::string device;  // name of a card, or the path of a property file; empty: there is no phantom
    int count = 1;
    std::optional<Bytes> memory;  // of each card; else what the card reports
    Bytes taken = 0;              // held by other processes
    std::int64_t lag = 0;         // launches by which the card is behind; -1: work is done only when the host waits
    std::uint64_t seed = 0;       // 0: exactly `lag`; else between 0 and 2 x lag, drawn anew for each stretch of work
    std::vector<Fault> faults;
    std::string costs = "per-call";
    bool delays = false;  // calls take the time that the cost table says
    bool bytes = false;
    bool abort_on_violation = false;  // else a broken rule is said and counted
    bool quiet = false;
    std::string log;       // path, or "stderr": a line for each call that concerns memory
    std::string counters;  // path: JSON at exit

    // Throws std::invalid_argument that names the variable and what it may be.
    static Settings from_environment();
};

}  // namespace movie::phantom

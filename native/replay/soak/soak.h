// A program that never existed, on the host device: random blocks on several late streams, each filled with a pattern
// of its own by queued work, looked at by its own stream and by others, and once more before it is freed. Whatever an
// allocator hands out too early is overwritten while somebody still looks.
#pragma once

#include <cstdint>
#include <string>

#include "driver/host/host_device.h"
#include "replay/catalogue.h"
#include "replay/soak/saboteur.h"

namespace movie {

struct SoakOptions {
    std::string allocator = "movie";
    AllocatorOptions options{};
    std::uint64_t operations = 100'000;  // allocations and frees, all threads together
    std::int64_t streams = 4;
    unsigned threads = 1;  // that call the allocator
    std::uint64_t seed = 1;
    Bytes largest = 32 * kMiB;
    double fill_level = 0.75;  // of the card, that the program keeps in use
    Bytes stride = 16 * kKiB;  // of the patterns
    bool pools = false;        // some blocks come from an isolated pool
    bool validate = false;     // under the validator as well
    HostOptions device{};
    Sabotage sabotage{};
};

struct SoakResult {
    std::uint64_t allocations = 0, frees = 0, out_of_memory = 0;
    std::uint64_t uses_by_others = 0;  // record_stream
    HostReport report{};
    ViewCounters views{};
    std::uint64_t waits = 0;  // that the allocator made streams do
    Bytes peak_requested = 0, peak_reserved = 0;
    // After everything was freed and given back.
    Bytes left_reserved = 0;
    std::size_t left_mappings = 0, left_handles = 0;
    std::string device_problem;  // why the device last failed for a reason of the system's
    double seconds = 0;
    [[nodiscard]] bool clean() const { return report.mismatches == 0 && report.illegal_accesses == 0; }
};

// Throws std::invalid_argument for options that cannot be, ValidationError as the validator does.
SoakResult soak(const SoakOptions& options);

}  // namespace movie

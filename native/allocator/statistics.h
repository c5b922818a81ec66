// Counters with the meaning and the names of torch.cuda.memory_stats().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace movie {

struct Stat {
    std::int64_t current = 0, peak = 0, allocated = 0, freed = 0;

    void increase(std::int64_t amount) {
        current += amount;
        peak = std::max(peak, current);
        allocated += amount;
    }
    void decrease(std::int64_t amount) {
        current -= amount;
        freed += amount;
    }
    void reset_peak() { peak = current; }
    void reset_accumulated() { allocated = freed = 0; }
};

enum class PoolKind : std::uint8_t { all, small, large };  // small: requests of at most 1 MiB

// One figure for all blocks and for the two kinds.
struct StatByKind {
    std::array<Stat, 3> kinds{};

    [[nodiscard]] const Stat& operator[](PoolKind kind) const { return kinds[static_cast<std::size_t>(kind)]; }
    void increase(PoolKind kind, std::int64_t amount) {
        kinds[0].increase(amount);
        if (kind != PoolKind::all) kinds[static_cast<std::size_t>(kind)].increase(amount);
    }
    void decrease(PoolKind kind, std::int64_t amount) {
        kinds[0].decrease(amount);
        if (kind != PoolKind::all) kinds[static_cast<std::size_t>(kind)].decrease(amount);
    }
};

struct Statistics {
    StatByKind allocation, allocated_bytes;           // live blocks, and their bytes after rounding
    StatByKind active, active_bytes;                  // live blocks and those that wait for a stream
    StatByKind requested_bytes;                       // bytes asked for
    StatByKind segment, reserved_bytes;               // pieces of physical memory, and their bytes
    StatByKind inactive_split, inactive_split_bytes;  // free pieces beside live ones
    Stat oversize_allocations, oversize_segments;     // beyond a split limit
    std::int64_t max_split_size = -1;                 // the split limit; -1: none
    std::int64_t num_alloc_retries = 0;  // requests for which cached memory had to be flushed or the host had to wait
    std::int64_t num_ooms = 0;
    std::int64_t num_device_alloc = 0, num_device_free = 0;  // driver calls that obtain and return memory
    std::int64_t num_sync_all_streams = 0;

    // Peaks begin anew at what there is now.
    void reset_peaks() {
        for_each_stat([](Stat& stat) { stat.reset_peak(); });
    }
    // What was counted since the beginning is counted from now on.
    void reset_accumulated() {
        for_each_stat([](Stat& stat) { stat.reset_accumulated(); });
        num_alloc_retries = num_ooms = num_device_alloc = num_device_free = num_sync_all_streams = 0;
    }

  private:
    template <class Visit>
    void for_each_stat(Visit visit) {
        for (StatByKind* by_kind : {&allocation, &allocated_bytes, &active, &active_bytes, &requested_bytes, &segment,
                                    &reserved_bytes, &inactive_split, &inactive_split_bytes})
            for (Stat& stat : by_kind->kinds) visit(stat);
        visit(oversize_allocations);
        visit(oversize_segments);
    }
};

}  // namespace movie

// What PYTORCH_CUDA_ALLOC_CONF says to the native caching allocator, and the sizes that follow from it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "driver/types.h"

namespace movie {

constexpr Bytes kMinBlockSize = 512;           // every block is a multiple
constexpr Bytes kSmallSize = kMiB;             // requests up to here are small
constexpr Bytes kSmallSegment = 2 * kMiB;      // the segment for small requests
constexpr Bytes kMinLargeAlloc = 10 * kMiB;    // from here on a request gets a segment of its own size ...
constexpr Bytes kLargeSegmentStep = 2 * kMiB;  // ... rounded up to this
constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

// Among free blocks of the same size the allocator takes ...
enum class TieRule : std::uint8_t {
    address,  // the one with the lowest address (torch up to 2.11)
    block,    // the one that was made first; a split makes the part that is taken anew (torch 2.12)
    segment,  // the one whose segment was allocated first, then the lowest address (torch 2.13 and later)
};

struct NativeSettings {
    TieRule tie = TieRule::address;
    Bytes max_split_size = kUnlimited;
    Bytes max_non_split_rounding = 20 * kMiB;
    Bytes large_segment_size = 20 * kMiB;  // for requests between 1 and 10 MiB
    // Entry i: into how many steps the sizes in [2^i, 2^(i+1)) MiB are divided; 0 or 1: plain 512-byte rounding. Entry
    // 0 serves smaller sizes too, entry 15 larger ones.
    std::array<std::uint32_t, 16> roundup_power2_divisions{};
    double garbage_collection_threshold = 0;  // share of the memory cap; 0: no collection
    double memory_fraction = 1;               // below 1: caps reserved memory at this share of the card
    // Blocks lie in expandable segments: a rest is always worth splitting off, and a free block at the end of the
    // mapped addresses counts as large as it can grow.
    bool expandable_segments = false;
    Bytes large_step = kMinBlockSize;  // blocks beyond kSmallSize are a multiple of this
    // Search the free blocks once more after the retry has synchronised events. PyTorch does not (its issue 189504): it
    // can report out of memory while a block that fits lies in the pool.
    bool rerun_search = false;

    // Bytes of the block that serves a request. Pre: bytes > 0.
    [[nodiscard]] Bytes round_size(Bytes bytes) const {
        if (bytes < kMinBlockSize) return kMinBlockSize;
        const std::uint32_t divisions = divisions_for(bytes);
        if (divisions > 1 && bytes > kMinBlockSize * divisions) return round_up_to_division(bytes, divisions);
        const Bytes rounded = round_up(bytes, kMinBlockSize);
        return rounded <= kSmallSize ? rounded : round_up(rounded, large_step);
    }
    // Bytes of the segment to ask the driver for when no free block serves a block of `size` bytes.
    [[nodiscard]] Bytes segment_size(Bytes size) const {
        if (size <= kSmallSize) return kSmallSegment;
        if (size < kMinLargeAlloc) return large_segment_size;
        return round_up(size, kLargeSegmentStep);
    }

  private:
    [[nodiscard]] std::uint32_t divisions_for(Bytes bytes) const {
        const int log2 = static_cast<int>(std::bit_width(bytes)) - 1;
        return roundup_power2_divisions[static_cast<std::size_t>(log2 < 20 ? 0 : log2 > 35 ? 15 : log2 - 20)];
    }
    static Bytes round_up_to_division(Bytes bytes, std::uint32_t divisions) {
        if (std::has_single_bit(bytes)) return bytes;
        const Bytes floor = std::bit_floor(bytes);
        const Bytes step = floor >> (static_cast<int>(std::bit_width(divisions)) - 1);
        return step == 0 ? floor << 1 : round_up(bytes, step);
    }
};

// Settings from options by name; sizes in bytes. `roundup_power2_divisions` is one number for all entries, or 16
// numbers with '/' between them. Throws std::invalid_argument for an unknown name or a value out of range.
NativeSettings native_settings(const std::map<std::string, std::string>& options);

}  // namespace movie

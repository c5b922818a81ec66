// Bytes that can be recognised: what queued work of the host device writes into blocks and looks for in them.
#pragma once

#include <optional>

#include "driver/types.h"

namespace movie {

// Which words of a range are written and checked: one in each 512 bytes within `stride` of its ends, and one at each
// multiple of `stride` between them. Two ranges that share `stride` bytes or more, or 512 at an end of the longer one,
// share such a word.
// Pre: addresses and strides are multiples of 8, above 0.
constexpr Bytes kPatternGrain = 512;

void write_pattern(Address address, Bytes size, std::uint64_t pattern, Bytes stride);

struct PatternMismatch {
    Bytes offset = 0;
    std::uint64_t expected = 0, found = 0;
};
// The first word that is not what write_pattern() left there.
std::optional<PatternMismatch> find_mismatch(Address address, Bytes size, std::uint64_t pattern, Bytes stride);

}  // namespace movie

// What of an allocator's memory lies where: segments of mapped addresses, each tiled by its blocks. Every physical byte
// is in exactly one segment. The bytes of a block in a view are where their block is, not at their home addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "driver/types.h"

namespace movie {

struct LaidBlock {
    enum class State : std::uint8_t {
        live,
        pending,  // freed, but other streams may still touch it
        idle,
    };
    Address address = 0;
    Bytes size = 0;
    Bytes requested = 0;
    State state = State::idle;
    std::uint64_t context = 0;  // of its allocation
};

struct LaidSegment {
    enum class Kind : std::uint8_t { arena, view };
    Address address = 0;
    Bytes size = 0;
    Stream stream = 0;
    std::uint64_t pool = 0;
    Kind kind = Kind::arena;
    std::vector<LaidBlock> blocks{};  // by address, without gaps
};

using Layout = std::vector<LaidSegment>;  // by address

}  // namespace movie

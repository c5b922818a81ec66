// What lives in a pool at some moment, so that the pool can go back to it: a tree of CUDA graphs records each branch
// from where the tree forks.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "allocator/allocator.h"

namespace movie {

struct PoolMoment {
    struct Block {
        Address address = 0;
        Bytes size = 0;  // rounded to 512
        Bytes requested = 0;
        Stream stream = 0;
        std::uint64_t context = 0;                          // where in the program it was asked for
        Address slab = 0;                                   // the page of its slab; 0: it is in none
        Address view = 0;                                   // the base of its view; 0: it is in none
        Bytes head = 0;                                     // where in the view it begins
        std::vector<std::pair<Address, Address>> pieces{};  // at home; none of a block in a slab
        bool operator==(const Block&) const = default;
    };
    PoolId pool = 0;
    std::vector<Block> blocks{};  // by address
};

}  // namespace movie

// A piece of home memory that a block (or a slab) occupies.
#pragma once

#include "placement/free_space.h"

namespace movie {

class Pool;

struct Piece {
    Address begin = 0, end = 0;
    ArenaId arena = 0;
    Pool* pool = nullptr;  // whose memory it is: that of the block, or a lender
};

}  // namespace movie

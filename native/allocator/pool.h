// An isolated family of memory: the default one, or that of a CUDA graph or a MemPool. No page is shared between pools.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "allocator/allocator.h"
#include "allocator/slab.h"
#include "memory/arena.h"
#include "placement/free_space.h"
#include "placement/lifetimes.h"
#include "placement/recall.h"
#include "placement/view.h"

namespace movie {

class Pool {
  public:
    Pool(PoolId pool_id, Timelines& timelines) : id(pool_id), space(timelines) {}

    PoolId id;
    FreeSpace space;
    std::vector<std::unique_ptr<Arena>> arenas;        // by ArenaId
    std::unordered_map<TimelineId, ArenaId> arena_of;  // the arena into which a stream grows
    // The arena into which its slabs grow. Apart from the other, since slabs outlive most of what is allocated around
    // them and would cut what comes free there into pieces.
    std::unordered_map<TimelineId, ArenaId> slab_arena_of;
    std::unordered_map<TimelineId, std::unique_ptr<SlabFamily>> slabs;
    std::vector<std::unique_ptr<SlabFamily>> inherited;  // slabs of pools released into this one: only freed from
    Views views;
    std::unordered_map<Address, Views::iterator> view_at;  // by base
    // Of each stream; under policy lean, whose streams share all memory, the first is that of all of them: what one
    // stream asks for alone may be too little to be recognised.
    std::unordered_map<TimelineId, Recall> recalls;
    // Bytes by which it grew rather than have a stream wait, and that have not been needed since (sparing_waits.cpp).
    Bytes ahead = 0;
    bool lendable = false;
    std::uint64_t live = 0;  // blocks

    // The stream whose order a family's blocks follow; all families, inherited ones too.
    std::unordered_map<SlabFamily*, TimelineId> owners;
};

struct LiveBlock {
    Address address = 0;
    Bytes size = 0;  // rounded to 512
    Bytes requested = 0;
    TimelineId timeline = 0;
    Pool* pool = nullptr;
    Slab* slab = nullptr;             // of a small block
    SlabFamily* family = nullptr;     // likewise
    View* view = nullptr;             // in which it lies, if any
    std::vector<Piece> pieces{};      // of a block outside slabs
    std::vector<TimelineId> users{};  // other streams that work with it
    Lifetimes::Time birth = 0;        // of a block outside slabs, where lifetimes are counted
    Bytes withheld = 0;               // of a lender's page, beyond the block: the page leaves its pool whole
    std::uint64_t context = 0;        // where in the program it was asked for
    [[nodiscard]] bool small() const { return size <= kMostSmall; }
};

}  // namespace movie

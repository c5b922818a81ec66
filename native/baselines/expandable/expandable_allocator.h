// PyTorch's caching allocator with expandable_segments:True, as of 2.6 to 2.15: blocks, best fit, events and the
// out-of-memory ladder of `native`, but memory is mapped page by page at the end of long ranges of addresses, one or
// more for each (pool, small or large, stream), and unmapped only when everything idle is given back.
//
// It departs from PyTorch in this:
//  - A segment has 9/8 of the card's addresses, but 1 TiB at most: replays on an ample card would run out of addresses.
//    A stream that needs more gets another segment, as in PyTorch.
//  - The memory cap counts the pages that a request maps; PyTorch looks at the request alone and may pass the cap.
//  - It waits for a segment's stream through an event.
//  - A driver call that fails for other reasons than memory is taken as out of memory, and what it leaves behind is
//  given
//    back later; PyTorch throws.
//  - Garbage collection skips expandable blocks in PyTorch, so that option does nothing here.
#pragma once

#include <map>
#include <unordered_map>

#include "baselines/expandable/segment.h"
#include "baselines/native/native_allocator.h"

namespace movie {

class ExpandableAllocator final : public NativeAllocator {
  public:
    // The driver outlives the allocator. Throws std::invalid_argument if its granularity does not divide the pages.
    ExpandableAllocator(Driver& driver, NativeSettings settings);

  protected:
    Block* grow(const Search& wanted) override;
    bool release(Block* block) override;
    bool begin_releases() override;

  private:
    // The first of adjacent free and unmapped blocks that together are large enough; null: no addresses.
    Block* find_room(FreeList& list, Bytes size);
    Block* new_segment(FreeList& list, Bytes size);
    // Puts memory behind the first `size` bytes of an unmapped block, and what else its pages hold; false: no memory.
    bool map(Block* block, Bytes size);
    void note_change(PoolKind kind, Bytes held_before, Bytes held_now);

    std::unordered_map<std::uint64_t, ExpandableSegment> segments_;  // by number
    std::unordered_map<const FreeList*, std::map<Address, Block*>> unmapped_;
};

}  // namespace movie

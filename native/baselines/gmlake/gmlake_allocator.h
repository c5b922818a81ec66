// GMLake as released (antgroup/glake, for PyTorch 2.0): PyTorch's caching allocator whose large segments consist of 2
// MiB chunks of the driver, and which, before it grows, stitches free blocks of the request's stream into a view, the
// largest blocks first. Views are kept and serve again when all their chunks are free. Up to 1 MiB it is PyTorch's
// allocator.
//
// Modelled: the defaults fragLimit 512 MiB, reuseLimit 10, defragLevel 0, autoGC 1000 GiB, reAlloc 0; sizes above 1 MiB
// rounded to 2 MiB, segments of 20 MiB below 10 MiB; create, map and set_access one by one for each chunk, unmap once
// for a range; growth by the whole request, which on failure creates chunks until the card is full and then releases
// them all; an event at each free; the order of its ladder.
//
// It departs from the release in this:
//  - The release unmaps without waiting for work that may still use the memory, where it gives segments back and where
//    it drops a view at free(). Here the host waits for the device first, or the view goes at a later call.
//  - When a segment goes back whose memory a live view still maps beyond what it uses, the release gives up that handle
//  at
//    once, though the memory stays mapped. Here the handle goes with the view. What is reserved is the same.
//  - Private pools keep their views to themselves; the release searches those of the default pool.
//  - Its defects that lose blocks or end the process (failed mappings, views freed after a part was released) are left
//    out: what the driver refuses is undone.
//  - A failed mapping is not tried again at other addresses (8 times in the release).
//  - No max_split_size, no garbage collection of blocks.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "baselines/gmlake/chunk.h"
#include "baselines/gmlake/settings.h"
#include "baselines/native/native_allocator.h"

namespace movie {

class GmlakeAllocator final : public NativeAllocator {
  public:
    // The driver outlives the allocator. Throws std::invalid_argument if its granularity does not divide 2 MiB.
    GmlakeAllocator(Driver& driver, const GmlakeSettings& settings);

    [[nodiscard]] ViewCounters views() const override;

  protected:
    Block* acquire(const Search& wanted, const Request& request) override;
    Block* search(const Search& wanted) override;
    Block* grow(const Search& wanted) override;
    bool release(Block* block) override;
    bool begin_releases() override;
    void after_empty_cache() override { collect_views(2, 0); }
    Block* place(Block* block, Bytes size) override;
    void put_back(Block* block) override;

  private:
    using Chunk = gmlake::Chunk;
    using Segment = gmlake::Segment;
    using View = gmlake::View;
    struct ShelfKey {
        Bytes size = 0;
        Address address = 0;
        View* view = nullptr;
        friend bool operator<(const ShelfKey& a, const ShelfKey& b) {
            return a.size != b.size ? a.size < b.size : a.address < b.address;
        }
    };
    using Shelf = std::set<ShelfKey>;  // idle views of one pool and stream

    // A new view over the largest free blocks of the request's stream; null if they are too few or too small.
    Block* stitch(const Search& wanted);
    // The free chunks of these blocks, in this order, as far as `size` reaches.
    std::vector<Chunk*> chunks_of(const std::vector<Block*>& blocks, Bytes size);
    std::span<Chunk> chunks_of(const Block& block);
    [[nodiscard]] View* view_of(const Block* block) const;
    // Makes the pieces of the heap under the first `size` bytes of an idle view live.
    void occupy(View& view, Bytes size);
    void use(Chunk& chunk);
    void unuse(Chunk& chunk);
    void shelve(View& view);
    void unshelve(View& view);
    // An event behind the work of a block's stream; 0 if the driver refuses.
    Event record(const Block& block);

    // Drops views whose work is done, the longest unused first: those with chunks in use elsewhere, of which `size`
    // says how many are enough (0: all); from round 1 on the idle ones too.
    void collect_views(int round, Bytes size);
    // False: the driver refused to unmap it. Pre: no work uses it.
    bool drop(View& view);
    // Drops what is condemned: all of it if the device was waited for, else what is known to be unused.
    void drop_condemned(bool waited);
    // A segment that is in the heap no more, or never was: what the driver takes goes back now, the rest later.
    void retire(std::unique_ptr<Segment> segment);
    void clear_retired();
    // True if nothing is left of it.
    bool clear(Segment& segment);

    GmlakeSettings settings_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Segment>> segments_;  // by number
    std::vector<std::unique_ptr<Segment>> retired_;  // not in the heap any more, but something is left of them
    std::unordered_map<const Block*, std::unique_ptr<View>> views_;  // by the block inside
    std::unordered_map<const FreeList*, Shelf> shelves_;
    std::vector<View*> condemned_;  // freed, and to be dropped when their work is done
    Bytes stitched_ = 0;            // bytes of views; as in the release, those that go with a segment stay counted
    std::uint64_t frees_ = 0;
    ViewCounters counters_;
};

}  // namespace movie

// The heart of the native caching allocator: which free block serves a request, how blocks split and merge.
// It knows neither driver nor events; the allocator and the fidelity oracle both drive it.
#pragma once

#include <deque>
#include <map>
#include <memory_resource>
#include <vector>

#include "baselines/native/block.h"
#include "baselines/native/settings.h"

namespace movie {

// A default or private pool: its own small and large blocks.
struct NativePool {
    Bin small, large;
    bool released = false;  // no graph or MemPool owns it any more
    bool lendable = false;

    [[nodiscard]] Bin& bin_for(Bytes size) { return size <= kSmallSize ? small : large; }
};

class BlockHeap {
  public:
    explicit BlockHeap(const NativeSettings& settings) : settings_(settings) {}
    BlockHeap(const BlockHeap&) = delete;
    BlockHeap& operator=(const BlockHeap&) = delete;

    [[nodiscard]] const NativeSettings& settings() const { return settings_; }
    // The pool of this id, made if there is none.
    NativePool& pool(PoolId id);
    [[nodiscard]] std::map<PoolId, NativePool>& pools() { return pools_; }
    [[nodiscard]] const std::map<PoolId, NativePool>& pools() const { return pools_; }
    // Pre: no segments in it.
    void forget_pool(PoolId id) { pools_.erase(id); }
    FreeList& list(Bin& bin, Stream stream);

    // The free block that serves `size` bytes, or null. It stays free.
    [[nodiscard]] Block* find(FreeList& list, Bytes size) const;
    // Makes a free block live and returns it: its first `size` bytes if it is worth splitting.
    Block* take(Block* block, Bytes size);
    // A block that is live or pending becomes free and merges with free neighbours; the result is returned.
    Block* give_back(Block* block);
    // A new segment: one free block.
    Block* add_segment(FreeList& list, Address address, Bytes size);
    // Pre: a free or unmapped block that is a whole segment.
    void remove_segment(Block* block);

    // For expandable segments, whose free addresses may have no memory behind them.
    // A new segment: one unmapped block.
    Block* add_unmapped_segment(FreeList& list, Address address, Bytes size);
    // Links the bytes behind the first `size` as a block of their own, with the same state, and returns it. Pre:
    // neither is in a list.
    Block* split(Block* block, Bytes size);
    // `block` takes in its neighbour. Pre: neither is in a list.
    void join(Block* block, Block* neighbour);
    void insert(Block* block);  // into its list
    void erase(Block* block);   // from its list

    // For the oracle, which follows a recording. The free block of the list that covers the address, or null.
    [[nodiscard]] Block* free_block_at(FreeList& list, Address address) const;
    // Cuts a free block at `address`, which lies inside; returns the part
    // that begins there, free too.
    Block* cut(Block* block, Address address);
    // Makes the first `size` bytes of a free block live, whatever the rest is worth.
    Block* occupy(Block* block, Bytes size);

    // Free blocks that share their segment with others, by kind.
    [[nodiscard]] Bytes split_bytes(PoolKind kind) const { return split_bytes_[static_cast<std::size_t>(kind)]; }
    [[nodiscard]] std::uint64_t split_blocks(PoolKind kind) const {
        return split_blocks_[static_cast<std::size_t>(kind)];
    }

  private:
    [[nodiscard]] bool worth_splitting(const Block& block, Bytes size) const;
    // With what the unmapped addresses behind it would add.
    [[nodiscard]] static Bytes expandable_size(const Block& block);
    [[nodiscard]] FreeKey key(Block* block) const {
        return {.size = block->size, .order = order(*block), .address = block->address, .block = block};
    }
    [[nodiscard]] std::uint64_t order(const Block& block) const {
        if (settings_.tie == TieRule::address) return 0;
        return settings_.tie == TieRule::segment ? block.segment : block.number;
    }
    // Of a free block in no list: the rest becomes a free block.
    void leave_rest(Block* block, Bytes size);
    Block* new_block();
    void delete_block(Block* block);

    NativeSettings settings_;
    std::pmr::unsynchronized_pool_resource nodes_;
    std::deque<Block> storage_;
    std::vector<Block*> unused_;
    std::map<PoolId, NativePool> pools_;
    std::uint64_t segments_ = 0;
    std::uint64_t blocks_ = 0;  // made ever
    Bytes split_bytes_[3]{};
    std::uint64_t split_blocks_[3]{};
};

}  // namespace movie

// PyTorch's native caching allocator (2.6 and later, without expandable segments), with its quirks: the baseline.
// Its relatives share most of it; they override where memory comes from and how it goes back.
#pragma once

#include <tsl/robin_map.h>

#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "allocator/allocator.h"
#include "baselines/native/block_heap.h"
#include "driver/driver.h"

namespace movie {

class NativeAllocator : public Allocator {
  public:
    // The driver outlives the allocator.
    NativeAllocator(Driver& driver, const NativeSettings& settings);

    Address malloc(const Request& request) override;
    void free(Address address) override;
    void record_stream(Address address, Stream stream) override;
    void empty_cache() override;
    Bytes reclaim(Bytes bytes) override;
    void release_pool(PoolId pool) override;
    void set_pool_lendable(PoolId pool, bool lendable) override;
    void set_memory_cap(Bytes bytes) override;
    [[nodiscard]] Statistics statistics() const override;
    [[nodiscard]] Unusable unusable(Stream stream, PoolId pool) const override;
    [[nodiscard]] ViewCounters views() const override { return {}; }

  protected:
    // What one malloc looks for.
    struct Search {
        FreeList* list = nullptr;
        Bytes size = 0;          // of the block
        Bytes segment_size = 0;  // of the segment that would have to be allocated
    };

    // --- where relatives differ; called with the mutex held ----------------------------------------------------------
    // All rungs that malloc climbs: a free block that serves, or null.
    virtual Block* acquire(const Search& wanted, const Request& request);
    // The cached free block that serves, or null.
    virtual Block* search(const Search& wanted);
    // Obtains memory from the driver: a free block that serves, or null.
    virtual Block* grow(const Search& wanted);
    // Gives back to the driver what can be given of a free block's memory; whether any was.
    virtual bool release(Block* block);
    // Comes before blocks are released; false: nothing can be.
    virtual bool begin_releases() { return true; }
    // Comes last in empty_cache().
    virtual void after_empty_cache() {}
    // Makes a free block that acquire() found live, as large as wanted, and returns it.
    virtual Block* place(Block* block, Bytes size) { return heap_.take(block, size); }
    // The contrary: nothing uses the block any more.
    virtual void put_back(Block* block) { heap_.give_back(block); }

    // --- what they share ---------------------------------------------------------------------------------------------
    // The memory cap, then grow().
    Block* allocate_segment(const Search& wanted, bool is_retry);
    void release_all();
    // Waits for what other streams still do with freed blocks.
    void synchronize_events();
    void note_reserved(PoolKind kind, Bytes bytes);
    void note_returned(PoolKind kind, Bytes bytes);
    [[nodiscard]] Bytes reserved() const {
        return static_cast<Bytes>(statistics_.reserved_bytes[PoolKind::all].current);
    }

    Driver& driver_;
    BlockHeap heap_;
    Bytes cap_ = 0;  // on reserved bytes; 0: none
    Statistics statistics_;

  private:
    struct Use {
        Event event = 0;  // 0: recording it failed and is tried again
        Block* block = nullptr;
    };

    // As PyTorch, any block that fits: so blocks of both pools may lie in one segment, which MOVie's own rules forbid.
    Block* borrow_from_lendable_pools(const Search& wanted, Stream stream);
    bool release_oversize_blocks(const Search& wanted);
    void collect_garbage();
    [[noreturn]] void out_of_memory(const Request& request, const Search& wanted);

    Address hand_out(Block* block, const Search& wanted, const Request& request);
    void finish_free(Block* block);
    // Events behind the uses of other streams: polled at each malloc, per stream in order of recording.
    void record_uses(Block* block);
    void poll_events();
    bool resolve(Stream stream, Use& use, bool wait);

    void release_blocks(Bin& bin);
    [[nodiscard]] bool collects_garbage() const {
        return cap_ != 0 && heap_.settings().garbage_collection_threshold > 0;
    }
    // The blocks of a list that may have memory to give back, in order of their sizes.
    [[nodiscard]] std::vector<Block*> releasable(const FreeList& list) const;

    // Brings the statistics of free split blocks up to the heap's.
    void note_split_blocks(PoolKind kind);

    struct AddressHash {
        std::size_t operator()(Address address) const {
            const std::uint64_t mixed = (address >> 9) * 0x9e3779b97f4a7c15U;  // blocks are multiples of 512 bytes
            return static_cast<std::size_t>(mixed ^ (mixed >> 32));
        }
    };

    mutable std::mutex mutex_;
    NativePool& default_pool_;
    tsl::robin_map<Address, Block*, AddressHash> live_;
    std::map<Stream, std::deque<Use>> uses_;
    Bytes live_requested_ = 0;
};

}  // namespace movie

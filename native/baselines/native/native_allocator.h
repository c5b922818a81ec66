// PyTorch's native caching allocator (2.6 and later, without expandable segments), with its quirks: the baseline.
#pragma once

#include <tsl/robin_map.h>

#include <deque>
#include <map>
#include <mutex>

#include "allocator/allocator.h"
#include "baselines/native/block_heap.h"
#include "driver/driver.h"

namespace movie {

class NativeAllocator final : public Allocator {
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

  private:
    // What one malloc looks for.
    struct Search {
        FreeList* list = nullptr;
        Bytes size = 0;          // of the block
        Bytes segment_size = 0;  // of the segment that would have to be allocated
    };
    struct Use {
        Event event = 0;  // 0: recording it failed and is tried again
        Block* block = nullptr;
    };

    // The rungs, in the order in which malloc climbs them.
    Block* search(const Search& wanted);
    Block* allocate_segment(const Search& wanted, bool is_retry);
    Block* borrow_from_lendable_pools(const Search& wanted, Stream stream);
    bool release_oversize_blocks(const Search& wanted);
    void release_all();
    void collect_garbage();
    [[noreturn]] void out_of_memory(const Request& request, const Search& wanted);

    Address hand_out(Block* block, const Search& wanted, const Request& request);
    void finish_free(Block* block);
    // Events behind the uses of other streams: polled at each malloc, per stream in order of recording.
    void record_uses(Block* block);
    void poll_events();
    void synchronize_events();
    bool resolve(Stream stream, Use& use, bool wait);

    bool release_segment(Block* block);
    bool release_whole_blocks(Bin& bin);
    bool release_largest(Bytes at_least, Bytes& released);
    [[nodiscard]] bool collects_garbage() const {
        return cap_ != 0 && heap_.settings().garbage_collection_threshold > 0;
    }
    [[nodiscard]] Bytes reserved() const {
        return static_cast<Bytes>(statistics_.reserved_bytes[PoolKind::all].current);
    }

    // Brings the statistics of free split blocks up to the heap's.
    void note_split_blocks(PoolKind kind);

    struct AddressHash {
        std::size_t operator()(Address address) const {
            const std::uint64_t mixed = (address >> 9) * 0x9e3779b97f4a7c15U;  // blocks are multiples of 512 bytes
            return static_cast<std::size_t>(mixed ^ (mixed >> 32));
        }
    };

    mutable std::mutex mutex_;
    Driver& driver_;
    BlockHeap heap_;
    NativePool& default_pool_;
    tsl::robin_map<Address, Block*, AddressHash> live_;
    std::map<Stream, std::deque<Use>> uses_;
    Bytes cap_ = 0;
    Bytes live_requested_ = 0;
    Statistics statistics_;
};

}  // namespace movie

// Does the model of the native allocator choose what PyTorch chose? The oracle follows a recording with the allocator's
// own heap and, before each step, compares what the heap would do with what was recorded.
#pragma once

#include <tsl/robin_map.h>

#include <optional>
#include <vector>

#include "baselines/native/block_heap.h"
#include "baselines/native/settings.h"

namespace movie {

struct OracleCounts {
    std::uint64_t allocations = 0;
    std::uint64_t wrong_addresses = 0;
    std::uint64_t segments = 0;             // allocated in the recording
    std::uint64_t unexpected_segments = 0;  // allocated although a free block would have served
    std::uint64_t missing_segments = 0;     // not allocated although no free block would have served
    std::uint64_t wrong_segment_sizes = 0;
    std::uint64_t lost = 0;  // steps that cannot be followed: the model knows no such block or segment

    [[nodiscard]] std::uint64_t mistakes() const {
        return wrong_addresses + unexpected_segments + missing_segments + wrong_segment_sizes + lost;
    }
};

class NativeOracle {
  public:
    explicit NativeOracle(const NativeSettings& settings) : heap_(settings) {}

    // --- the state at the start --------------------------------------------------------------------------------------
    void start_segment(Address address, Bytes size, Stream stream, PoolId pool, bool small);
    // A block in the segment that was started last, behind the ones before. False if it does not fit in there.
    bool start_block(Address address, Bytes size);

    // --- the steps of the recording ----------------------------------------------------------------------------------
    void segment_alloc(Address address, Bytes size);  // an alloc() follows: the one that caused it
    void segment_free(Address address);
    // After a wrong guess the recording is followed.
    struct Guess {
        bool right = false;
        // Where the block was expected, if the model expected a free block to serve; the state before the step.
        struct Hole {
            Address address = 0;
            Bytes size = 0;
            Address after = 0;  // the block before the hole in its segment, 0 if none
        };
        std::optional<Hole> expected;
    };
    Guess alloc(Address address, Bytes bytes, Stream stream, PoolId pool);
    void free(Address address);

    [[nodiscard]] const OracleCounts& counts() const { return counts_; }
    [[nodiscard]] const NativeSettings& settings() const { return heap_.settings(); }

  private:
    struct AddressHash {
        std::size_t operator()(Address address) const {
            return static_cast<std::size_t>((address >> 9) * 0x9e3779b97f4a7c15U >> 16);
        }
    };
    struct Segment {
        Address address = 0;
        Bytes size = 0;
    };

    BlockHeap heap_;
    Block* tail_ = nullptr;  // the free end of the segment that was started last
    std::optional<Segment> announced_;
    tsl::robin_map<Address, Block*, AddressHash> live_;
    tsl::robin_map<Address, FreeList*, AddressHash> segments_;
    OracleCounts counts_;
};

}  // namespace movie

// How large the blocks were that lived before a recording began.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "baselines/native/oracle.h"
#include "replay/fidelity.h"
#include "replay/trace_view.h"

namespace movie {

// A snapshot shows the true size of blocks that live to its end. Of one that is freed before, it tells only what was
// asked for; the block may own a rest of up to 1 MiB that was not worth splitting off, and the free memory behind the
// block is smaller by that. Two things tell:
//  - The first allocation in the free memory behind the block, while it lives, begins where the block ends.
//  - An allocation that the free memory would have served best, had the block no rest, but that went elsewhere: so the
//    block has a rest, at least as large as makes the free memory too small.
class StartSizes {
  public:
    StartSizes(const TraceView& trace, const RecordedState& state, const NativeSettings& settings);

    [[nodiscard]] Bytes operator[](std::size_t block) const { return blocks_[block].size; }
    // Learns from a wrong guess of the oracle for a block of `size` bytes; false if it tells nothing new about the
    // start.
    bool learn(const NativeOracle::Guess& guess, Bytes size);
    [[nodiscard]] std::uint64_t resized() const;

  private:
    struct StartBlock {
        Bytes stated = 0;  // as the state says
        Bytes size = 0;    // as we think
        Bytes most = 0;    // with the largest rest that is possible
        bool uncertain = false;
    };
    void read_ends(const TraceView& trace, const RecordedState& state);

    std::vector<StartBlock> blocks_;
    std::unordered_map<Address, std::size_t> uncertain_;
};

}  // namespace movie

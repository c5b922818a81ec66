#include "replay/fidelity.h"

#include <stdexcept>

#include "replay/check_trace.h"
#include "replay/start_sizes.h"

namespace movie {
namespace {

// A bound for hostile input: each walk but the last teaches something about the start state.
constexpr int kMostWalks = 200;

struct Walk {
    OracleCounts counts;
    std::int64_t first_wrong_row = -1;
    bool learned = false;  // and broken off: the start state is better known now
};

bool adopt(NativeOracle& oracle, const RecordedState& state, const StartSizes& sizes) {
    std::size_t block = 0;
    for (std::size_t i = 0; i < state.segment_address.size(); ++i) {
        const Address begin = state.segment_address[i];
        const Address end = begin + static_cast<Bytes>(state.segment_size[i]);
        oracle.start_segment(begin, end - begin, state.segment_stream[i], static_cast<PoolId>(state.segment_pool[i]),
                             state.segment_small[i]);
        for (; block < state.block_address.size() && state.block_address[block] < end; ++block)
            if (!oracle.start_block(state.block_address[block], sizes[block])) return false;
    }
    return block == state.block_address.size();
}

Walk follow(const TraceView& trace, const RecordedState& state, const NativeSettings& settings, StartSizes& sizes,
            bool may_learn) {
    NativeOracle oracle(settings);
    if (!adopt(oracle, state, sizes))
        throw std::invalid_argument("the start blocks do not lie in the start segments, in the order of addresses");
    Walk walk;
    for (std::size_t row = 0; row < trace.rows(); ++row) {
        const Address address = trace.address[row];
        switch (static_cast<Action>(trace.action[row])) {
            case Action::segment_alloc:
                oracle.segment_alloc(address, static_cast<Bytes>(trace.bytes[row]));
                break;
            case Action::segment_free:
                oracle.segment_free(address);
                break;
            case Action::alloc: {
                const auto bytes = static_cast<Bytes>(trace.bytes[row]);
                const NativeOracle::Guess guess =
                    oracle.alloc(address, bytes, trace.stream[row], static_cast<PoolId>(trace.pool[row]));
                if (guess.right) break;
                if (may_learn && sizes.learn(guess, settings.round_size(bytes))) {
                    walk.learned = true;
                    return walk;
                }
                if (walk.first_wrong_row < 0) walk.first_wrong_row = static_cast<std::int64_t>(row);
                break;
            }
            case Action::free_completed:
                oracle.free(address);
                break;
            default:
                break;
        }
    }
    walk.counts = oracle.counts();
    return walk;
}

}  // namespace

Fidelity check_native(const TraceView& trace, const RecordedState& state, const NativeSettings& settings) {
    check_trace(trace);
    if (trace.address.size() != trace.rows()) throw std::invalid_argument("the trace has no addresses");
    if (state.block_address.size() != trace.start_bytes.size() || state.block_size.size() != trace.start_bytes.size())
        throw std::invalid_argument("the start state differs in length from the trace's");
    const std::size_t segments = state.segment_address.size();
    if (state.segment_size.size() != segments || state.segment_stream.size() != segments ||
        state.segment_pool.size() != segments || state.segment_small.size() != segments)
        throw std::invalid_argument("the columns of the start segments differ in length");

    StartSizes sizes(trace, state, settings);
    Walk walk;
    for (int walks = 1; walks == 1 || walk.learned; ++walks)
        walk = follow(trace, state, settings, sizes, walks < kMostWalks);
    return {.counts = walk.counts, .first_wrong_row = walk.first_wrong_row, .resized_start_blocks = sizes.resized()};
}

}  // namespace movie

#include "replay/start_sizes.h"

#include <algorithm>
#include <map>

namespace movie {

StartSizes::StartSizes(const TraceView& trace, const RecordedState& state, const NativeSettings& settings)
    : blocks_(state.block_address.size()) {
    std::size_t segment = 0;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        StartBlock& block = blocks_[i];
        block.stated = block.size = block.most = static_cast<Bytes>(state.block_size[i]);
        const Address address = state.block_address[i];
        while (segment + 1 < state.segment_address.size() && state.segment_address[segment + 1] <= address) ++segment;
        if (segment >= state.segment_address.size() || state.segment_small[segment])
            continue;  // small ones have no rest
        Address limit = state.segment_address[segment] + static_cast<Bytes>(state.segment_size[segment]);
        if (i + 1 < blocks_.size()) limit = std::min<Address>(limit, state.block_address[i + 1]);
        // Free memory of large segments is never in pieces of up to 1 MiB.
        const Bytes gap = limit - address - block.size;
        if (gap <= kSmallSize + kMinBlockSize) continue;
        const Bytes asked = settings.round_size(static_cast<Bytes>(trace.start_bytes[i]));
        block.most = std::min(asked + kSmallSize, limit - address - kSmallSize - kMinBlockSize);
    }
    std::vector<bool> freed(blocks_.size());
    for (std::size_t row = 0; row < trace.rows(); ++row) {
        const auto action = static_cast<Action>(trace.action[row]);
        if (action != Action::free_requested && action != Action::free_completed) continue;
        if (const auto id = static_cast<std::size_t>(trace.id[row]); id < freed.size()) freed[id] = true;
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        if (!freed[i] || blocks_[i].most <= blocks_[i].size) continue;
        blocks_[i].uncertain = true;
        uncertain_.emplace(state.block_address[i], i);
    }
    if (!uncertain_.empty()) read_ends(trace, state);
}

void StartSizes::read_ends(const TraceView& trace, const RecordedState& state) {
    std::map<Address, std::size_t> live;  // to the start block, or beyond for later ones
    const std::size_t later = blocks_.size();
    for (std::size_t i = 0; i < blocks_.size(); ++i) live.emplace(state.block_address[i], i);
    std::map<Address, Bytes> segments;
    for (std::size_t i = 0; i < state.segment_address.size(); ++i)
        segments.emplace(state.segment_address[i], static_cast<Bytes>(state.segment_size[i]));

    for (std::size_t row = 0; row < trace.rows(); ++row) {
        const Address address = trace.address[row];
        switch (static_cast<Action>(trace.action[row])) {
            case Action::segment_alloc:
                segments[address] = static_cast<Bytes>(trace.bytes[row]);
                break;
            case Action::segment_free:
                segments.erase(address);
                break;
            case Action::free_completed:
                live.erase(address);
                break;
            case Action::alloc: {
                const auto next = live.lower_bound(address);
                if (next != live.begin()) {
                    const auto [before, block] = *std::prev(next);
                    const auto segment = segments.upper_bound(address);
                    const bool same = segment != segments.begin() && std::prev(segment)->first <= before;
                    if (same && block != later && blocks_[block].uncertain) {
                        const Bytes size = address - before;
                        if (size >= blocks_[block].size && size <= blocks_[block].most) blocks_[block].size = size;
                        blocks_[block].uncertain = false;
                        uncertain_.erase(before);
                    }
                }
                live.insert_or_assign(address, later);
                break;
            }
            default:
                break;
        }
    }
}

bool StartSizes::learn(const NativeOracle::Guess& guess, Bytes size) {
    if (guess.right || !guess.expected || guess.expected->after == 0) return false;
    const auto found = uncertain_.find(guess.expected->after);
    if (found == uncertain_.end()) return false;
    StartBlock& block = blocks_[found->second];
    if (guess.expected->address != found->first + block.size) return false;  // another block that begins there by now
    const Bytes rest = guess.expected->size - size + kMinBlockSize;
    if (block.size + rest > block.most) return false;
    block.size += rest;
    return true;
}

std::uint64_t StartSizes::resized() const {
    return static_cast<std::uint64_t>(std::count_if(
        blocks_.begin(), blocks_.end(), [](const StartBlock& block) { return block.size != block.stated; }));
}

}  // namespace movie

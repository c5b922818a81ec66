#include "allocator/layout.h"

#include <algorithm>
#include <map>

#include "allocator/movie_allocator.h"

namespace movie {

namespace {

using State = LaidBlock::State;

// What is known to lie at home addresses: blocks by address, and ranges whose bytes are in a view now.
using Placed = std::map<Address, LaidBlock>;
using Elsewhere = std::map<Address, Address>;

std::vector<LaidBlock> tile(Address begin, Address end, const Placed& placed) {
    std::vector<LaidBlock> blocks;
    Address at = begin;
    for (auto next = placed.lower_bound(begin); next != placed.end() && next->first < end; ++next) {
        if (next->first > at) blocks.push_back({.address = at, .size = next->first - at});
        blocks.push_back(next->second);
        at = next->first + next->second.size;
    }
    if (at < end) blocks.push_back({.address = at, .size = end - at});
    return blocks;
}

}  // namespace

Layout MovieAllocator::layout() const {
    const std::lock_guard lock(mutex_);
    Layout layout;
    Placed placed;
    Elsewhere elsewhere;
    for (const auto& [address, block] : blocks_) {
        const LaidBlock laid{.address = address,
                             .size = block->size,
                             .requested = block->requested,
                             .state = State::live,
                             .context = block->context};
        if (block->view == nullptr) {
            placed.emplace(address, laid);
            continue;
        }
        LaidSegment segment{.address = address,
                            .size = block->size + block->withheld,
                            .stream = timelines_.stream_of(block->timeline),
                            .pool = block->pool->id,
                            .kind = LaidSegment::Kind::view};
        segment.blocks = tile(segment.address, segment.address + segment.size, {{address, laid}});
        layout.push_back(std::move(segment));
        for (const Piece& piece : block->pieces) elsewhere.emplace(piece.begin, piece.end);
    }
    for (const auto& pool : pools_)
        for (const auto& [family, owner] : pool->owners)
            family->for_each_waiting([&placed](const SlabFamily::Waiting& block) {
                placed.emplace(block.address, LaidBlock{.address = block.address,
                                                        .size = block.bytes(),
                                                        .requested = block.requested,
                                                        .state = State::pending,
                                                        .context = block.context});
            });
    for (const auto& pool : pools_)
        for (ArenaId arena = 0; arena < pool->arenas.size(); ++arena) {
            const Stream stream = timelines_.stream_of(pool->space.owner(arena));
            const auto add = [&](Address begin, Address end) {
                if (begin < end)
                    layout.push_back({.address = begin,
                                      .size = end - begin,
                                      .stream = stream,
                                      .pool = pool->id,
                                      .kind = LaidSegment::Kind::arena,
                                      .blocks = tile(begin, end, placed)});
            };
            for (const auto& [begin, end] : pool->arenas[arena]->filled()) {
                Address at = begin;
                for (auto gone = elsewhere.lower_bound(begin); gone != elsewhere.end() && gone->first < end; ++gone) {
                    add(at, gone->first);
                    at = gone->second;
                }
                add(at, end);
            }
        }
    std::sort(layout.begin(), layout.end(),
              [](const LaidSegment& a, const LaidSegment& b) { return a.address < b.address; });
    return layout;
}

}  // namespace movie

// A pool goes back to an earlier moment: what has come since is freed, what has been freed since lives again where it
// was. Nothing moves in between: pages of pools of their own leave for nobody, and views that a moment holds stay as
// they are.
#include <algorithm>
#include <stdexcept>

#include "allocator/movie_allocator.h"

namespace movie {

PoolMoment::Block MovieAllocator::held_as(const LiveBlock& block) const {
    PoolMoment::Block held{.address = block.address,
                           .size = block.size,
                           .requested = block.requested,
                           .stream = timelines_.stream_of(block.timeline),
                           .context = block.context};
    if (block.slab != nullptr) held.slab = block.slab->home.begin;
    if (block.view != nullptr) {
        held.view = block.view->base;
        held.head = block.address - block.view->base;
    }
    for (const Piece& piece : block.pieces) held.pieces.emplace_back(piece.begin, piece.end);
    return held;
}

std::vector<LiveBlock*> MovieAllocator::live_in(const Pool& pool) {
    std::vector<LiveBlock*> live;
    for (const auto& [address, block] : blocks_)
        if (block->pool == &pool) live.push_back(block);
    std::sort(live.begin(), live.end(), [](const auto* a, const auto* b) { return a->address < b->address; });
    return live;
}

PoolMoment MovieAllocator::moment(PoolId id) {
    const std::lock_guard lock(mutex_);
    PoolMoment moment{.pool = id};
    const auto found = pool_by_id_.find(id);
    if (found == pool_by_id_.end()) return moment;
    for (const LiveBlock* const block : live_in(*found->second)) {
        moment.blocks.push_back(held_as(*block));
        if (block->view != nullptr) block->view->captured = true;
    }
    return moment;
}

MovieAllocator::Rewound MovieAllocator::rewind(const PoolMoment& moment) {
    const std::lock_guard lock(mutex_);
    Rewound rewound;
    Pool& pool = pool_of(moment.pool);
    const auto by_address = [](const PoolMoment::Block& held, Address address) { return held.address < address; };
    std::vector<Address> stay;
    for (LiveBlock* const block : live_in(pool)) {
        rewound.freed.push_back(block->address);
        const auto held = std::lower_bound(moment.blocks.begin(), moment.blocks.end(), block->address, by_address);
        if (held != moment.blocks.end() && *held == held_as(*block)) {
            stay.push_back(block->address);
            continue;
        }
        blocks_.erase(block->address);
        retire(*block, 0);
    }
    wait_for_slabs_of(pool);
    return_empty_slabs(pool);
    for (const PoolMoment::Block& held : moment.blocks) {
        rewound.live.push_back(held.address);
        if (std::binary_search(stay.begin(), stay.end(), held.address)) continue;
        if (!take_again(pool, held))
            throw std::runtime_error("MOVie: pool " + std::to_string(moment.pool) +
                                     " cannot go back to an earlier moment: memory at " + std::to_string(held.address) +
                                     " is in use, or other streams may still touch it");
    }
    return rewound;
}

bool MovieAllocator::take_again(Pool& pool, const PoolMoment::Block& held) {
    const TimelineId timeline = timelines_.of(held.stream);
    const Site site{pool, timeline, arena_for(pool, timeline), held.size};
    LiveBlock block{.address = held.address,
                    .size = held.size,
                    .requested = held.requested,
                    .timeline = timeline,
                    .pool = &pool,
                    .context = held.context};
    if (held.slab != 0) {
        SlabFamily& family = family_for(pool, timeline);
        block.slab = slab_at(site, family, held.slab);
        if (block.slab == nullptr ||
            !family.allocate_at(block.slab, held.address, static_cast<std::uint32_t>(held.size / kUnit)))
            return false;
        block.family = &family;
        book(std::move(block), PoolKind::small);
        return true;
    }
    for (const auto& [begin, end] : held.pieces)
        if (!pool.space.covers(begin, end, std::nullopt)) return false;
    std::optional<Placement> placement;
    if (held.view != 0) {
        const auto view = pool.view_at.find(held.view);
        if (view == pool.view_at.end() || view->second->live_bytes != 0) return false;
        std::vector<std::pair<Address, Address>> pieces;
        for (const HomeRange& range : home_ranges(*view->second, held.head, held.size, grain_))
            pieces.emplace_back(range.begin, range.end);
        if (pieces != held.pieces) return false;
        placement = occupy(site, *view->second, held.head);
    } else {
        const Address end = held.address + held.size;
        const ArenaId arena = pool.space.arena_at(held.address);
        if (wait_and_take(site, held.address, end, pool))
            placement = Placement{.address = held.address, .pieces = {{held.address, end, arena, &pool}}};
    }
    if (!placement) return false;
    block.view = placement->view;
    block.pieces = std::move(placement->pieces);
    book(std::move(block), block.small() ? PoolKind::small : PoolKind::large);
    return true;
}

Slab* MovieAllocator::slab_at(const Site& site, SlabFamily& family, Address page) {
    Slab* found = nullptr;
    const auto look = [&] {
        family.for_each_slab([&](Slab& slab) {
            if (slab.home.begin == page) found = &slab;
        });
    };
    look();
    if (found != nullptr || !site.pool.space.covers(page, page + kSlabBytes, std::nullopt)) return found;
    const ArenaId arena = site.pool.space.arena_at(page);
    if (!wait_and_take(site, page, page + kSlabBytes, site.pool)) return nullptr;
    family.add_slab({page, page + kSlabBytes, arena, &site.pool});
    look();
    return found;
}

}  // namespace movie

// Pools, and what a stream has in one: arenas, slabs, and the memory of what it asked for.
#include "allocator/movie_allocator.h"

namespace movie {

const MovieAllocator::Asker& MovieAllocator::asker_for(const Request& request) {
    if (last_.pool == nullptr || last_.stream != request.stream || last_.id != request.pool) {
        Pool& pool = pool_of(request.pool);
        const TimelineId timeline = timelines_.of(request.stream);
        last_ = {request.stream,
                 request.pool,
                 &pool,
                 timeline,
                 arena_for(pool, timeline),
                 slab_arena_for(pool, timeline),
                 &family_for(pool, timeline),
                 &recall_for(pool, timeline)};
    }
    return last_;
}

Pool& MovieAllocator::pool_of(PoolId id) {
    Pool*& pool = pool_by_id_[id];
    if (pool == nullptr) {
        pools_.push_back(std::make_unique<Pool>(id, timelines_));
        pool = pools_.back().get();
    }
    return *pool;
}

ArenaId MovieAllocator::arena_for(Pool& pool, TimelineId timeline) {
    const auto [found, fresh] = pool.arena_of.try_emplace(timeline, 0);
    if (fresh) found->second = add_arena(pool, timeline);
    return found->second;
}

ArenaId MovieAllocator::slab_arena_for(Pool& pool, TimelineId timeline) {
    // Policy lean takes any free page for a slab before it grows, so nothing would be kept apart.
    if (config_.policy == Policy::lean) return arena_for(pool, timeline);
    const auto [found, fresh] = pool.slab_arena_of.try_emplace(timeline, 0);
    if (fresh) found->second = add_arena(pool, timeline);
    return found->second;
}

ArenaId MovieAllocator::add_arena(Pool& pool, TimelineId timeline) {
    // The first arenas have room for the whole card each; where there are hundreds addresses are scarce, and the others
    // grow in smaller steps.
    const Bytes span = std::max(std::min(config_.arena_span, kGiB), config_.arena_span >> (arena_count_++ / 64));
    pool.arenas.push_back(std::make_unique<Arena>(driver_, table_, debris_, span));
    return pool.space.add_arena(timeline);
}

Recall& MovieAllocator::recall_for(Pool& pool, TimelineId timeline) {
    const bool lean = config_.policy == Policy::lean;
    return pool.recalls.try_emplace(lean ? 0 : timeline, Recall(lean)).first->second;
}

SlabFamily& MovieAllocator::family_for(Pool& pool, TimelineId timeline) {
    auto& family = pool.slabs[timeline];
    if (!family) {
        family = std::make_unique<SlabFamily>();
        pool.owners.emplace(family.get(), timeline);
    }
    return *family;
}

void MovieAllocator::release_pool(PoolId id) {
    const std::lock_guard lock(mutex_);
    const auto found = pool_by_id_.find(id);
    if (id == 0 || found == pool_by_id_.end()) return;
    last_ = {};
    Pool& old = *found->second;
    return_empty_slabs(old);
    Pool& heir = *pools_.front();
    // The arenas go on as further arenas of the default pool: nothing is unmapped, nothing moves.
    std::vector<ArenaId> renamed;
    for (ArenaId arena = 0; arena < old.arenas.size(); ++arena) {
        renamed.push_back(heir.space.add_arena(old.space.owner(arena)));
        heir.arenas.push_back(std::move(old.arenas[arena]));
    }
    old.space.move_to(heir.space, [&](ArenaId arena) { return renamed[arena]; });
    const auto rename = [&](Piece& piece) {
        if (piece.pool != &old) return;
        piece.pool = &heir;
        piece.arena = renamed[piece.arena];
    };
    for (auto& [timeline, family] : old.slabs) {
        family->for_each_slab([&](Slab& slab) { rename(slab.home); });
        heir.owners.emplace(family.get(), timeline);
        heir.inherited.push_back(std::move(family));
    }
    for (auto& family : old.inherited) heir.inherited.push_back(std::move(family));
    for (auto entry = blocks_.begin(); entry != blocks_.end(); ++entry) {
        LiveBlock& block = *entry->second;
        for (Piece& piece : block.pieces) rename(piece);
        if (block.pool != &old) continue;
        block.pool = &heir;
        ++heir.live;
    }
    for (const auto& pool : pools_)  // slabs that borrowed from it
        for (auto& [family, owner] : pool->owners) family->for_each_slab([&](Slab& slab) { rename(slab.home); });
    for (View& view : old.views) view.captured = false;  // no graph lives in it any more
    heir.views.splice(heir.views.end(), old.views);
    heir.view_at.merge(old.view_at);
    pool_by_id_.erase(found);
    std::erase_if(pools_, [&](const auto& pool) { return pool.get() == &old; });
}

void MovieAllocator::set_pool_lendable(PoolId pool, bool lendable) {
    const std::lock_guard lock(mutex_);
    pool_of(pool).lendable = lendable;
}

}  // namespace movie

// Blocks, pools and the books. How a request is served: serve.cpp.
#include "allocator/movie_allocator.h"

#include <algorithm>
#include <stdexcept>

namespace movie {

namespace {

constexpr Bytes kMostBytes = Bytes{1} << 62;
constexpr Bytes kLargestPage = 16;  // times the smallest: the calls for memory are then no longer what counts

}  // namespace

MovieAllocator::MovieAllocator(Driver& driver, const MovieConfig& config)
    : driver_(driver),
      config_(config),
      grain_(config.page),
      timelines_(driver),
      table_(config.page),
      history_(config.history) {
    if (grain_ == 0 || grain_ % driver.granularity() != 0 || grain_ % kSlabBytes != 0)
        throw std::invalid_argument("the page size must be a multiple of 2 MiB and of the device's granularity");
    if (config_.largest_page == 0)
        config_.largest_page = config_.policy == Policy::automatic ? kLargestPage * grain_ : grain_;
    if (config_.largest_page < grain_) throw std::invalid_argument("the largest page is smaller than the smallest");
    if (config_.arena_span == 0) config_.arena_span = driver.memory_info().total;
    pool_of(0);
}

// The driver takes everything back when the process ends; a model device is dropped as a whole.
MovieAllocator::~MovieAllocator() = default;

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

LiveBlock& MovieAllocator::book(LiveBlock block, PoolKind kind) {
    LiveBlock* stored = nullptr;
    if (spare_.empty()) {
        stored = &store_.emplace_back();
    } else {
        stored = spare_.back();
        spare_.pop_back();
    }
    *stored = std::move(block);
    blocks_.emplace(stored->address, stored);
    if (counts_lifetimes() && stored->slab == nullptr) stored->birth = lifetimes_.born(stored->size);
    ++stored->pool->live;
    stored->pool->ahead = std::min(stored->pool->ahead, stored->pool->space.bytes());
    const auto size = static_cast<std::int64_t>(stored->size);
    statistics_.allocation.increase(kind, 1);
    statistics_.allocated_bytes.increase(kind, size);
    most_in_use_ = std::max(most_in_use_, static_cast<Bytes>(statistics_.allocated_bytes[PoolKind::all].current));
    statistics_.active.increase(kind, 1);
    statistics_.active_bytes.increase(kind, size);
    statistics_.requested_bytes.increase(kind, static_cast<std::int64_t>(stored->requested));
    if (stored->view != nullptr) note_pieces(HistoryEvent::Kind::lend, *stored);
    history_.add({.kind = HistoryEvent::Kind::alloc,
                  .address = stored->address,
                  .size = stored->requested,
                  .stream = timelines_.stream_of(stored->timeline),
                  .pool = stored->pool->id,
                  .context = stored->context});
    return *stored;
}

void MovieAllocator::note_pieces(HistoryEvent::Kind kind, const LiveBlock& block) {
    if (!history_.records()) return;
    for (const Piece& piece : block.pieces)
        history_.add({.kind = kind,
                      .address = piece.begin,
                      .size = piece.end - piece.begin,
                      .stream = timelines_.stream_of(piece.pool->space.owner(piece.arena)),
                      .pool = piece.pool->id});
}

Address MovieAllocator::malloc(const Request& request) {
    if (fork_.in_child())
        throw std::runtime_error("MOVie: device memory cannot be used in a forked process; use spawn");
    const std::uint64_t context = context_now(false);
    const std::lock_guard lock(mutex_);
    ++operations_;
    // First what has passed, then the tick, which may record: what is seen in this request was recorded before it, so
    // that a replay knows the event when it comes to the row that says so.
    collect();
    timelines_.tick();
    clear_debris();
    const Asker& asker = asker_for(request);
    const Bytes requested = std::max<Bytes>(request.bytes, 1);
    const Site site{*asker.pool, asker.timeline, asker.arena, round_up(std::min(requested, kMostBytes), kUnit),
                    asker.recall};
    if (requested > kMostBytes) raise(site, requested);

    LiveBlock block{.size = site.bytes,
                    .requested = request.bytes,
                    .timeline = site.timeline,
                    .pool = &site.pool,
                    .context = context};
    const bool fits_slab = site.bytes <= kMostInSlab;
    if (fits_slab) {
        SlabFamily& family = *asker.family;
        const auto units = static_cast<std::uint32_t>(site.bytes / kUnit);
        auto place = family.allocate(units);
        if (!place)
            place =
                place_small(site, asker.slab_arena, family, {.wait = config_.cross_stream && timelines_.size() > 1});
        if (place) {
            block.address = place->address;
            block.slab = place->slab;
            block.family = &family;
            return book(std::move(block), PoolKind::small).address;
        }
    }
    auto placement = place_large(site, {.wait = config_.cross_stream && timelines_.size() > 1});
    if (!placement) placement = last_resorts(site, requested);
    if (config_.recall && !fits_slab)
        asker.recall->record(site.bytes, site.timeline,
                             {placement->address, placement->view != nullptr ? placement->view->base : 0});
    block.address = placement->address;
    block.view = placement->view;
    block.pieces = std::move(placement->pieces);
    Bytes held = 0;
    for (const Piece& piece : block.pieces) held += piece.end - piece.begin;
    block.withheld = held - block.size;
    withheld_ += block.withheld;
    return book(std::move(block), block.small() ? PoolKind::small : PoolKind::large).address;
}

Fence MovieAllocator::fence_of(const LiveBlock& block) {
    Fence fence(timelines_.now(block.timeline));
    for (const TimelineId user : block.users) {
        fence.add(timelines_.now(user));
        // At once, since such a stream may be gone when the event is wanted. If it fails, the mark stays in the open
        // epoch and is recorded when it is wanted.
        if (capturing_ == 0) (void)timelines_.record(user);
    }
    return fence;
}

void MovieAllocator::free(Address address) {
    if (fork_.in_child()) return;
    const std::uint64_t context = context_now(true);
    const std::lock_guard lock(mutex_);
    ++operations_;
    timelines_.tick();
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) throw std::invalid_argument("free of an address that is no live block's");
    LiveBlock& block = *found->second;
    blocks_.erase(found);
    retire(block, context);
}

void MovieAllocator::retire(LiveBlock& block, std::uint64_t context) {
    const Address address = block.address;
    const PoolKind kind = block.small() ? PoolKind::small : PoolKind::large;
    const auto size = static_cast<std::int64_t>(block.size);
    statistics_.allocation.decrease(kind, 1);
    statistics_.allocated_bytes.decrease(kind, size);
    statistics_.requested_bytes.decrease(kind, static_cast<std::int64_t>(block.requested));
    freed_ += block.size;
    const HistoryEvent event{.kind = HistoryEvent::Kind::free_requested,
                             .address = address,
                             .size = block.requested,
                             .stream = timelines_.stream_of(block.timeline),
                             .pool = block.pool->id,
                             .context = context != 0 ? context : block.context};
    history_.add(event);

    bool waits = false;
    if (block.slab != nullptr) {
        const auto units = static_cast<std::uint32_t>(block.size / kUnit);
        if (block.users.empty()) {
            block.family->free(block.slab, address, units);
        } else {
            block.family->free_later({.slab = block.slab,
                                      .address = address,
                                      .units = units,
                                      .fence = fence_of(block),
                                      .requested = block.requested,
                                      .context = block.context});
            waits = true;
        }
    } else {
        if (counts_lifetimes()) lifetimes_.died(block.size, block.birth);
        const Fence fence = fence_of(block);
        if (block.view != nullptr) {
            block.view->live_bytes = 0;
            block.view->used.add(fence);
            block.view->last_used = operations_;
        }
        for (const Piece& piece : block.pieces) piece.pool->space.insert(piece.begin, piece.end, piece.arena, fence);
        withheld_ -= block.withheld;
    }
    if (!waits) {
        statistics_.active.decrease(kind, 1);
        statistics_.active_bytes.decrease(kind, size);
        history_.add({.kind = HistoryEvent::Kind::free_completed,
                      .address = event.address,
                      .size = event.size,
                      .stream = event.stream,
                      .pool = event.pool,
                      .context = block.context});
        if (block.view != nullptr) note_pieces(HistoryEvent::Kind::give_home, block);
    }
    --block.pool->live;
    block.pieces.clear();
    block.users.clear();
    spare_.push_back(&block);
}

bool MovieAllocator::return_empty_slabs(Pool& pool, Address begin, Address end) {
    bool any = false;
    for (auto& [family, owner] : pool.owners) {
        if (!family->has_empty()) continue;
        std::vector<Slab*> empty;
        family->for_each_slab([&](Slab& slab) {
            if (slab.used == 0 && slab.home.begin < end && begin < slab.home.end) empty.push_back(&slab);
        });
        for (Slab* slab : empty) {
            const Piece home = family->remove(slab);
            home.pool->space.insert(home.begin, home.end, home.arena, Fence(timelines_.now(owner)));
        }
        any |= !empty.empty();
    }
    return any;
}

void MovieAllocator::collect() {
    if (!timelines_.outstanding()) return;
    // With this a recording says all that the allocator ever learnt of the device.
    const auto note = [this](Stream stream, Epoch event) {
        history_.add({.kind = HistoryEvent::Kind::seen, .size = event, .stream = stream});
    };
    if (timelines_.collect(note)) settle();
}

void MovieAllocator::settle() {
    for (const auto& pool : pools_) {
        pool->space.refresh();
        for (auto& [family, owner] : pool->owners) {
            if (!family->has_waiting()) continue;
            family->settle([&, id = owner](const Fence& fence) { return timelines_.implied(id, fence); },
                           [&, id = owner](const SlabFamily::Waiting& block) {
                               statistics_.active.decrease(PoolKind::small, 1);
                               statistics_.active_bytes.decrease(PoolKind::small,
                                                                 static_cast<std::int64_t>(block.bytes()));
                               history_.add({.kind = HistoryEvent::Kind::free_completed,
                                             .address = block.address,
                                             .size = block.requested,
                                             .stream = timelines_.stream_of(id),
                                             .pool = pool->id,
                                             .context = block.context});
                           });
        }
    }
}

void MovieAllocator::record_stream(Address address, Stream stream) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;
    LiveBlock& block = *found->second;
    const TimelineId timeline = timelines_.of(stream);
    if (timeline == block.timeline) return;
    history_.add({.kind = HistoryEvent::Kind::use, .address = address, .stream = stream, .pool = block.pool->id});
    if (std::find(block.users.begin(), block.users.end(), timeline) == block.users.end())
        block.users.push_back(timeline);
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

void MovieAllocator::set_memory_cap(Bytes bytes) {
    const std::lock_guard lock(mutex_);
    cap_ = bytes;
}

void MovieAllocator::begin_capture() {
    const std::lock_guard lock(mutex_);
    timelines_.set_capturing(++capturing_ > 0);
}

void MovieAllocator::end_capture() {
    const std::lock_guard lock(mutex_);
    timelines_.set_capturing(--capturing_ > 0);
}

void MovieAllocator::pin(Address address) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;
    const LiveBlock& block = *found->second;
    if (block.view != nullptr) block.view->pinned = true;
    const auto pin_pages = [this](Address begin, Address end) {
        for (Address page = table_.floor(begin); page < end; page += table_.size(page)) table_.at(page).pinned = true;
    };
    if (block.slab != nullptr) pin_pages(address, address + block.size);
    for (const Piece& piece : block.pieces) pin_pages(piece.begin, piece.end);
}

void MovieAllocator::on_shortage(std::function<Bytes(Bytes)> reclaim) {
    const std::lock_guard lock(mutex_);
    on_shortage_ = std::move(reclaim);
}

std::vector<HistoryEvent> MovieAllocator::history() const {
    const std::lock_guard lock(mutex_);
    return history_.events();
}

void MovieAllocator::record_history(std::size_t most, ContextSource source, bool keep) {
    const std::lock_guard lock(mutex_);
    history_.restart(most, keep);
    context_source_ = source;
}

void MovieAllocator::reset_peak_statistics() {
    const std::lock_guard lock(mutex_);
    statistics_.reset_peaks();
}

void MovieAllocator::reset_accumulated_statistics() {
    const std::lock_guard lock(mutex_);
    statistics_.reset_accumulated();
}

std::optional<MovieAllocator::BlockRange> MovieAllocator::block_at(Address address) const {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return std::nullopt;
    return BlockRange{.begin = address, .size = found->second->size};
}

bool MovieAllocator::lives_exactly(PoolId id, const std::unordered_set<Address>& blocks) const {
    const std::lock_guard lock(mutex_);
    const auto pool = pool_by_id_.find(id);
    if (pool == pool_by_id_.end()) return blocks.empty();
    std::size_t live = 0;
    for (const auto& [address, block] : blocks_) {
        if (block->pool != pool->second) continue;
        if (!blocks.contains(address)) return false;
        ++live;
    }
    return live == blocks.size();
}

Statistics MovieAllocator::statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
}

ViewCounters MovieAllocator::views() const {
    const std::lock_guard lock(mutex_);
    return view_counters_;
}

Unusable MovieAllocator::unusable(Stream stream, PoolId id) const {
    const std::lock_guard lock(mutex_);
    return unusable_for(const_cast<Timelines&>(timelines_).of(stream), id);
}

Unusable MovieAllocator::unusable_for(TimelineId timeline, PoolId id) const {
    Unusable result;
    result.soft = debris_held_.bytes;
    result.rounding = static_cast<Bytes>(statistics_.allocated_bytes[PoolKind::all].current -
                                         statistics_.requested_bytes[PoolKind::all].current) +
                      withheld_;
    for (const auto& pool : pools_) {
        Bytes slabs = 0;
        for (const auto& [family, owner] : pool->owners) {
            slabs += family->free_bytes();
            family->for_each_waiting([&result](const auto& block) { result.stream += block.bytes(); });
        }
        if (pool->id != id) {
            result.pool += pool->space.bytes() + slabs;
            continue;
        }
        result.hard += slabs;
        // Whole free pages can be joined with any others; what is free beside a live block in a page cannot.
        for (const auto& [begin, extent] : pool->space.extents()) {
            if (!timelines_.implied(timeline, extent.fence)) {
                result.stream += extent.end - begin;
                continue;
            }
            const Address first = table_.ceil(begin);
            const Address last = table_.floor(extent.end);
            const Bytes whole = last > first ? last - first : 0;
            result.none += whole;
            result.hard += extent.end - begin - whole;
        }
    }
    return result;
}

}  // namespace movie

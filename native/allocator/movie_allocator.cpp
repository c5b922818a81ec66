// Blocks and the books. How a request is served: serve.cpp.
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

}  // namespace movie

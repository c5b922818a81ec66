// More physical memory: how much, and where in an arena.
#include <algorithm>
#include <bit>

#include "allocator/movie_allocator.h"

namespace movie {

namespace {

// Requests between two looks at what the card has left, when it was full at the last: other owners come and go.
constexpr std::uint64_t kAskAgain = 64;
// Pages are at most this part of all that there is, and of what the card has left. Large ones save calls, but what is
// free in the middle of one cannot be put together with anything; some dozens of them are in that state at a time.
constexpr Bytes kPartOfCard = 8192;
constexpr Bytes kPartOfRoom = 4096;
// Once the run has used its memory so many times over that what is left of the card is mostly spare, a large request
// may have larger pages: of this part of what is left, and of the request, a few of whose pages may be cut later.
constexpr Bytes kTurns = 16;
constexpr Bytes kPartOfSpare = 128;
constexpr Bytes kPartOfRequest = 16;
// Where little is left, too, as long as some dozens of them are a small part of the card: a run that has come so far
// asks for little more, and what it asks for should not take long.
constexpr Bytes kPartOfNear = 32;
constexpr Bytes kPartOfCardLate = 2048;
constexpr Bytes kPartOfRequestLate = 4;
// Where pages are at least this many grains, a view is so few driver calls that growth need not waste memory.
constexpr std::uint32_t kThriftyPage = 4;
// What may be reserved beyond what was in use at most: a fiftieth of it, and a little for small programs.
constexpr Bytes kPartSpare = 50;
constexpr Bytes kSpare = 32 * kMiB;

}  // namespace

bool MovieAllocator::has_room(Bytes bytes, bool ask) {
    if (cap_ != 0 && (reserved_ > cap_ || bytes > cap_ - reserved_)) return false;
    if (bytes <= room_) return true;
    if (!ask && asked_at_ != 0 && operations_ - asked_at_ < kAskAgain) return false;
    room_ = driver_.memory_info().free;
    asked_at_ = operations_;
    return bytes <= room_;
}

MovieAllocator::Growth MovieAllocator::plan_growth(const Site& site) const {
    // The hole that needs the fewest pages once free memory at its edges is counted; the shortest among equals.
    const RunIndex& clear = site.pool.space.clear(site.arena);
    Growth best;
    Bytes best_hole = 0;
    for (const auto& [begin, end] : site.pool.arenas[site.arena]->holes()) {
        const Bytes before = clear.ending_at(begin);
        const Bytes missing = round_up(site.bytes - std::min(site.bytes, before), grain_);
        Growth growth{.begin = begin, .end = begin + missing, .at = begin - before};
        if (missing > end - begin) {
            if (before + (end - begin) + clear.beginning_at(end) < site.bytes) continue;
            growth.end = end;
        }
        if (growth.begin == growth.end) continue;
        if (best.size() == 0 || growth.size() < best.size() ||
            (growth.size() == best.size() && end - begin < best_hole)) {
            best = growth;
            best_hole = end - begin;
        }
    }
    return best;
}

std::uint32_t MovieAllocator::most_grains(Bytes growth) const {
    Bytes room = room_;
    if (cap_ != 0) room = std::min(room, cap_ - std::min(cap_, reserved_));
    if (config_.budget != 0) room = std::min(room, config_.budget - std::min(config_.budget, reserved_));
    Bytes most = std::min(room / kPartOfRoom, (reserved_ + room) / kPartOfCard);
    if (most_in_use_ != 0 && freed_ / kTurns >= most_in_use_) {
        most = std::max(most, std::min(room / kPartOfSpare, growth / kPartOfRequest));
        most = std::max(
            most, std::min({room / kPartOfNear, (reserved_ + room) / kPartOfCardLate, growth / kPartOfRequestLate}));
    }
    most = std::min(config_.largest_page, most) / grain_;
    return static_cast<std::uint32_t>(std::bit_floor(std::max<Bytes>(most, 1)));
}

bool MovieAllocator::fill(Pool& pool, ArenaId arena, Address begin, Address end) {
    clear_debris();
    if (debris_.blocks_addresses()) return false;
    std::uint64_t pages = 0;
    const Status status = pool.arenas[arena]->fill(begin, end, most_grains(end - begin), capturing_ == 0, pages);
    if (status != Status::ok) {
        if (status == Status::out_of_memory) room_ = 0;
        count_debris();
        return false;
    }
    const Bytes size = end - begin;
    room_ -= std::min(room_, size);
    count_reserved(static_cast<std::int64_t>(size), static_cast<std::int64_t>(pages));
    history_.add({.kind = HistoryEvent::Kind::segment_map,
                  .address = begin,
                  .size = size,
                  .stream = timelines_.stream_of(pool.space.owner(arena)),
                  .pool = pool.id});
    pool.space.insert(begin, end, arena, Fence());
    return true;
}

void MovieAllocator::count_reserved(std::int64_t bytes, std::int64_t pages) {
    if (bytes >= 0) {
        statistics_.reserved_bytes.increase(PoolKind::large, bytes);
        statistics_.segment.increase(PoolKind::large, pages);
        statistics_.num_device_alloc += pages;
        reserved_ += static_cast<Bytes>(bytes);
        most_reserved_ = std::max(most_reserved_, reserved_);
    } else {
        statistics_.reserved_bytes.decrease(PoolKind::large, -bytes);
        statistics_.segment.decrease(PoolKind::large, -pages);
        statistics_.num_device_free += -pages;
        reserved_ -= static_cast<Bytes>(-bytes);
    }
}

void MovieAllocator::count_debris() {
    const Debris::Held held = debris_.held();
    if (held.bytes != debris_held_.bytes)
        count_reserved(static_cast<std::int64_t>(held.bytes) - static_cast<std::int64_t>(debris_held_.bytes),
                       static_cast<std::int64_t>(held.pages) - static_cast<std::int64_t>(debris_held_.pages));
    debris_held_ = held;
}

void MovieAllocator::clear_debris() {
    if (capturing_ > 0 || debris_.empty()) return;
    debris_.clear(driver_);
    count_debris();
}

std::optional<MovieAllocator::Placement> MovieAllocator::grow_contiguous(const Site& site, bool ask) {
    Growth growth = plan_growth(site);
    if (growth.size() == 0) {
        if (!has_room(round_up(site.bytes, grain_), ask)) return std::nullopt;
        if (site.pool.arenas[site.arena]->extend(site.bytes) != Status::ok) return std::nullopt;
        growth = plan_growth(site);
        if (growth.size() == 0) return std::nullopt;
    }
    if (!has_room(growth.size(), ask) || !fill(site.pool, site.arena, growth.begin, growth.end)) return std::nullopt;
    site.pool.space.take(growth.at, growth.at + site.bytes);
    return Placement{.address = growth.at, .pieces = {{growth.at, growth.at + site.bytes, site.arena, &site.pool}}};
}

std::optional<MovieAllocator::Placement> MovieAllocator::grow_within_budget(const Site& site) {
    if (!within_budget(round_up(site.bytes, grain_))) return std::nullopt;
    if (wastes(site))
        if (auto placement = grow_sparingly(site)) return placement;
    return grow_contiguous(site, false);
}

bool MovieAllocator::wastes(const Site& site) const {
    // What one pool wastes no other can use: there it is not made good by what is stitched later.
    if (site.pool.id == 0 && most_grains() < kThriftyPage) return false;
    const Bytes needed =
        std::max(most_in_use_, static_cast<Bytes>(statistics_.allocated_bytes[PoolKind::all].current) + site.bytes);
    const Bytes enough = needed + needed / kPartSpare + kSpare;
    if (reserved_ + site.bytes <= enough) return false;
    const Bytes growth = plan_growth(site).size();
    return reserved_ + (growth != 0 ? growth : round_up(site.bytes, grain_)) > enough;
}

std::optional<MovieAllocator::Placement> MovieAllocator::grow_sparingly(const Site& site) {
    // No stream waits for this: the card has room.
    if (auto placement = contiguous_anywhere(site, {})) return placement;
    if (auto placement = ready_view(site, {})) return placement;
    if (auto placement = stitch(site, {})) return placement;
    return grow_and_stitch(site, {});
}

bool MovieAllocator::within_budget(Bytes bytes) const {
    return config_.budget == 0 || reserved_ + bytes <= config_.budget;
}

bool MovieAllocator::grow_grains(const Site& site, std::uint64_t grains, bool ask, std::vector<Growth>* grown) {
    Bytes missing = grains * grain_;
    if (!has_room(missing, ask)) return false;
    Arena& arena = *site.pool.arenas[site.arena];
    while (missing > 0) {
        // The hole behind the longest free run: what grows there is of most use as one piece.
        const RunIndex& clear = site.pool.space.clear(site.arena);
        Address begin = 0;
        Address end = 0;
        Bytes before = 0;
        for (const auto& [hole_begin, hole_end] : arena.holes()) {
            const Bytes run = clear.ending_at(hole_begin);
            if (begin != 0 && run <= before) continue;
            begin = hole_begin;
            end = hole_end;
            before = run;
        }
        if (begin == 0) {
            if (arena.extend(missing) != Status::ok) return false;
            continue;
        }
        end = std::min(end, begin + missing);
        if (!fill(site.pool, site.arena, begin, end)) return false;
        missing -= end - begin;
        if (grown != nullptr) grown->push_back({.begin = begin, .end = end});
    }
    return true;
}

std::optional<MovieAllocator::Placement> MovieAllocator::grow_and_stitch(const Site& site, const Reach& reach) {
    const std::uint64_t missing = grains_missing(site, reach);
    const Growth growth = plan_growth(site);
    // Where a single range costs no more, no view is needed.
    const bool one_range = growth.size() != 0 && growth.size() <= missing * grain_;
    if (one_range || missing * grain_ >= site.bytes)
        if (auto placement = grow_contiguous(site, reach.ask)) return placement;
    if (missing == 0) return std::nullopt;
    std::vector<Growth> grown;
    if (grow_grains(site, missing, reach.ask, &grown)) {
        if (auto placement = in_own_arena(site)) return placement;
        if (auto placement = stitch(site, reach)) return placement;
    }
    // What was grown for a request that cannot be served after all (addresses may have run out) is not kept.
    if (capturing_ == 0)
        for (const Growth& range : grown) shrink(site.pool, site.arena, range.begin, range.end);
    return std::nullopt;
}

}  // namespace movie

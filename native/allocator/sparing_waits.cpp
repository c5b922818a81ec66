// Policy lean uses every free page before it grows, also pages that another stream has hardly let go of. A wait for
// that stream is the dearest way to serve a request: here is what comes before it.
#include <algorithm>

#include "allocator/movie_allocator.h"

namespace movie {

namespace {

// What lean may hold beyond what it would with waits, as a part of what it holds: less than half of the one percent
// that it may leave unused.
constexpr Bytes kPartAhead = 256;

}  // namespace

// Where a repetition lasts nothing is to move any more, and the waits are the same every time. Before that the place
// where no wait is needed is the better one to repeat.
bool MovieAllocator::follows_with_waits(const Site& site) const {
    return config_.policy == Policy::automatic || (site.recall != nullptr && site.recall->lasts());
}

std::optional<MovieAllocator::Placement> MovieAllocator::spare_a_wait(const Site& site, const Reach& reach) {
    if (auto placement = as_before(site, reach)) return placement;
    // Driver work ends where requests repeat; waits would come back in every iteration.
    if (auto placement = stitch(site, {})) return placement;
    const Bytes most = round_up(site.bytes, grain_);
    if (!may_grow_ahead(site.pool, std::min(most, grains_missing(site, {}) * grain_), site.bytes)) return std::nullopt;
    const Bytes before = reserved_;
    auto placement = grow_and_stitch(site, {});
    if (placement && reserved_ > before) site.pool.ahead += reserved_ - before;
    return placement;
}

// Growth instead of a wait is early rather than too much as long as the pool comes to need it. `Pool::ahead` says how
// much it has not needed so far: never more than what was free at any moment since, since with less memory by that much
// everything up to then could have been served too, with waits.
bool MovieAllocator::may_grow_ahead(const Pool& pool, Bytes growth, Bytes request) {
    if (!has_room(growth, false)) return false;
    const Bytes then = reserved_ + growth;
    if (then <= most_reserved_) return true;  // the run has held that much anyway
    const Bytes free = pool.space.bytes() + growth;
    const Bytes idle = free - std::min(free, request);
    return std::min(pool.ahead + growth, idle) <= then / kPartAhead;
}

bool MovieAllocator::grow_ahead(const Site& page) {
    if (!may_grow_ahead(page.pool, grain_, grain_) || !grow_grains(page, 1, false)) return false;
    page.pool.ahead += grain_;
    return true;
}

}  // namespace movie

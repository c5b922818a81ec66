#include "baselines/bound.h"

namespace movie {

void FloorCounter::add_to_pool(Bytes bytes, PoolId id) {
    Pool& pool = pools_[id];
    pool.released = false;
    pool.live += bytes;
    if (pool.live > pool.high) {
        floor_ += pool.live - pool.high;
        pool.high = pool.live;
    }
}

void FloorCounter::remove_from_pool(Bytes bytes, PoolId id) {
    Pool& pool = pools_[id];
    pool.live -= bytes;
    if (pool.released) {
        floor_ -= bytes;
        pool.high -= bytes;
    }
}

void FloorCounter::release_pool(PoolId id) {
    Pool& pool = pools_[id];
    floor_ -= pool.high - pool.live;
    pool.high = pool.live;
    pool.released = true;
}

}  // namespace movie

// The floor under every allocator: bytes that are alive at the same time, with isolated pools kept apart.
#pragma once

#include <unordered_map>

#include "allocator/allocator.h"
#include "driver/types.h"

namespace movie {

// What lives in the default pool, plus the high-water mark of each other pool that is not released: a private pool
// keeps what it once needed, for the graph that owns it.
class FloorCounter {
  public:
    void add(Bytes bytes, PoolId pool) {
        live_ += bytes;
        if (pool == 0) {
            floor_ += bytes;
        } else {
            add_to_pool(bytes, pool);
        }
        if (floor_ > peak_) peak_ = floor_;
    }
    void remove(Bytes bytes, PoolId pool) {
        live_ -= bytes;
        if (pool == 0) {
            floor_ -= bytes;
        } else {
            remove_from_pool(bytes, pool);
        }
    }
    // What still lives in the pool counts until it is freed, and no longer.
    void release_pool(PoolId pool);

    [[nodiscard]] Bytes live() const { return live_; }
    [[nodiscard]] Bytes floor() const { return floor_; }
    [[nodiscard]] Bytes peak() const { return peak_; }

  private:
    struct Pool {
        Bytes live = 0;
        Bytes high = 0;  // of live, while the pool is owned; equal to live once it is released
        bool released = false;
    };
    void add_to_pool(Bytes bytes, PoolId pool);
    void remove_from_pool(Bytes bytes, PoolId pool);

    Bytes live_ = 0;
    Bytes floor_ = 0;
    Bytes peak_ = 0;
    std::unordered_map<PoolId, Pool> pools_;
};

}  // namespace movie

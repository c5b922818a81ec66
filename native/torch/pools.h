// Which pool a request goes to. Torch opens a pool for the streams of a graph's capture (or for a thread), and closes
// it again; requests meanwhile go to the pool that was opened last and wants them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "allocator/allocator.h"
#include "bridge/table.h"

namespace movie::torch_side {

class Pools {
  public:
    static Pools& get();

    // One use more of the pool.
    void use(int device, TorchPoolId id);
    [[nodiscard]] int uses(int device, TorchPoolId id) const;
    // One use more, and requests on the device's streams that `filter` accepts go to the pool.
    void open(int device, TorchPoolId id, StreamFilter filter);
    // False: it was not open. The use goes on until release().
    bool close(int device, TorchPoolId id);
    // One use less; true: it was the last, and nothing comes to the pool any more.
    bool release(int device, TorchPoolId id);

    // 0: the default pool.
    [[nodiscard]] PoolId pool_for(int device, Stream stream) const {
        return open_.load(std::memory_order_acquire) == 0 ? 0 : routed(device, stream);
    }
    // The number of a pool that was opened or used; 0: it was not.
    [[nodiscard]] PoolId number_of(int device, TorchPoolId id) const;
    // And back; {0, 0} for the default pool and for pools that are gone.
    [[nodiscard]] TorchPoolId id_of(PoolId number) const;

  private:
    struct Route {
        int device = 0;
        TorchPoolId id;
        PoolId pool = 0;
        StreamFilter filter;
    };
    struct Known {
        PoolId number = 0;
        int uses = 0;
    };

    Known& one_use_more(int device, TorchPoolId id);  // pre: mutex_ is held
    [[nodiscard]] PoolId routed(int device, Stream stream) const;

    mutable std::mutex mutex_;  // guards everything below
    std::list<Route> routes_;   // the last opened first
    std::map<std::pair<int, TorchPoolId>, Known> known_;
    std::map<PoolId, TorchPoolId> ids_;
    PoolId next_ = 1;
    std::atomic<int> open_{0};
};

}  // namespace movie::torch_side

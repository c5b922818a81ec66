// What the core offers the bridge, a library that is compiled on the user's machine against the PyTorch that is there.
// The two never link to each other: the bridge gets the address of this table. Both are built from the same headers,
// and no std::string passes between them, whose layout older PyTorch chooses differently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "allocator/layout.h"
#include "allocator/statistics.h"

namespace movie::torch_side {

using TorchPoolId = std::pair<unsigned long long, unsigned long long>;  // torch's MempoolId_t
using StreamFilter = std::function<bool(void*)>;                        // of a cudaStream_t

struct BridgeTable {
    std::size_t size = sizeof(BridgeTable);  // the bridge refuses another one than it was built with

    void* (*allocate)(std::ptrdiff_t size, int device, void* stream);
    // Of whichever device the block is; what is nobody's is ignored.
    void (*release)(void* address);
    void (*empty_cache)();
    void (*set_fraction)(double fraction, int device);
    double (*fraction)(int device);
    void* (*base_of)(void* address, std::size_t* size);
    int (*device_of)(void* address);  // -1: it is no block's
    void (*record_stream)(void* address, void* stream);

    // Requests of these streams go to the pool, until stop_routing(). A pool lives as long as it has uses.
    void (*route)(int device, TorchPoolId id, StreamFilter filter);
    void (*stop_routing)(int device, TorchPoolId id);
    void (*use_pool)(int device, TorchPoolId id);
    void (*release_pool)(int device, TorchPoolId id);
    int (*pool_uses)(int device, TorchPoolId id);
    void (*lend_pool)(int device, TorchPoolId id, bool lendable);
    void (*begin_capture)();
    void (*end_capture)();
    // What lives in a pool now, to go back to: it tells which blocks lived before and which do now.
    std::shared_ptr<const void> (*moment)(int device, TorchPoolId id);
    void (*rewind)(int device, const void* moment, std::vector<void*>& freed, std::vector<void*>& live);
    bool (*lives_exactly)(int device, TorchPoolId id, const std::unordered_set<void*>& blocks);

    Statistics (*statistics)(int device);
    void (*reset_peaks)(int device);
    void (*reset_accumulated)(int device);
    // The longest stretch that could be had now without waiting: free on the card, or idle here.
    std::size_t (*most_available)(int device);
    Layout (*layout)(int device);
    TorchPoolId (*pool_id)(std::uint64_t number);
    void (*observe_out_of_memory)(std::function<void(int, Bytes, Bytes, Bytes)> observer);
};

}  // namespace movie::torch_side

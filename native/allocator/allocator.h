// What every allocator here answers to, ours and the baselines: the calls that torch makes, and what reports need.
// One object serves one device. Calls may come from any thread.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "allocator/statistics.h"
#include "driver/types.h"

namespace movie {

using PoolId = std::uint64_t;  // 0 is the default pool; others are those of CUDA graphs and MemPools

struct Request {
    Bytes bytes = 0;
    Stream stream = 0;
    PoolId pool = 0;
};

// Reserved bytes that are not in use, by what keeps a large request from them. They and the bytes in use add up to what
// is reserved.
struct Unusable {
    Bytes none = 0;      // nothing: free, and can be joined with all else that is
    Bytes hard = 0;      // free between live blocks of one segment or arena
    Bytes soft = 0;      // free in whole ranges that cannot be joined with others
    Bytes stream = 0;    // behind a fence, or cached for another stream
    Bytes pool = 0;      // in another pool
    Bytes rounding = 0;  // inside live blocks, beyond what was asked for
};

struct ViewCounters {
    std::uint64_t created = 0, edited = 0, reused = 0, evicted = 0;
};

// No memory for a request, after everything that can be done about it was done. what() is the report.
class OutOfMemory : public std::runtime_error {
  public:
    OutOfMemory(Request request, const std::string& report) : std::runtime_error(report), request_(request) {}
    [[nodiscard]] const Request& request() const { return request_; }

  private:
    Request request_;
};

class Allocator {
  public:
    virtual ~Allocator() = default;

    // Pre: bytes > 0. Post: `bytes` bytes, mapped and accessible, that no other live block shares and that work queued
    // on `stream` from now on may use. Throws OutOfMemory, with nothing changed but caches.
    virtual Address malloc(const Request& request) = 0;
    // Ends a block. Throws std::invalid_argument for an address that is not a live block's.
    virtual void free(Address address) = 0;
    // Work of `stream` uses the block too: after free() it is used again only in order with that work. Unknown
    // addresses are ignored (torch passes those of other allocators).
    virtual void record_stream(Address address, Stream stream) = 0;

    // Gives idle memory back to the driver, as torch.cuda.empty_cache() asks.
    virtual void empty_cache() = 0;
    // Gives back at least `bytes` if that much is idle, so that another owner of the card can have it; returns how
    // much.
    virtual Bytes reclaim(Bytes bytes) = 0;

    // No more allocations go to the pool: what is free in it may serve others, now and when its last blocks are freed.
    virtual void release_pool(PoolId pool) = 0;
    // A lendable pool's free memory may serve other pools before a request fails.
    virtual void set_pool_lendable(PoolId pool, bool lendable) = 0;
    // At most this many bytes reserved; 0 lifts the cap.
    virtual void set_memory_cap(Bytes bytes) = 0;

    [[nodiscard]] virtual Statistics statistics() const = 0;
    // As seen by a request of this stream and pool.
    [[nodiscard]] virtual Unusable unusable(Stream stream, PoolId pool) const = 0;
    [[nodiscard]] virtual ViewCounters views() const = 0;
};

}  // namespace movie

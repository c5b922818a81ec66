// An allocator that hands out what a test tells it to, so that a test may stand in its place: it makes the driver calls
// itself, and says which address malloc() returns.
#pragma once

#include <unordered_map>
#include <vector>

#include "allocator/allocator.h"

namespace movie::testing {

class ScriptedAllocator final : public Allocator {
  public:
    // The address of the next malloc(); 0: out of memory.
    void answer(Address address) { answer_ = address; }

    Address malloc(const Request& request) override {
        if (answer_ == 0) throw OutOfMemory(request, "out of memory, as told");
        requested_[answer_] = request.bytes;
        statistics_.allocation.increase(PoolKind::all, 1);
        return answer_;
    }
    void free(Address address) override {
        if (requested_.erase(address) == 0) throw std::invalid_argument("free: not a live block");
        statistics_.allocation.decrease(PoolKind::all, 1);
    }
    void record_stream(Address, Stream) override {}
    void empty_cache() override {}
    Bytes reclaim(Bytes) override { return 0; }
    void release_pool(PoolId) override {}
    void set_pool_lendable(PoolId, bool) override {}
    void set_memory_cap(Bytes) override {}
    [[nodiscard]] Statistics statistics() const override { return statistics_; }
    [[nodiscard]] Unusable unusable(Stream, PoolId) const override { return {}; }
    [[nodiscard]] ViewCounters views() const override { return {}; }

  private:
    Address answer_ = 0;
    std::unordered_map<Address, Bytes> requested_;
    Statistics statistics_;
};

}  // namespace movie::testing

// An allocator that tells the validator of each call before and after it passes it on.
#pragma once

#include <memory>
#include <utility>

#include "allocator/allocator.h"
#include "replay/validator/validator.h"

namespace movie {

class WatchedAllocator final : public Allocator {
  public:
    // The allocator must have been built on a WatchedDriver of the same validator, and have done nothing yet.
    WatchedAllocator(std::unique_ptr<Allocator> allocator, Validator& validator)
        : allocator_(std::move(allocator)), validator_(validator) {}
    // What the allocator does when it is torn down is nobody's business any more.
    ~WatchedAllocator() override { validator_.close(); }
    WatchedAllocator(const WatchedAllocator&) = delete;
    WatchedAllocator& operator=(const WatchedAllocator&) = delete;

    Address malloc(const Request& request) override;
    void free(Address address) override;
    void record_stream(Address address, Stream stream) override;
    void empty_cache() override;
    Bytes reclaim(Bytes bytes) override;
    void release_pool(PoolId pool) override;
    void set_pool_lendable(PoolId pool, bool lendable) override;
    void set_memory_cap(Bytes bytes) override;
    [[nodiscard]] Statistics statistics() const override { return allocator_->statistics(); }
    [[nodiscard]] Unusable unusable(Stream stream, PoolId pool) const override {
        return allocator_->unusable(stream, pool);
    }
    [[nodiscard]] ViewCounters views() const override { return allocator_->views(); }

  private:
    // The end of a call: an allocator that swallowed the validator's exception does not get away with it.
    void end_call(const char* call);

    std::unique_ptr<Allocator> allocator_;
    Validator& validator_;
};

}  // namespace movie

// The simplest allocator that keeps every rule: each block has a reservation and pages of its own; a freed one is
// cached with the events that stand behind its uses, and serves again when they allow it. It shows the validator and
// the tests of allocators at work on something that is easily seen to be right, and its subclasses break one rule each.
#pragma once

#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/allocator.h"
#include "driver/driver.h"

namespace movie::testing {

class ReferenceAllocator : public Allocator {
  public:
    explicit ReferenceAllocator(Driver& driver) : driver_(driver) {}

    Address malloc(const Request& request) override;
    void free(Address address) override;
    void record_stream(Address address, Stream stream) override;
    void empty_cache() override { (void)release_idle(~Bytes{0}); }
    Bytes reclaim(Bytes bytes) override { return release_idle(bytes); }
    void release_pool(PoolId pool) override { released_.insert(pool); }
    void set_pool_lendable(PoolId pool, bool lendable) override;
    void set_memory_cap(Bytes bytes) override { cap_ = bytes; }
    [[nodiscard]] Statistics statistics() const override { return statistics_; }
    [[nodiscard]] Unusable unusable(Stream stream, PoolId pool) const override;
    [[nodiscard]] ViewCounters views() const override { return {}; }

    // What torch would tell us by other ways.
    void set_capturing(bool capturing);
    void pin(Address address) { live_.at(address).pinned = true; }

  protected:
    struct Span {
        Address address = 0;
        std::vector<Handle> pages{};
        Stream stream = 0;  // of its latest block
        PoolId pool = 0;
        Bytes requested = 0;
        bool pinned = false;
        std::set<Stream> others{};  // record_stream
        std::vector<std::pair<Stream, Event>>
            fence{};  // behind its latest block; empty: the host saw all of it complete
    };

    // --- the steps, in which a subclass may go wrong -----------------------------------------------------------------
    [[nodiscard]] virtual bool may_serve(const Span& span, const Request& request) const;
    // Whatever the request's stream must wait for; false: the driver refused.
    virtual bool order_behind(const Span& span, Stream stream);
    // False: a driver call failed, and the span is as it was.
    virtual bool record_fence(Span& span);
    virtual bool drain(Span& span);  // the host waits for the fence
    virtual Bytes give_back(Span& span);
    virtual bool map_pages(Span& span);
    virtual void abandon(Span& span);  // a span that could not be built
    [[nodiscard]] virtual Bytes mapped_size(Bytes size) const { return round_up(size, driver_.granularity()); }
    virtual void count_reserved(std::int64_t bytes);
    [[nodiscard]] virtual bool keeps_idle(const Span& span) const { return span.pinned || capturing_; }

    [[nodiscard]] Bytes size_of(const Span& span) const { return span.pages.size() * driver_.granularity(); }
    [[nodiscard]] bool shares(PoolId owner, PoolId asker) const {
        return owner == asker || released_.contains(owner) || lendable_.contains(owner);
    }
    bool build(Span& span);
    Bytes release_idle(Bytes wanted);
    void count_block(const Span& span, int sign);
    Address serve(Span&& span, const Request& request);

    Driver& driver_;
    std::unordered_map<Address, Span> live_;
    std::list<Span> idle_;
    std::list<Span> deferred_;  // freed during a capture: no event may be recorded yet
    std::set<PoolId> released_, lendable_;
    Bytes cap_ = 0, reserved_ = 0;
    bool capturing_ = false;
    Statistics statistics_;
};

}  // namespace movie::testing

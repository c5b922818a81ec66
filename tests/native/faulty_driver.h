// A driver of which the n-th call fails, and another one some calls later. It remembers which places in the code made
// calls, and which of them had to cope with a failure.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "driver/forwarding_driver.h"
#include "driver/model/model_device.h"

namespace movie::test {

struct FaultPlan {
    std::uint64_t first = 0;   // the number of the call that fails, from 1; 0: none does
    std::uint64_t second = 0;  // so does the one that many calls later; 0: none does
    bool scarce = false;       // create and reserve fail because nothing is left, and not for an unknown reason
};

// The return address of a call: a place in the code.
using Site = std::pair<Call, const void*>;
struct Sites {
    std::set<Site> called, failed;
};

class FaultyDriver final : public ForwardingDriver {
  public:
    // `device` passes calls on to `model`, in which the failures happen: whoever stands between sees them too.
    FaultyDriver(Driver& device, ModelDevice& model, const FaultPlan& plan, Sites& sites)
        : ForwardingDriver(device), model_(model), plan_(plan), sites_(sites) {}

    // Nothing fails from now on.
    void heal() { plan_ = {}; }
    [[nodiscard]] std::uint64_t calls() const { return calls_; }
    [[nodiscard]] std::uint64_t faults() const { return faults_; }
    // Whether nothing is to fail any more.
    [[nodiscard]] bool spent() const { return calls_ >= plan_.first + plan_.second; }
    [[nodiscard]] Call failed_first() const { return failed_first_; }

#define SITE __builtin_return_address(0)
    Outcome<Address> reserve(Bytes size) override {
        before(Call::reserve, SITE);
        return device_.reserve(size);
    }
    Status free_address(Address address, Bytes size) override {
        before(Call::free_address, SITE);
        return device_.free_address(address, size);
    }
    Outcome<Handle> create(Bytes size) override {
        before(Call::create, SITE);
        return device_.create(size);
    }
    Status release(Handle handle) override {
        before(Call::release, SITE);
        return device_.release(handle);
    }
    Status map(Address address, Bytes size, Handle handle) override {
        before(Call::map, SITE);
        return device_.map(address, size, handle);
    }
    Status unmap(Address address, Bytes size) override {
        before(Call::unmap, SITE);
        return device_.unmap(address, size);
    }
    Status set_access(Address address, Bytes size) override {
        before(Call::set_access, SITE);
        return device_.set_access(address, size);
    }
    Outcome<Address> malloc(Bytes size) override {
        before(Call::malloc, SITE);
        return device_.malloc(size);
    }
    Status mfree(Address address) override {
        before(Call::mfree, SITE);
        return device_.mfree(address);
    }
    Outcome<Event> event_record(Stream stream) override {
        before(Call::event_record, SITE);
        return device_.event_record(stream);
    }
    Status event_query(Event event) override {
        before(Call::event_query, SITE);
        return device_.event_query(event);
    }
    Status event_synchronize(Event event) override {
        before(Call::event_synchronize, SITE);
        return device_.event_synchronize(event);
    }
    Status stream_wait(Stream stream, Event event) override {
        before(Call::stream_wait, SITE);
        return device_.stream_wait(stream, event);
    }
    Status synchronize() override {
        before(Call::synchronize, SITE);
        return device_.synchronize();
    }
#undef SITE

  private:
    void before(Call call, const void* site) {
        ++calls_;
        sites_.called.emplace(call, site);
        const bool now =
            plan_.first != 0 && (calls_ == plan_.first || (plan_.second != 0 && calls_ == plan_.first + plan_.second));
        if (!now) return;
        if (calls_ == plan_.first) failed_first_ = call;
        ++faults_;
        sites_.failed.emplace(call, site);
        const Status none_left = call == Call::reserve ? Status::out_of_addresses : Status::out_of_memory;
        model_.inject(call, 1, plan_.scarce ? none_left : Status::failed);
    }

    ModelDevice& model_;
    FaultPlan plan_;
    Sites& sites_;
    std::uint64_t calls_ = 0, faults_ = 0;
    Call failed_first_ = Call::create;
};

}  // namespace movie::test

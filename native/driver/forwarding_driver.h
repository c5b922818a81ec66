// A driver that passes every call on: the base of those that change a few.
#pragma once

#include "driver/driver.h"

namespace movie {

class ForwardingDriver : public Driver {
  public:
    explicit ForwardingDriver(Driver& device) : device_(device) {}

    [[nodiscard]] Bytes granularity() const override { return device_.granularity(); }
    [[nodiscard]] MemoryInfo memory_info() const override { return device_.memory_info(); }
    Outcome<Address> reserve(Bytes size) override { return device_.reserve(size); }
    Status free_address(Address address, Bytes size) override { return device_.free_address(address, size); }
    Outcome<Handle> create(Bytes size) override { return device_.create(size); }
    Status release(Handle handle) override { return device_.release(handle); }
    Status map(Address address, Bytes size, Handle handle) override { return device_.map(address, size, handle); }
    Status unmap(Address address, Bytes size) override { return device_.unmap(address, size); }
    Status set_access(Address address, Bytes size) override { return device_.set_access(address, size); }
    Outcome<Address> malloc(Bytes size) override { return device_.malloc(size); }
    Status mfree(Address address) override { return device_.mfree(address); }
    Outcome<Event> event_record(Stream stream) override { return device_.event_record(stream); }
    Status event_query(Event event) override { return device_.event_query(event); }
    Status event_synchronize(Event event) override { return device_.event_synchronize(event); }
    void event_destroy(Event event) override { device_.event_destroy(event); }
    Status stream_wait(Stream stream, Event event) override { return device_.stream_wait(stream, event); }
    Status synchronize() override { return device_.synchronize(); }
    [[nodiscard]] const Ledger& ledger() const override { return device_.ledger(); }

  protected:
    Driver& device_;
};

}  // namespace movie

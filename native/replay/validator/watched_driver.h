// A driver that tells the validator of each call before and after it passes it on.
#pragma once

#include "driver/driver.h"
#include "replay/validator/validator.h"

namespace movie {

class WatchedDriver final : public Driver {
  public:
    WatchedDriver(Driver& device, Validator& validator) : device_(device), validator_(validator) {}

    [[nodiscard]] Bytes granularity() const override { return device_.granularity(); }
    [[nodiscard]] MemoryInfo memory_info() const override { return device_.memory_info(); }
    Outcome<Address> reserve(Bytes size) override;
    Status free_address(Address address, Bytes size) override;
    Outcome<Handle> create(Bytes size) override;
    Status release(Handle handle) override;
    Status map(Address address, Bytes size, Handle handle) override;
    Status unmap(Address address, Bytes size) override;
    Status set_access(Address address, Bytes size) override;
    Outcome<Address> malloc(Bytes size) override;
    Status mfree(Address address) override;
    Outcome<Event> event_record(Stream stream) override;
    Status event_query(Event event) override;
    Status event_synchronize(Event event) override;
    void event_destroy(Event event) override;
    Status stream_wait(Stream stream, Event event) override;
    Status synchronize() override;
    [[nodiscard]] const Ledger& ledger() const override { return device_.ledger(); }

  private:
    bool succeeded(Status status);

    Driver& device_;
    Validator& validator_;
};

}  // namespace movie

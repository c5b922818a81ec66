// A CUDA device through libcuda: physical pages by virtual memory management, streams and events as PyTorch has them (a
// Stream is the value of its cudaStream_t). Calls may come from any thread, whatever its current context.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/cuda/context.h"
#include "driver/driver.h"

namespace movie {

class CudaDevice final : public Driver {
  public:
    // Creates the device's primary context if nobody has. Throws cuda::Unavailable.
    explicit CudaDevice(int ordinal);

    [[nodiscard]] Bytes granularity() const override { return granularity_; }
    [[nodiscard]] MemoryInfo memory_info() const override;
    // Fresh ranges begin at multiples of 32 MiB and keep as much from each other: a card that was probed at an address
    // that was invalid then takes faults in its neighbourhood.
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
    // Pre: no call is under way in another thread.
    [[nodiscard]] const Ledger& ledger() const override { return ledger_; }
    // The same, at any time.
    [[nodiscard]] Ledger account() const;

    [[nodiscard]] int ordinal() const { return ordinal_; }
    // From now on the other device may read and write all memory here, what is mapped already too. Does nothing where
    // the two cannot reach each other.
    Status add_peer(const CudaDevice& other);
    // The last call that failed and how, for reports; empty: none did.
    [[nodiscard]] std::string last_problem() const;

  private:
    // Books a call and how it ended. Pre: mutex_ is held.
    Status booked(Call call, const char* name, cuda::Result result);
    [[nodiscard]] std::vector<cuda::AccessDescription> everyone() const;

    const cuda::Library& cuda_;
    int ordinal_;
    cuda::PrimaryContext primary_;
    const CostTable& costs_;
    Bytes granularity_ = 0;
    cuda::AllocationProperties properties_;  // its handle types may lose what the machine does not permit

    mutable std::mutex mutex_;  // guards everything below
    std::vector<int> peers_;
    std::unordered_map<Address, Bytes> reserved_;  // with the distance kept behind a range
    std::unordered_map<Handle, Bytes> handles_;
    std::map<Address, Bytes> mappings_;
    std::unordered_map<Address, Bytes> plain_;
    std::vector<cuda::DriverEvent> spare_events_;
    Ledger ledger_;
    std::string problem_;
};

}  // namespace movie

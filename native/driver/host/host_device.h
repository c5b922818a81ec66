// A device made of this machine's memory: real pages, real aliases, real bytes, on any Linux. Physical memory is an
// anonymous file, reserved addresses are mapped without access, and streams are threads that do their work late.
// Rules are enforced as on the model device. Calls may come from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "driver/address_book.h"
#include "driver/driver.h"
#include "driver/host/late_streams.h"
#include "driver/host/memory_file.h"

namespace movie {

struct HostOptions {
    Bytes capacity = kGiB;
    Bytes granularity = 2 * kMiB;  // a power of two, at least the system's page size
    std::string costs = "per-call";
    LateOptions streams{};
    Bytes address_space = Bytes{1} << 44;  // virtual addresses that may be reserved at a time
    // Memory areas that the device may make of the process's; 0: what vm.max_map_count leaves. Each mapping is one, and
    // so is each stretch of a reservation between two mappings.
    std::size_t most_areas = 0;
};

// What queued work saw.
struct HostReport {
    std::uint64_t checks = 0;  // ranges whose bytes were compared
    std::uint64_t mismatches = 0;
    std::uint64_t illegal_accesses = 0;  // work on a range that was not mapped with access when it ran; it was not done
    Bytes bytes_checked = 0;             // length of the ranges
    std::string first_problem;
};

class HostDevice final : public Driver {
  public:
    // Throws std::invalid_argument for options that cannot be, std::system_error where the system has no such memory.
    explicit HostDevice(const HostOptions& options);
    ~HostDevice() override;
    HostDevice(const HostDevice&) = delete;
    HostDevice& operator=(const HostDevice&) = delete;

    [[nodiscard]] Bytes granularity() const override { return options_.granularity; }
    [[nodiscard]] MemoryInfo memory_info() const override;
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

    // --- work of a program, queued on a stream -----------------------------------------------------------------------
    // Writes a pattern into the range (patterns.h says where, and what it asks of addresses and strides, else
    // std::invalid_argument); looks for it there; copies bytes.
    void fill(Stream stream, Address address, Bytes size, std::uint64_t pattern, Bytes stride);
    void check(Stream stream, Address address, Bytes size, std::uint64_t pattern, Bytes stride);
    void copy(Stream stream, Address to, Address from, Bytes size);
    // The program's own ordering: later work of `stream` comes after what `other` has queued so far. In no account.
    void order_behind(Stream stream, Stream other);
    // Time passes without new work.
    void advance(std::uint64_t ticks) { streams_.advance(ticks); }
    [[nodiscard]] HostReport report() const;

    // --- what there is -----------------------------------------------------------------------------------------------
    [[nodiscard]] std::size_t areas() const;
    [[nodiscard]] std::size_t most_areas() const { return most_areas_; }
    // Why the last call failed that did for a reason of the system's, and what to do about it; empty: none did.
    [[nodiscard]] std::string last_problem() const;
    [[nodiscard]] std::size_t mappings() const;
    [[nodiscard]] std::size_t handles() const;
    [[nodiscard]] std::size_t reservations() const;
    [[nodiscard]] const HostOptions& options() const { return options_; }

  private:
    struct Piece {
        Bytes offset = 0, size = 0;
    };
    using Change = std::unique_lock<std::shared_mutex>;
    using Look = std::shared_lock<std::shared_mutex>;

    void charge(Call call);
    Status fail(Status status, const char* call, int error);
    bool has_areas_for(std::size_t more, const char* call);
    void give_back(Handle handle);
    [[nodiscard]] bool accessible(Address address, Bytes size) const;
    // Runs `work` if the range is accessible when the stream gets there; the range stays so while it runs.
    void queue(Stream stream, const char* what, Address address, Bytes size, std::function<void()> work);
    void note(const std::string& problem);

    HostOptions options_;
    const CostTable& costs_;
    std::size_t most_areas_ = 0;
    // Guards everything below it; work that touches bytes holds it shared, so that no range goes away meanwhile.
    mutable std::shared_mutex memory_;
    AddressBook book_;
    MemoryFile file_;
    std::unordered_map<Handle, Piece> pieces_;
    std::unordered_map<Address, Bytes> plain_;
    Ledger ledger_;
    std::string problem_;

    mutable std::mutex report_mutex_;
    HostReport report_;
    LateStreams streams_;  // last: its threads end before what they work on
};

}  // namespace movie

// A device of books only: capacity, cost per call, strict rules, late events, injected faults. No byte is stored.
// Not thread-safe by itself: the allocator above serialises its calls.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "driver/address_book.h"
#include "driver/address_ranges.h"
#include "driver/driver.h"
#include "driver/model/clock.h"

namespace movie {

struct ModelOptions {
    Bytes capacity = Bytes{1} << 46;  // of the card, shared with any other owner
    Bytes granularity = 2 * kMiB;
    std::string costs = "per-call";
    std::int64_t lag = 0;  // rows; kNeverCompletes
    std::uint64_t seed = 0;
    Bytes address_space = Bytes{1} << 47;  // virtual addresses that may be reserved at a time
    // Reservations go downwards, and addresses come again, as on cards; else upwards, each address once. Between ranges
    // that are equally good addresses decide, so a replay that is to do what an allocator did on a card needs it.
    bool downwards = false;
};

class ModelDevice final : public Driver {
  public:
    explicit ModelDevice(const ModelOptions& options);

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
    [[nodiscard]] const Ledger& ledger() const override { return ledger_; }

    // --- what happens around the allocator ---------------------------------------------------------------------------
    DeviceClock& clock() { return clock_; }
    // Another owner takes memory of the card, or gives it back.
    Status external_take(Bytes size);
    void external_give(Bytes size);
    void begin_capture(Stream stream) { capturing_.insert(stream); }
    void end_capture(Stream stream) { capturing_.erase(stream); }
    // The k-th call (1 = the next) of this kind ends with `status`; several faults may be pending.
    void inject(Call call, std::uint64_t k, Status status);
    // Pending faults are forgotten.
    void heal() {
        for (auto& faults : faults_) faults.clear();
    }
    // The driver is being torn down: every later call answers shutting_down.
    void shut_down() { shutting_down_ = true; }
    // malloc() returns these, in order, before it makes up addresses of its own.
    void script_addresses(std::vector<Address> addresses);

    [[nodiscard]] const AddressBook& book() const { return book_; }
    [[nodiscard]] std::size_t plain_allocations() const { return plain_.size(); }
    [[nodiscard]] const ModelOptions& options() const { return options_; }

  private:
    // The fate of the next call of this kind: ok, or an injected fault.
    Status admit(Call call);
    void forbid_while_capturing(const char* call) const;
    [[nodiscard]] Bytes used() const { return ledger_.reserved + external_; }

    struct Fault {
        std::uint64_t countdown = 0;
        Status status = Status::failed;
    };

    ModelOptions options_;
    const CostTable& costs_;
    AddressBook book_;
    AddressRanges ranges_;
    DeviceClock clock_;
    Ledger ledger_;
    Bytes external_ = 0;
    bool shutting_down_ = false;
    std::unordered_set<Stream> capturing_;
    std::array<std::vector<Fault>, kCalls> faults_;
    std::unordered_map<Address, Bytes> plain_;
    std::vector<Address> script_;  // reversed
    Address next_plain_ = Address{0x7f} << 40;
};

}  // namespace movie

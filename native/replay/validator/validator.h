// An independent check of the invariants that every allocator here must keep: it sees each call of the allocator and
// each call that the allocator makes to the driver, keeps books of its own, and throws ValidationError at the first
// fault. It shares no code with any allocator. WatchedDriver and WatchedAllocator feed it; Watch ties the three
// together.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "allocator/allocator.h"
#include "driver/driver.h"
#include "replay/validator/memory_book.h"
#include "replay/validator/order.h"
#include "replay/validator/validation_error.h"

namespace movie {

class Validator {
  public:
    // `every`: the allocator's statistics are compared after each `every`-th call (the device's bytes after every one).
    explicit Validator(const Driver& device, std::uint64_t every = 64) : device_(device), every_(every) {}

    // --- the driver's side: what is about to be called, and what was done --------------------------------------------
    void reserved(Address address, Bytes size) { book_.reserve(address, size); }
    void freed_address(Address address) { book_.free_address(address); }
    void created(Handle handle, Bytes size) { book_.create(handle, size); }
    void before_release(Handle handle);
    void released(Handle handle);
    void before_map(Address address, Bytes size, Handle handle);
    void mapped(Address address, Bytes size, Handle handle);
    void before_unmap(Address address, Bytes size);
    void unmapped(Address address, Bytes size);
    // The driver did not take back what it was asked to: until the end of this call more may be held than should be.
    void refused() { refused_ = true; }
    void accessible(Address address, Bytes size) { book_.set_access(address, size); }
    void allocated_plain(Address address, Bytes size) { book_.malloc(address, size); }
    void before_mfree(Address address);
    void freed_plain(Address address);
    void before_record(Stream stream);
    void before_waiting(const char* call);  // a query, or a wait of the host
    validation::Order& order() { return order_; }
    void shutting_down() { shutting_down_ = true; }

    // --- the allocator's side ----------------------------------------------------------------------------------------
    void allocated(Address address, const Request& request);
    void allocation_failed(Bytes held_before, const Allocator& allocator);
    // Before the allocator hears of it, since it may give the memory back at once; false: no such live block.
    bool before_free(Address address);
    // The allocator threw: the block lives on.
    void free_failed(Address address);
    void unknown_freed(Address address);  // the allocator took an address that is no live block's
    void recorded(Address address, Stream stream);
    void released_pool(PoolId pool) { pools_[pool].released = true; }
    void set_lendable(PoolId pool, bool lendable) { pools_[pool].lendable = lendable; }
    void reclaimed(Bytes held_before, Bytes claimed);
    // After any call.
    void end_call(const char* call, const Allocator& allocator);

    // --- what else may happen ----------------------------------------------------------------------------------------
    void begin_capture(Stream stream) { capturing_.insert(stream); }
    void end_capture(Stream stream) { capturing_.erase(stream); }
    // The live block that begins at this address is exported, registered or captured: its memory stays put for good.
    void pin(Address address);

    // Compares all that can be compared, however long it takes.
    void check_all(const Allocator& allocator);

    [[nodiscard]] Bytes held() const { return book_.held(); }
    [[nodiscard]] std::uint64_t live_blocks() const { return blocks_.size(); }
    [[nodiscard]] Bytes live_requested() const { return live_requested_; }
    [[nodiscard]] std::uint64_t calls() const { return calls_; }

    // After a fault, and once the allocator is being torn down, calls are let through unchecked.
    [[nodiscard]] bool watching() const { return !fault_ && !closed_ && !shutting_down_; }
    [[nodiscard]] const std::optional<ValidationError>& fault() const { return fault_; }
    void close() { closed_ = true; }

    // Held during each call; the calls of an allocator may come from any thread.
    std::recursive_mutex& mutex() { return mutex_; }

  private:
    struct Block {
        Bytes bytes = 0, size = 0;  // as asked for, and rounded
        std::uint32_t stream = 0;
        PoolId pool = 0;
        std::vector<std::uint32_t> others;  // streams of record_stream
    };
    struct Pool {
        bool released = false, lendable = false;
    };

    [[noreturn]] void fail(int invariant, const std::string& text);
    // Calls f(mapping, begin, end) for each handle's part of the range, with offsets in the handle.
    template <class F>
    void for_each_part(Address address, Bytes size, F&& f);
    // Takes [begin, end) of the handle for a new block, if that is legal.
    void claim(validation::Physical& physical, Bytes begin, Bytes end, Address address, const Block& block);
    void check_pool(validation::Physical& physical, Address address, const Block& block);
    // A use in the set that later work of the stream is not ordered behind.
    [[nodiscard]] const validation::Use* unordered(const validation::Uses& uses, std::uint32_t stream) const;
    [[nodiscard]] const validation::Use* unseen(const validation::Uses& uses) const;
    void check_bytes(const char* call);
    void check_statistics(const Allocator& allocator);
    void check_unusable(const Allocator& allocator);
    [[nodiscard]] std::string describe(Address address, const Block& block) const;

    const Driver& device_;
    std::uint64_t every_;
    std::uint64_t calls_ = 0;
    validation::MemoryBook book_;
    validation::Order order_;
    std::unordered_map<Address, Block> blocks_;
    std::unordered_map<PoolId, Pool> pools_;
    std::unordered_set<Stream> capturing_;
    std::unordered_set<Handle> leaving_;  // released in this call, still mapped
    bool refused_ = false;                // what the driver did not take back in this call
    std::optional<Block> freeing_;        // the block of the free() in progress
    Bytes live_requested_ = 0, live_size_ = 0;
    Bytes may_be_pending_ = 0;  // requested bytes of freed blocks that a foreign stream may still hold back
    bool closed_ = false, shutting_down_ = false;
    std::optional<ValidationError> fault_;
    std::recursive_mutex mutex_;
};

}  // namespace movie

// Device memory of all cards: what is allocated, created, reserved and mapped, under the rules of the driver.
// Broken rules throw RuleViolation, which names the call and its arguments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "driver/address_book.h"
#include "driver/types.h"
#include "phantom/device/address_space.h"
#include "phantom/device/backing.h"

namespace movie::phantom {

// The physical memory of one card.
struct Room {
    Bytes total = 0;
    Bytes taken = 0;    // by other processes
    Bytes context = 0;  // by this process's context, once it has one
    Bytes used = 0;     // allocations and handles
    Bytes peak = 0;     // of `used`

    [[nodiscard]] Bytes free() const {
        const Bytes gone = taken + context + used;
        return gone < total ? total - gone : 0;
    }
    bool take(Bytes size);
    void give_back(Bytes size) { used -= size; }
};

// What a pointer is, for whoever asks.
struct Whole {
    Address begin = 0;
    Bytes size = 0;
    int device = 0;
    bool mapped_handle = false;  // by virtual memory management
};

class Memory {
  public:
    Memory(int devices, Bytes total, Bytes taken, Bytes granularity, bool bytes);

    [[nodiscard]] Bytes granularity() const { return granularity_; }
    [[nodiscard]] Room& room(int device) { return rooms_[static_cast<std::size_t>(device)]; }
    [[nodiscard]] const Room& room(int device) const { return rooms_[static_cast<std::size_t>(device)]; }
    [[nodiscard]] bool bytes() const { return backing_.bytes(); }

    // --- plain allocations: whole granules ---------------------------------------------------------------------------
    Outcome<Address> allocate(int device, Bytes size);
    // False: no allocation begins there.
    bool deallocate(Address address);
    // The device of the allocation that begins there, -1 if none does.
    [[nodiscard]] int device_of_allocation(Address address) const;

    // --- virtual memory management -----------------------------------------------------------------------------------
    Outcome<Address> reserve(Bytes size, Bytes alignment, Address wanted);
    void free_reservation(Address address, Bytes size);
    Outcome<Handle> create(int device, Bytes size, bool shareable);
    // One more owner of the handle.
    void retain(Handle handle);
    void release(Handle handle);
    Status map(Address address, Bytes size, Bytes offset, Handle handle);
    void unmap(Address address, Bytes size);
    // Handles in the range, for cost tables that charge by handle. Throws as unmap() would.
    [[nodiscard]] std::uint64_t handles_in(const char* call, Address address, Bytes size) const;
    void set_access(Address address, Bytes size, int device, bool allowed);
    [[nodiscard]] bool has_access(Address address, int device) const;
    // The handle that is mapped at the address.
    [[nodiscard]] std::optional<Handle> handle_at(Address address) const;
    [[nodiscard]] int device_of(Handle handle) const;  // -1: no such handle
    [[nodiscard]] bool shareable(Handle handle) const { return backing_.descriptor(handle) >= 0; }
    [[nodiscard]] int descriptor(Handle handle) const { return backing_.descriptor(handle); }
    // The handle behind a file that a process exported: one of ours with one more owner, or a new one over memory of
    // another process, which takes no room here. Nothing for a file that is none.
    std::optional<Handle> import_descriptor(int device, int descriptor);
    // A range over memory of another process, and its end.
    Outcome<Address> import_range(int device, Bytes size);
    bool forget_range(Address address);

    // --- questions ---------------------------------------------------------------------------------------------------
    // The allocation or mapping that holds the address.
    [[nodiscard]] std::optional<Whole> find(Address address) const;
    [[nodiscard]] std::optional<Whole> find_reservation(Address address) const;
    // Whether `device` may touch all of the range.
    [[nodiscard]] bool accessible(Address address, Bytes size, int device) const;
    [[nodiscard]] bool ours(Address address) const { return addresses_.contains(address); }

    // Pairs of devices that reach each other's plain allocations: cudaDeviceEnablePeerAccess.
    [[nodiscard]] bool peers(int device, int other) const {
        return device == other || peers_.contains({device, other});
    }
    void set_peers(int device, int other, bool on);

  private:
    struct Plain {
        Bytes size = 0;
        int device = 0;
        Handle handle = 0;      // of its bytes
        bool imported = false;  // of another process: it takes no room here
    };
    struct Physical {
        Bytes size = 0;
        int device = 0;
        std::uint32_t owners = 1;
        bool imported = false;
    };
    void returned(Handle handle);

    Bytes granularity_;
    std::vector<Room> rooms_;
    AddressSpace addresses_;
    AddressBook book_;
    Backing backing_;
    Handle next_plain_ = Handle{1} << 62;  // handles of plain allocations: apart from the book's
    std::map<Address, Plain> plain_;
    std::unordered_map<Handle, Physical> handles_;
    std::unordered_map<Address, std::uint64_t> access_;  // beginning of a mapping -> devices, a bit each
    std::set<std::pair<int, int>> peers_;
};

}  // namespace movie::phantom

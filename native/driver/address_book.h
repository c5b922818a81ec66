// Reservations, handles and mappings, with every rule of the driver enforced: the books of devices that have no driver
// to keep them.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "driver/types.h"

namespace movie {

struct Mapping {
    Bytes size = 0;
    Handle handle = 0;
    bool accessible = false;
};

class AddressBook {
  public:
    // `address_space`: bytes of virtual addresses that may be reserved at a time.
    AddressBook(Bytes granularity, Bytes address_space);

    // A range at an address of the book's choice.
    Outcome<Address> reserve(Bytes size);
    // A range that somebody else chose. Pre: it touches no other.
    Status reserve_at(Address address, Bytes size);
    void free_address(Address address, Bytes size);

    Handle create(Bytes size);
    // Returns the bytes that went back to the card: those of the handle if nothing maps it, else 0.
    Bytes release(Handle handle);

    void map(Address address, Bytes size, Handle handle);
    struct Unmapped {
        std::uint64_t handles = 0;
        Bytes returned = 0;  // bytes of released handles that lost their last mapping
    };
    // What unmap() will do; throws RuleViolation if it may not.
    [[nodiscard]] std::uint64_t check_complete_mappings(const char* call, Address address, Bytes size) const;
    Unmapped unmap(Address address, Bytes size);
    void set_access(Address address, Bytes size);

    // Checks that throw RuleViolation, without doing anything: called before a fault may be injected.
    void check_size(const char* call, Bytes size) const;
    void check_map(Address address, Bytes size, Handle handle) const;
    void check_release(Handle handle) const;
    void check_free_address(Address address, Bytes size) const;

    [[nodiscard]] const std::map<Address, Mapping>& mappings() const { return mappings_; }
    // Mappings, and stretches of reservations between them: what an operating system keeps a record of.
    [[nodiscard]] std::size_t areas() const { return mappings_.size() + gaps_; }
    // By how many parts a mapping at this place would add to areas(). Pre: check_map() would pass.
    [[nodiscard]] std::size_t areas_of_map(Address address, Bytes size) const;
    // Whether all of [address, address + size) is mapped with access.
    [[nodiscard]] bool accessible(Address address, Bytes size) const;
    // Whether the handle's memory has not returned to the card.
    [[nodiscard]] bool holds(Handle handle) const { return handles_.contains(handle); }
    [[nodiscard]] std::size_t handles() const { return handles_.size(); }
    [[nodiscard]] const std::map<Address, Bytes>& reserved() const { return reservations_; }  // address -> size
    [[nodiscard]] std::size_t reservations() const { return reservations_.size(); }

  private:
    struct Physical {
        Bytes size = 0;
        std::uint64_t mapped = 0;
        bool released = false;
    };

    // Whether the reservation goes on, unmapped, before this address or behind it.
    [[nodiscard]] bool gap_before(Address address) const;
    [[nodiscard]] bool gap_behind(Address address) const;

    Bytes granularity_;
    Bytes address_space_;
    std::size_t gaps_ = 0;
    Bytes reserved_addresses_ = 0;
    Address next_address_ = Address{1} << 40;
    Handle next_handle_ = 1;
    std::map<Address, Bytes> reservations_;
    std::map<Address, Mapping> mappings_;
    std::unordered_map<Handle, Physical> handles_;
};

}  // namespace movie

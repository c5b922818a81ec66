// Reservations, handles and mappings of a device that exists on paper, with every rule of the driver enforced.
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

    Outcome<Address> reserve(Bytes size);
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
    [[nodiscard]] std::size_t handles() const { return handles_.size(); }
    [[nodiscard]] std::size_t reservations() const { return reservations_.size(); }

  private:
    struct Physical {
        Bytes size = 0;
        std::uint64_t mapped = 0;
        bool released = false;
    };

    Bytes granularity_;
    Bytes address_space_;
    Bytes reserved_addresses_ = 0;
    Address next_address_ = Address{1} << 40;
    Handle next_handle_ = 1;
    std::map<Address, Bytes> reservations_;
    std::map<Address, Mapping> mappings_;
    std::unordered_map<Handle, Physical> handles_;
};

}  // namespace movie

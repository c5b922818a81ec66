#include "driver/address_book.h"

#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <string>

namespace movie {

namespace {

[[noreturn]] void violate(const char* call, Address address, Bytes size, const std::string& rule) {
    char text[96];
    std::snprintf(text, sizeof text, "%s(address=0x%" PRIx64 ", size=%" PRIu64 "): ", call, address, size);
    throw RuleViolation(text + rule);
}

}  // namespace

AddressBook::AddressBook(Bytes granularity, Bytes address_space)
    : granularity_(granularity), address_space_(address_space) {}

void AddressBook::check_size(const char* call, Bytes size) const {
    if (size == 0 || size % granularity_ != 0) violate(call, 0, size, "the size must be a multiple of the granularity");
}

Outcome<Address> AddressBook::reserve(Bytes size) {
    if (size > address_space_ - reserved_addresses_) return {Status::out_of_addresses, 0};
    const Address address = next_address_;
    next_address_ = round_up(address + size + kRangeDistance, granularity_);
    return {reserve_at(address, size), address};
}

Status AddressBook::reserve_at(Address address, Bytes size) {
    if (size > address_space_ - reserved_addresses_) return Status::out_of_addresses;
    reservations_.emplace(address, size);
    reserved_addresses_ += size;
    ++gaps_;
    return Status::ok;
}

void AddressBook::check_free_address(Address address, Bytes size) const {
    const auto found = reservations_.find(address);
    if (found == reservations_.end() || found->second != size)
        violate("free_address", address, size, "not exactly a reserved range");
    const auto next = mappings_.lower_bound(address);
    if (next != mappings_.end() && next->first < address + size)
        violate("free_address", address, size, "something is still mapped in the range");
}

void AddressBook::free_address(Address address, Bytes size) {
    check_free_address(address, size);
    reservations_.erase(address);
    reserved_addresses_ -= size;
    --gaps_;
}

Handle AddressBook::create(Bytes size) {
    const Handle handle = next_handle_++;
    handles_.emplace(handle, Physical{.size = size});
    return handle;
}

void AddressBook::check_release(Handle handle) const {
    const auto found = handles_.find(handle);
    if (found == handles_.end() || found->second.released)
        throw RuleViolation("release(handle=" + std::to_string(handle) + "): no such handle, or released before");
}

Bytes AddressBook::release(Handle handle) {
    check_release(handle);
    const auto found = handles_.find(handle);
    if (found->second.mapped > 0) {
        found->second.released = true;
        return 0;
    }
    const Bytes size = found->second.size;
    handles_.erase(found);
    return size;
}

void AddressBook::check_map(Address address, Bytes size, Handle handle) const {
    if (address % granularity_ != 0) violate("map", address, size, "the address must be a multiple of the granularity");
    const auto physical = handles_.find(handle);
    if (physical == handles_.end() || physical->second.released)
        violate("map", address, size, "no such handle, or released: " + std::to_string(handle));
    if (physical->second.size != size) violate("map", address, size, "a mapping is one whole handle at offset 0");
    auto range = reservations_.upper_bound(address);
    if (range == reservations_.begin() || (--range)->first + range->second < address + size)
        violate("map", address, size, "not inside one reserved range");
    auto next = mappings_.lower_bound(address);
    if (next != mappings_.end() && next->first < address + size)
        violate("map", address, size, "the range is mapped already");
    if (next != mappings_.begin() && std::prev(next)->first + std::prev(next)->second.size > address)
        violate("map", address, size, "the range is mapped already");
}

bool AddressBook::gap_before(Address address) const {
    if (reservations_.contains(address)) return false;
    const auto next = mappings_.lower_bound(address);
    return next == mappings_.begin() || std::prev(next)->first + std::prev(next)->second.size != address;
}

bool AddressBook::gap_behind(Address address) const {
    const auto range = std::prev(reservations_.lower_bound(address));
    return range->first + range->second != address && !mappings_.contains(address);
}

std::size_t AddressBook::areas_of_map(Address address, Bytes size) const {
    return (gap_before(address) ? 1U : 0U) + (gap_behind(address + size) ? 1U : 0U);
}

bool AddressBook::accessible(Address address, Bytes size) const {
    auto mapping = mappings_.upper_bound(address);
    if (mapping == mappings_.begin()) return false;
    Address at = std::prev(mapping)->first;
    for (--mapping; at < address + size; ++mapping) {
        if (mapping == mappings_.end() || mapping->first != at || !mapping->second.accessible) return false;
        at += mapping->second.size;
        if (at <= address) return false;
    }
    return true;
}

void AddressBook::map(Address address, Bytes size, Handle handle) {
    check_map(address, size, handle);
    gaps_ += areas_of_map(address, size) - 1;
    mappings_.emplace(address, Mapping{.size = size, .handle = handle});
    ++handles_.at(handle).mapped;
}

std::uint64_t AddressBook::check_complete_mappings(const char* call, Address address, Bytes size) const {
    if (size == 0) violate(call, address, size, "an empty range");
    std::uint64_t count = 0;
    Address at = address;
    for (auto mapping = mappings_.find(address); at < address + size; ++mapping, ++count) {
        if (mapping == mappings_.end() || mapping->first != at)
            violate(call, address, size, "a part of the range is not mapped, or the range begins inside a mapping");
        at += mapping->second.size;
    }
    if (at != address + size) violate(call, address, size, "the range ends inside a mapping");
    return count;
}

AddressBook::Unmapped AddressBook::unmap(Address address, Bytes size) {
    Unmapped result{.handles = check_complete_mappings("unmap", address, size)};
    gaps_ += 1;
    gaps_ -= (gap_before(address) ? 1U : 0U) + (gap_behind(address + size) ? 1U : 0U);
    auto mapping = mappings_.find(address);
    while (mapping != mappings_.end() && mapping->first < address + size) {
        const auto physical = handles_.find(mapping->second.handle);
        if (--physical->second.mapped == 0 && physical->second.released) {
            result.returned += physical->second.size;
            handles_.erase(physical);
        }
        mapping = mappings_.erase(mapping);
    }
    return result;
}

void AddressBook::set_access(Address address, Bytes size) {
    (void)check_complete_mappings("set_access", address, size);
    for (auto mapping = mappings_.find(address); mapping != mappings_.end() && mapping->first < address + size;
         ++mapping)
        mapping->second.accessible = true;
}

}  // namespace movie

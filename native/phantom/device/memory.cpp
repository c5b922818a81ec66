#include "phantom/device/memory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <stdexcept>

namespace movie::phantom {

bool Room::take(Bytes size) {
    if (size > free()) return false;
    used += size;
    peak = std::max(peak, used);
    return true;
}

Memory::Memory(int devices, Bytes total, Bytes taken, Bytes granularity, bool bytes)
    : granularity_(granularity),
      rooms_(static_cast<std::size_t>(devices), Room{.total = total, .taken = taken}),
      book_(granularity, ~Bytes{0}),
      backing_(bytes) {}

// --- plain allocations -----------------------------------------------------------------------------------------------

Outcome<Address> Memory::allocate(int device, Bytes size) {
    const Bytes whole = round_up(std::max<Bytes>(size, 1), granularity_);
    if (whole < size || !room(device).take(whole)) return {Status::out_of_memory, 0};
    const auto address = addresses_.take(whole, granularity_);
    const Handle handle = next_plain_++;
    Status status = address.ok() ? backing_.create(handle, whole, false) : Status::out_of_memory;
    if (status == Status::ok) {
        status = backing_.show(handle, address.value);
        if (status == Status::ok) status = backing_.allow(address.value, whole);
        if (status != Status::ok) backing_.destroy(handle);
    }
    if (status != Status::ok) {
        if (address.ok()) addresses_.give_back(address.value, whole);
        room(device).give_back(whole);
        return {Status::out_of_memory, 0};
    }
    plain_.emplace(address.value, Plain{.size = whole, .device = device, .handle = handle});
    return address;
}

bool Memory::deallocate(Address address) {
    const auto found = plain_.find(address);
    if (found == plain_.end() || found->second.imported) return false;
    backing_.hide(address, found->second.size);
    backing_.destroy(found->second.handle);
    addresses_.give_back(address, found->second.size);
    room(found->second.device).give_back(found->second.size);
    plain_.erase(found);
    return true;
}

int Memory::device_of_allocation(Address address) const {
    const auto found = plain_.find(address);
    return found == plain_.end() || found->second.imported ? -1 : found->second.device;
}

Outcome<Address> Memory::import_range(int device, Bytes size) {
    const auto address = addresses_.take(size, granularity_);
    if (address.ok())
        plain_.emplace(address.value, Plain{.size = size, .device = device, .handle = 0, .imported = true});
    return address;
}

bool Memory::forget_range(Address address) {
    const auto found = plain_.find(address);
    if (found == plain_.end() || !found->second.imported) return false;
    addresses_.give_back(address, found->second.size);
    plain_.erase(found);
    return true;
}

// --- virtual memory management ---------------------------------------------------------------------------------------

Outcome<Address> Memory::reserve(Bytes size, Bytes alignment, Address wanted) {
    book_.check_size("reserve", size);
    const auto address = addresses_.take(size, std::max(alignment, granularity_), wanted);
    if (!address.ok()) return address;
    const Status status = book_.reserve_at(address.value, size);
    if (status == Status::ok) return address;
    addresses_.give_back(address.value, size);
    return {status, 0};
}

void Memory::free_reservation(Address address, Bytes size) {
    book_.free_address(address, size);
    addresses_.give_back(address, size);
}

Outcome<Handle> Memory::create(int device, Bytes size, bool shareable) {
    book_.check_size("create", size);
    if (!room(device).take(size)) return {Status::out_of_memory, 0};
    const Handle handle = book_.create(size);
    const Status status = backing_.create(handle, size, shareable);
    if (status != Status::ok) {
        (void)book_.release(handle);
        room(device).give_back(size);
        return {status, 0};
    }
    handles_.emplace(handle, Physical{.size = size, .device = device});
    return {Status::ok, handle};
}

std::optional<Handle> Memory::import_descriptor(int device, int descriptor) {
    struct stat wanted{};
    if (fstat(descriptor, &wanted) != 0 || !S_ISREG(wanted.st_mode)) return std::nullopt;
    for (auto& [handle, physical] : handles_) {
        struct stat own{};
        if (physical.owners == 0 || !shareable(handle) || fstat(backing_.descriptor(handle), &own) != 0) continue;
        if (own.st_dev != wanted.st_dev || own.st_ino != wanted.st_ino) continue;
        ++physical.owners;
        return handle;
    }
    const auto size = static_cast<Bytes>(wanted.st_size);
    if (size == 0 || size % granularity_ != 0) return std::nullopt;
    const int duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (duplicate < 0) return std::nullopt;
    const Handle handle = book_.create(size);
    backing_.adopt(handle, size, duplicate);
    handles_.emplace(handle, Physical{.size = size, .device = device, .imported = true});
    return handle;
}

void Memory::retain(Handle handle) { ++handles_.at(handle).owners; }

void Memory::release(Handle handle) {
    const auto found = handles_.find(handle);
    if (found != handles_.end() && found->second.owners > 1) {
        --found->second.owners;
        return;
    }
    book_.check_release(handle);
    found->second.owners = 0;
    if (book_.release(handle) > 0) returned(handle);
}

void Memory::returned(Handle handle) {
    const auto found = handles_.find(handle);
    if (!found->second.imported) room(found->second.device).give_back(found->second.size);
    backing_.destroy(handle);
    handles_.erase(found);
}

Status Memory::map(Address address, Bytes size, Bytes offset, Handle handle) {
    if (offset != 0) {
        char text[128];
        std::snprintf(text, sizeof text,
                      "map(address=0x%" PRIx64 ", size=%" PRIu64 ", offset=%" PRIu64 "): the offset must be 0", address,
                      size, offset);
        throw RuleViolation(text);
    }
    book_.map(address, size, handle);
    const Status status = backing_.show(handle, address);
    if (status != Status::ok) {
        (void)book_.unmap(address, size);
        return status;
    }
    access_.emplace(address, 0);
    return Status::ok;
}

std::uint64_t Memory::handles_in(const char* call, Address address, Bytes size) const {
    return book_.check_complete_mappings(call, address, size);
}

void Memory::unmap(Address address, Bytes size) {
    (void)book_.check_complete_mappings("unmap", address, size);
    std::vector<Handle> in_range;
    for (auto mapping = book_.mappings().find(address);
         mapping != book_.mappings().end() && mapping->first < address + size; ++mapping) {
        in_range.push_back(mapping->second.handle);
        access_.erase(mapping->first);
    }
    backing_.hide(address, size);
    (void)book_.unmap(address, size);
    std::sort(in_range.begin(), in_range.end());
    in_range.erase(std::unique(in_range.begin(), in_range.end()), in_range.end());
    for (const Handle handle : in_range)
        if (!book_.holds(handle)) returned(handle);
}

void Memory::set_access(Address address, Bytes size, int device, bool allowed) {
    (void)book_.check_complete_mappings("set_access", address, size);
    const std::uint64_t bit = std::uint64_t{1} << device;
    for (auto mapping = book_.mappings().find(address);
         mapping != book_.mappings().end() && mapping->first < address + size; ++mapping) {
        std::uint64_t& devices = access_.at(mapping->first);
        devices = allowed ? devices | bit : devices & ~bit;
    }
    if (allowed && backing_.allow(address, size) != Status::ok)
        throw std::runtime_error("the system has no room for one more mapping (vm.max_map_count)");
}

bool Memory::has_access(Address address, int device) const { return accessible(address, 1, device); }

std::optional<Handle> Memory::handle_at(Address address) const {
    auto mapping = book_.mappings().upper_bound(address);
    if (mapping == book_.mappings().begin()) return std::nullopt;
    --mapping;
    if (mapping->first + mapping->second.size <= address) return std::nullopt;
    return mapping->second.handle;
}

int Memory::device_of(Handle handle) const {
    const auto found = handles_.find(handle);
    return found == handles_.end() || found->second.owners == 0 ? -1 : found->second.device;
}

// --- questions -------------------------------------------------------------------------------------------------------

std::optional<Whole> Memory::find(Address address) const {
    if (!addresses_.contains(address)) return std::nullopt;
    if (auto plain = plain_.upper_bound(address); plain != plain_.begin()) {
        --plain;
        if (address < plain->first + plain->second.size)
            return Whole{.begin = plain->first, .size = plain->second.size, .device = plain->second.device};
    }
    if (auto mapping = book_.mappings().upper_bound(address); mapping != book_.mappings().begin()) {
        --mapping;
        if (address < mapping->first + mapping->second.size)
            return Whole{.begin = mapping->first,
                         .size = mapping->second.size,
                         .device = handles_.at(mapping->second.handle).device,
                         .mapped_handle = true};
    }
    return std::nullopt;
}

std::optional<Whole> Memory::find_reservation(Address address) const {
    auto range = book_.reserved().upper_bound(address);
    if (range == book_.reserved().begin()) return std::nullopt;
    --range;
    if (address >= range->first + range->second) return std::nullopt;
    return Whole{.begin = range->first, .size = range->second, .device = 0, .mapped_handle = true};
}

bool Memory::accessible(Address address, Bytes size, int device) const {
    const Address end = address + size;
    for (Address at = address; at < end;) {
        const auto whole = find(at);
        if (!whole) return false;
        if (whole->mapped_handle) {
            if ((access_.at(whole->begin) >> device & 1) == 0) return false;
        } else if (!peers(device, whole->device)) {
            return false;
        }
        at = whole->begin + whole->size;
    }
    return true;
}

void Memory::set_peers(int device, int other, bool on) {
    if (on)
        peers_.emplace(device, other);
    else
        peers_.erase(std::pair(device, other));
}

}  // namespace movie::phantom

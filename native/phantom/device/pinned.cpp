#include "phantom/device/pinned.h"

#include <sys/mman.h>

#include <iterator>

namespace movie::phantom {

namespace {
constexpr Bytes kPage = 4096;
Address number(const void* address) { return reinterpret_cast<Address>(address); }
}  // namespace

Outcome<void*> Pinned::allocate(Bytes size, int device, unsigned flags) {
    const Bytes mapped = round_up(size, kPage);
    void* got = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return {Status::out_of_memory, nullptr};
    ranges_.emplace(number(got), Range{number(got), size, mapped, device, flags});
    bytes_ += size;
    return {Status::ok, got};
}

bool Pinned::deallocate(const void* address) {
    const auto found = ranges_.find(number(address));
    if (found == ranges_.end() || found->second.mapped == 0) return false;
    munmap(reinterpret_cast<void*>(found->first), found->second.mapped);
    bytes_ -= found->second.size;
    ranges_.erase(found);
    return true;
}

bool Pinned::add(const void* address, Bytes size, int device, unsigned flags) {
    const Address begin = number(address);
    auto next = ranges_.lower_bound(begin);
    if (next != ranges_.end() && next->first < begin + size) return false;
    if (next != ranges_.begin() && std::prev(next)->first + std::prev(next)->second.size > begin) return false;
    ranges_.emplace(begin, Range{begin, size, 0, device, flags});
    bytes_ += size;
    return true;
}

bool Pinned::remove(const void* address) {
    const auto found = ranges_.find(number(address));
    if (found == ranges_.end() || found->second.mapped != 0) return false;
    bytes_ -= found->second.size;
    ranges_.erase(found);
    return true;
}

std::optional<Pinned::Range> Pinned::find(const void* address) const {
    auto found = ranges_.upper_bound(number(address));
    if (found == ranges_.begin()) return std::nullopt;
    --found;
    if (number(address) >= found->first + found->second.size) return std::nullopt;
    return found->second;
}

bool Pinned::holds(const void* address, Bytes size) const {
    Address at = number(address);
    const Address end = at + size;
    while (at < end) {
        const auto range = find(reinterpret_cast<const void*>(at));
        if (!range) return false;
        at = range->begin + range->size;
    }
    return true;
}

}  // namespace movie::phantom

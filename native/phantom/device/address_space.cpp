#include "phantom/device/address_space.h"

#include <sys/mman.h>

#include <iterator>
#include <stdexcept>

namespace movie::phantom {

namespace {
// Far below where Linux puts programs, libraries and stacks on 64-bit machines (47 or 48 bits of addresses).
#ifdef __SANITIZE_THREAD__  // which has rules of its own about addresses
constexpr Address kBegin = 0x7e8000000000;
constexpr Bytes kSize = Bytes{1} << 39;
#else
constexpr Address kBegin = Address{1} << 45;
constexpr Bytes kSize = Bytes{1} << 45;
#endif
constexpr Bytes kLeast = Bytes{1} << 38;
}  // namespace

AddressSpace::AddressSpace() {
    // Smaller stretches, at places of the system's choice, for systems that limit addresses.
    for (Bytes size = kSize; size >= kLeast; size /= 2) {
        void* got = mmap(reinterpret_cast<void*>(kBegin), size, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == MAP_FAILED) got = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (got == MAP_FAILED) continue;
        // A child after fork has no card: it need not inherit these.
        madvise(got, size, MADV_DONTFORK);
        begin_ = reinterpret_cast<Address>(got);
        end_ = begin_ + size;
        free_.emplace(begin_, size);
        return;
    }
    throw std::runtime_error("no 256 GiB of addresses for the card's memory (a limit on virtual memory, ulimit -v?)");
}

Outcome<Address> AddressSpace::take(Bytes size, Bytes alignment, Address wanted) {
    const auto cut = [this](std::map<Address, Bytes>::iterator range, Address address, Bytes length) {
        const auto [begin, whole] = *range;
        free_.erase(range);
        if (address > begin) free_.emplace(begin, address - begin);
        if (begin + whole > address + length) free_.emplace(address + length, begin + whole - address - length);
    };
    if (wanted != 0 && wanted % alignment == 0) {
        auto range = free_.upper_bound(wanted);
        if (range != free_.begin() && (--range)->first + range->second >= wanted + size) {
            cut(range, wanted, size);
            return {Status::ok, wanted};
        }
    }
    for (auto range = free_.rbegin(); range != free_.rend(); ++range) {
        const auto [begin, length] = *range;
        if (length < size) continue;
        const Address address = round_down(begin + length - size, alignment);
        if (address < begin) continue;
        cut(std::prev(range.base()), address, size);
        return {Status::ok, address};
    }
    return {Status::out_of_addresses, 0};
}

void AddressSpace::give_back(Address address, Bytes size) {
    auto next = free_.lower_bound(address);
    if (next != free_.end() && next->first == address + size) {
        size += next->second;
        next = free_.erase(next);
    }
    if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == address)
        std::prev(next)->second += size;
    else
        free_.emplace(address, size);
}

}  // namespace movie::phantom

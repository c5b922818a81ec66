#include "phantom/device/address_space.h"

#include <sys/mman.h>

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
        ranges_.give_back(begin_, size);
        return;
    }
    throw std::runtime_error("no 256 GiB of addresses for the card's memory (a limit on virtual memory, ulimit -v?)");
}

}  // namespace movie::phantom

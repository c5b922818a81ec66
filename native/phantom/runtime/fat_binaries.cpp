#include "phantom/runtime/fat_binaries.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace movie::phantom::runtime {

namespace {

// The layouts as they are in programs. A wrapper points to a header, entries with code follow it one after the other.
struct Wrapper {
    std::uint32_t magic, version;
    const std::byte* data;
};
struct Header {
    std::uint32_t magic;
    std::uint16_t version, header_size;
    std::uint64_t size;  // of all entries
};
struct Entry {
    std::uint16_t kind, version;
    std::uint32_t header_size;
    std::uint64_t size;
    std::uint32_t compressed_size, options;
    std::uint16_t minor, major;
    std::uint32_t architecture;
};
constexpr std::uint32_t kWrapperMagic = 0x466243b1, kHeaderMagic = 0xba55ed50;
constexpr std::uint16_t kIntermediate = 1, kBinary = 2;

// Some kernels are compiled for more architectures than the rest. What most of the first images have is what all have,
// and looking at more would read the whole of a large file.
constexpr std::size_t kLookedAt = 16;

std::mutex mutex;
std::vector<const Wrapper*>& images() {
    static std::vector<const Wrapper*> found;
    return found;
}

template <class T>
T read(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// Binaries run on cards of their major version and at least their minor one, intermediate code on all later cards.
bool runs_on(const Entry& entry, int card) {
    const int architecture = static_cast<int>(entry.architecture);
    if (entry.kind == kIntermediate) return architecture <= card;
    return entry.kind == kBinary && architecture / 10 == card / 10 && architecture <= card;
}

}  // namespace

void remember_fat_binary(const void* wrapper) {
    const std::lock_guard lock(mutex);
    if (images().size() < kLookedAt) images().push_back(static_cast<const Wrapper*>(wrapper));
}

int architecture_for(int card) {
    const std::lock_guard lock(mutex);
    std::map<int, std::size_t> counts;
    std::size_t known = 0;
    for (const Wrapper* image : images()) {
        if (image->magic != kWrapperMagic) continue;
        const auto header = read<Header>(image->data);
        if (header.magic != kHeaderMagic) continue;
        ++known;
        std::map<int, std::size_t> here;
        const std::byte* at = image->data + header.header_size;
        for (const std::byte* end = at + header.size; at < end;) {
            const auto entry = read<Entry>(at);
            if (runs_on(entry, card)) here[static_cast<int>(entry.architecture)] = 1;
            at += entry.header_size + entry.size;
        }
        for (const auto& [architecture, one] : here) counts[architecture] += one;
    }
    if (known == 0) return card;
    int best = 0;
    for (const auto& [architecture, count] : counts)
        if (2 * count >= known) best = architecture;
    return best;
}

}  // namespace movie::phantom::runtime

#include "driver/host/patterns.h"

#include <algorithm>
#include <cstring>

namespace movie {

namespace {

// Calls visit(pointer, bytes, offset) for each word, until it returns false.
template <class Visit>
void for_each_word(Address address, Bytes size, Bytes stride, Visit visit) {
    const auto step_from = [&](Bytes offset) {
        const bool edge = offset < stride || offset + stride >= size;
        const Bytes grain = edge ? std::min(stride, kPatternGrain) : stride;
        Bytes next = round_down(address + offset, grain) + grain - address;
        // The edge at the end begins where the last stride does, wherever the grid between lies.
        if (!edge) next = std::min(next, round_up(address + size - stride, kPatternGrain) - address);
        return next;
    };
    for (Bytes offset = 0; offset < size; offset = step_from(offset))
        if (!visit(reinterpret_cast<unsigned char*>(address + offset), std::min<Bytes>(8, size - offset), offset))
            return;
}

// Neighbouring words and neighbouring patterns differ in most of their bits.
std::uint64_t word(std::uint64_t pattern, Bytes offset) {
    std::uint64_t mixed = (pattern * 0x9e3779b97f4a7c15) ^ (offset + 1) * 0xbf58476d1ce4e5b9;
    mixed ^= mixed >> 31;
    return mixed * 0x94d049bb133111eb;
}

}  // namespace

void write_pattern(Address address, Bytes size, std::uint64_t pattern, Bytes stride) {
    for_each_word(address, size, stride, [&](unsigned char* at, Bytes bytes, Bytes offset) {
        const std::uint64_t value = word(pattern, offset);
        std::memcpy(at, &value, bytes);
        return true;
    });
}

std::optional<PatternMismatch> find_mismatch(Address address, Bytes size, std::uint64_t pattern, Bytes stride) {
    std::optional<PatternMismatch> mismatch;
    for_each_word(address, size, stride, [&](const unsigned char* at, Bytes bytes, Bytes offset) {
        std::uint64_t expected = 0;
        std::uint64_t found = 0;
        const std::uint64_t value = word(pattern, offset);
        std::memcpy(&expected, &value, bytes);
        std::memcpy(&found, at, bytes);
        if (expected != found) mismatch = {.offset = offset, .expected = expected, .found = found};
        return expected == found;
    });
    return mismatch;
}

}  // namespace movie

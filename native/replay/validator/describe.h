// Facts for error messages.
#pragma once

#include <cinttypes>
#include <cstdio>
#include <string>

#include "driver/types.h"

namespace movie::validation {

inline std::string hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%" PRIx64, value);
    return text;
}

// "[0x10000000000, +2097152)"
inline std::string range_text(Address address, Bytes size) {
    char text[64];
    std::snprintf(text, sizeof text, "[0x%" PRIx64 ", +%" PRIu64 ")", address, size);
    return text;
}

}  // namespace movie::validation

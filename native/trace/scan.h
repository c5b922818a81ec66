// What a look through a stranger's file, before Python loads it, is allowed to find and what it found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace movie {

struct ScanLimits {
    std::size_t depth = 64;                    // containers inside each other
    std::size_t items = std::size_t{1} << 31;  // values in all
    // Containers cost far more in memory than in the file. Beyond a million, a file may hold one for each so many
    // bytes.
    std::size_t bytes_per_container = 8;
};

struct Scan {
    std::string problem;     // empty: nothing is wrong; else a text for people
    std::size_t offset = 0;  // of the byte where the problem was seen
    std::size_t items = 0;
    std::size_t containers = 0;
    std::size_t depth = 0;

    [[nodiscard]] bool ok() const { return problem.empty(); }
};

}  // namespace movie

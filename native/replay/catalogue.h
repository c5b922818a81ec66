// The allocators by name, with their options: "movie", "movie-lean", "native", ...
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "allocator/allocator.h"
#include "driver/driver.h"

namespace movie {

using AllocatorOptions = std::map<std::string, std::string>;  // sizes as plain numbers of bytes

struct AllocatorEntry {
    std::string name;
    std::string summary;               // one line: what it is, and which version it models
    std::vector<std::string> options;  // the keys that it takes
};

const std::vector<AllocatorEntry>& catalogue();

// Throws std::invalid_argument, with a text for people, for an unknown name, option or value.
std::unique_ptr<Allocator> make_allocator(Driver& driver, const std::string& name, const AllocatorOptions& options);

}  // namespace movie

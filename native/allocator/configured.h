// The MOVie allocator from named options, as command lines and environment variables give them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "allocator/movie_allocator.h"

namespace movie {

// The options' names: "page", "combine", ...
std::vector<std::string> movie_options();

// Sizes are plain numbers of bytes, switches "on" or "off". Throws std::invalid_argument for a key that is not one of
// movie_options(), or a value that cannot be.
MovieConfig movie_config(Policy policy, const std::map<std::string, std::string>& options);

}  // namespace movie

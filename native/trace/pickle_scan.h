// Is a pickle plain data, and of bounded depth and size? Answered without building anything.
#pragma once

#include <string_view>

#include "trace/scan.h"

namespace movie {

// Follows the pickle machine (protocols 2 to 5) over dicts with string keys, lists, tuples, strings, integers of up to
// 16 bytes, floats, booleans and None, with their memo. Refuses every other opcode, everything that the machine itself
// would stumble over, data after the end, a container that is changed after it was stored in another or that holds
// itself (so what remains is a tree, whose depth is known), and what exceeds the limits.
Scan scan_pickle(std::string_view data, const ScanLimits& limits = {});

}  // namespace movie

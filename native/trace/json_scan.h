// How deep and how large is a JSON text? Answered without building anything.
#pragma once

#include <string_view>

#include "trace/scan.h"

namespace movie {

// Counts brackets and values outside of strings. Finds what exceeds the limits and brackets that do not pair up;
// everything else about the syntax is left to the parser.
Scan scan_json(std::string_view data, const ScanLimits& limits = {});

}  // namespace movie

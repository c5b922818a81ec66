// The switches of GMLake, with the defaults of its release.
#pragma once

#include <limits>
#include <map>
#include <string>

#include "driver/types.h"

namespace movie {

struct GmlakeSettings {
    Bytes frag = 512 * kMiB;      // fragLimit: smaller requests are not stitched
    double reuse = 10;            // reuseLimit: a view may be this many times as large as the request
    Bytes auto_gc = 1000 * kGiB;  // autoGC: beyond so many bytes of views, all that can go are dropped
};

// From options by name: `frag`, `reuse`, `auto_gc`. Throws std::invalid_argument for an unknown name or a bad value.
GmlakeSettings gmlake_settings(const std::map<std::string, std::string>& options);

}  // namespace movie

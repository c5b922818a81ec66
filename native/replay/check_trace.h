// What the replay loop takes for granted about the columns of a trace.
#pragma once

#include "replay/trace_view.h"

namespace movie {

// Throws std::invalid_argument that names the first bad row: columns of unequal length, an unknown action, an id out of
// range, a block allocated twice or freed when it is not alive, sizes that are not positive.
void check_trace(const TraceView& trace);

}  // namespace movie

// The driver calls of the GMLake model: one for each chunk, as in the released code.
#pragma once

#include "baselines/gmlake/chunk.h"
#include "driver/driver.h"

namespace movie::gmlake {

// A handle for each chunk, then addresses, then map and set_access for each. False: the driver refused; what was
// obtained is in the segment, for tear_down().
bool obtain(Driver& driver, Segment& segment, std::size_t chunks);
// Releases all handles that no view maps. Pre: unmap() succeeded.
void release_chunks(Driver& driver, Segment& segment);

// Addresses over the view's chunks, map and set_access for each. False: the driver refused; what was mapped is in the
// view, for unmap().
bool map(Driver& driver, View& view);
// Unmaps with one call and gives the addresses back. False: the driver refused to unmap; if it refused only the
// addresses, the range has them still. Pre: no work uses the range.
bool unmap(Driver& driver, Range& range);

}  // namespace movie::gmlake

// Reports of allocators as Python dictionaries.
#pragma once

#include <nanobind/nanobind.h>

#include "allocator/allocator.h"

namespace movie {

// Keys and values as torch.cuda.memory_stats() has them.
nanobind::dict to_dict(const Statistics& statistics);
nanobind::dict to_dict(const Unusable& unusable);
nanobind::dict to_dict(const ViewCounters& views);

}  // namespace movie

// How what cannot be measured in driver calls is weighed against them.
#pragma once
#include <cstdlib>

namespace movie {

// Microseconds for each allocator operation that a stream likely has to wait for another. Both streams run behind the
// host, so most of such a wait overlaps with work that is queued anyway; a driver call holds up the host for certain.
static const double kWaitCost = getenv("WC") ? atof(getenv("WC")) : 1;
static const bool kFirst = getenv("CF") != nullptr;

}  // namespace movie

// The end of a run that needs something the phantom GPU does not have.
#pragma once

namespace movie::phantom {

// What the process exits with then: distinct from Python's 1, from usage errors (2) and from shells' 126 and up.
constexpr int kNotImplemented = 97;

// Says on standard error which function of NVIDIA's libraries was called and what to do, and ends the process at once.
// An error code would not do: many callers ignore it, and what the run shows from there on would be wrong.
[[noreturn]] void stop(const char* function, const char* detail = "");

}  // namespace movie::phantom

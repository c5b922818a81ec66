// What the phantom says to people: one line that it is a phantom, one for each broken rule, and what stops the run.
#pragma once

#include <string>

namespace movie::phantom {

// Exit code of a run that the phantom stops.
constexpr int kStopped = 86;

// A line on standard error that begins with "phantom: ".
void say(const std::string& line);
// Says the line and ends the process at once, without running what a program has registered for its end.
[[noreturn]] void stop(const std::string& line);

}  // namespace movie::phantom

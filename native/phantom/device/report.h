// What the phantom says to people: one line that it is a phantom, one for each broken rule, and what stops the run.
#pragma once

#include <string>

namespace movie::phantom {

// How a run ends that the phantom ends: settings that cannot be, a broken rule where those are to end it, and something
// that this system would not do for the phantom.
constexpr int kBadSettings = 2, kRuleBroken = 96, kSystemProblem = 95;

// A line on standard error that begins with "phantom: ".
void say(const std::string& line);
// Says the line and ends the process at once, without running what the program has registered for its end.
[[noreturn]] void end_run(int exit_code, const std::string& line);

}  // namespace movie::phantom

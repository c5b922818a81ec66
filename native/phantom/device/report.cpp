#include "phantom/device/report.h"

#include <unistd.h>

#include <cstdio>

namespace movie::phantom {

void say(const std::string& line) {
    const std::string text = "phantom: " + line + "\n";
    // One call, so that lines of several threads and processes do not mix.
    (void)!write(STDERR_FILENO, text.data(), text.size());
}

void end_run(int exit_code, const std::string& line) {
    std::fflush(nullptr);
    say(line);
    _exit(exit_code);
}

}  // namespace movie::phantom

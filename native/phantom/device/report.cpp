#include "phantom/device/report.h"

#include <unistd.h>

namespace movie::phantom {

void say(const std::string& line) {
    const std::string text = "phantom: " + line + "\n";
    // One call, so that lines of several threads and processes do not mix.
    (void)!write(STDERR_FILENO, text.data(), text.size());
}

void stop(const std::string& line) {
    say(line);
    _exit(kStopped);
}

}  // namespace movie::phantom

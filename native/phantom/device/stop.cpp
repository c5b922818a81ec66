#include "phantom/device/stop.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace movie::phantom {

void stop(const char* function, const char* detail) {
    std::string text = "phantom: ";
    text += function;
    text += " is not implemented: the phantom GPU has no such function";
    if (*detail) text += std::string(" (") + detail + ")";
    text +=
        ".\nphantom: the run stops here, since going on would show memory that no card shows. Leave out what calls it, "
        "or ";
    text += "report the function's name, the version of torch and the call that led to it.\n";
    std::fflush(nullptr);
    // One write, so that the lines of several processes do not mix.
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
    // Destructors and exit handlers of libraries in the middle of a call cannot be trusted to end.
    _exit(kNotImplemented);
}

}  // namespace movie::phantom

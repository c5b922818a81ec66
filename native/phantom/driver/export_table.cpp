// The driver's tables of private functions, which NVIDIA's own libraries ask for by number. The phantom has none.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>

#include "phantom/device/call.h"

using namespace movie::phantom;

namespace {

// NVRTC, which stays NVIDIA's own, does without them. A runtime that is linked into an extension does not, and its
// "named symbol not found" leads nobody to the reason.
void tell_who_cannot_start(const void* caller) {
    static std::atomic<bool> told = false;
    Dl_info library{};
    if (dladdr(caller, &library) == 0 || library.dli_fname == nullptr) return;
    const std::string_view path = library.dli_fname;
    if (path.find("libnvrtc") != path.npos || told.exchange(true)) return;
    const std::string text = "phantom: " + std::string(path) +
                             " asks for private functions of the driver: CUDA's runtime is linked into it, and cannot "
                             "start on a phantom. Use a build that shares PyTorch's libcudart.\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

PHANTOM_API int cuGetExportTable(const void** table, const void* identifier) {
    const void* caller = __builtin_return_address(0);
    return call("cuGetExportTable", Needs::machine, [&](Machine&, Lock&) {
        if (table == nullptr || identifier == nullptr) return kInvalidValue;
        *table = nullptr;
        tell_who_cannot_start(caller);
        return kNotFound;
    });
}

// Errors and versions of the runtime.
#include <atomic>

#include "phantom/device/call.h"
#include "phantom/device/version.h"
#include "phantom/device/wheel.h"
#include "phantom/runtime/abi.h"

using namespace movie::phantom;

namespace {

// The runtime that the program was built for stays loaded beside the phantom, unused but for what it is. Its version
// is a constant: no driver is asked. Without one, the phantom is the newest that it knows.
int runtime_version() {
    static std::atomic<int> known = 0;
    int version = known;
    if (version != 0) return version;
    if (auto* real = of_wheel<int(int*)>("libcudart.so", "cudaRuntimeGetVersion");
        real != nullptr && real(&version) == 0)
        known = version;
    return version != 0 ? version : 13000;
}

}  // namespace

namespace movie::phantom::runtime {
int major_version() { return runtime_version() / 1000; }
}  // namespace movie::phantom::runtime

namespace movie::phantom {
int driver_version() { return runtime_version() > 13000 ? runtime_version() : 13000; }
}  // namespace movie::phantom

PHANTOM_API int cudaRuntimeGetVersion(int* version) {
    *version = runtime_version();
    return kSuccess;
}

PHANTOM_API int cudaDriverGetVersion(int* version) {
    *version = Machine::instance() == nullptr ? 0 : driver_version();
    return kSuccess;
}

// Errors of a thread outlive nothing: they need no machine and are in no account.
PHANTOM_API int cudaGetLastError() {
    const int code = last_error();
    last_error() = kSuccess;
    return code;
}

PHANTOM_API int cudaPeekAtLastError() { return last_error(); }

PHANTOM_API const char* cudaGetErrorName(int code) {
    const CodeText* text = text_of(code);
    return text == nullptr ? "unrecognized error code" : text->runtime;
}

PHANTOM_API const char* cudaGetErrorString(int code) {
    const CodeText* text = text_of(code);
    return text == nullptr ? "unrecognized error code" : text->text;
}

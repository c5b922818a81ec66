// Errors and versions of the runtime.
#include <dlfcn.h>

#include <cstring>

#include "phantom/device/call.h"
#include "phantom/device/version.h"
#include "phantom/runtime/abi.h"

using namespace movie::phantom;

namespace {

// The runtime that the program was built for stays loaded beside the phantom, unused but for what it is. Its version
// is a constant: no driver is asked. Without one, the phantom is the newest that it knows.
int runtime_version() {
    static const int version = [] {
        int found = 0;
        using Function = int (*)(int*);
        if (auto* real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "cudaRuntimeGetVersion")); real != nullptr)
            (void)real(&found);
        return found > 0 ? found : 13000;
    }();
    return version;
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

PHANTOM_API int cudaProfilerStart() { return kSuccess; }
PHANTOM_API int cudaProfilerStop() { return kSuccess; }

// cudaGetDriverEntryPoint: how programs reach the driver without linking to it.
#include <dlfcn.h>

#include <string>

#include "phantom/device/call.h"
#include "phantom/device/own_library.h"

using namespace movie::phantom;

namespace {

// The driver keeps old versions of a function under its plain name; the newest one has the highest suffix. Programs ask
// for the plain name, with the version of CUDA that they were written for: since 11 that is the newest.
void* find_function(const std::string& name) {
    for (const char* suffix : {"_v3", "_v2", ""})
        if (void* found = own_symbol((name + suffix).c_str()); found != nullptr) return found;
    return nullptr;
}

int entry_point(const char* name, const char* symbol, void** function, int* status) {
    return runtime_call(name, Needs::machine, [&](Machine& machine, Lock&) {
        if (symbol == nullptr || function == nullptr) return kInvalidValue;
        *function = find_function(symbol);
        if (status != nullptr) *status = *function == nullptr ? 1 : 0;  // 1: no such symbol
        if (*function == nullptr) machine.log("no entry point " + std::string(symbol));
        return *function == nullptr && status == nullptr ? kNotFound : kSuccess;
    });
}

}  // namespace

PHANTOM_API int cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                                 int* status) {
    return entry_point("cudaGetDriverEntryPointByVersion", symbol, function, status);
}
PHANTOM_API int cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long, int* status) {
    return entry_point("cudaGetDriverEntryPoint", symbol, function, status);
}

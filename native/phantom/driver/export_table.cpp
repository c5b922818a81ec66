// The driver's tables of private functions, which NVIDIA's own libraries ask for by number. The phantom has none:
// NVRTC, which stays NVIDIA's, then does without the driver; a runtime that is linked into an extension says that it
// cannot start.
#include "phantom/device/call.h"

using namespace movie::phantom;

PHANTOM_API int cuGetExportTable(const void** table, const void* identifier) {
    return call("cuGetExportTable", Needs::machine, [&](Machine& machine, Lock&) {
        if (table == nullptr || identifier == nullptr) return kInvalidValue;
        *table = nullptr;
        machine.log("no private functions of the driver");
        return kNotFound;
    });
}

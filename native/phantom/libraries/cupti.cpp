// CUPTI, the profiler's library: what of it answers at all (native/phantom/symbols/harmless.txt has the rest) says that
// this process has no right to look into the card.
#include <cstddef>
#include <cstdint>

#include "phantom/device/wheel.h"
#include "phantom/libraries/export.h"

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidParameter = 1;
constexpr int kInsufficientPrivileges = 35;
constexpr std::uint32_t kVersionWithoutWheel = 24;

}  // namespace

PHANTOM_EXPORT int cuptiGetVersion(std::uint32_t* version) {
    if (!version) return kInvalidParameter;
    auto* real = movie::phantom::of_wheel<int(std::uint32_t*)>("libcupti.so", "cuptiGetVersion");
    if (real) return real(version);
    *version = kVersionWithoutWheel;
    return kSuccess;
}

PHANTOM_EXPORT int cuptiGetResultString(int result, const char** text) {
    if (!text) return kInvalidParameter;
    *text = result == kInsufficientPrivileges ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (a phantom GPU has no activity)"
                                              : "CUPTI_ERROR_UNKNOWN";
    return kSuccess;
}

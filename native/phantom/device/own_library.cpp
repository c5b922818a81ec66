#include "phantom/device/own_library.h"

#include <dlfcn.h>

namespace movie::phantom {

void* own_symbol(const char* name) {
    static void* self = [] {
        Dl_info info{};
        if (dladdr(reinterpret_cast<void*>(&own_symbol), &info) == 0) return static_cast<void*>(nullptr);
        return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    }();
    if (self == nullptr) return nullptr;
    // dlsym() also looks in what this library depends on (libstdc++, libc): none of them has CUDA's names.
    return dlsym(self, name);
}

}  // namespace movie::phantom

#include "phantom/device/wheel.h"

#include <dlfcn.h>
#include <link.h>

#include <string>

namespace movie::phantom {

namespace {

struct Search {
    std::string_view library;
    std::string path;
};

int visit(dl_phdr_info* object, std::size_t, void* argument) {
    auto& search = *static_cast<Search*>(argument);
    const std::string_view path = object->dlpi_name;
    const auto slash = path.rfind('/');
    const auto file = slash == path.npos ? path : path.substr(slash + 1);
    if (!file.starts_with(search.library)) return 0;
    search.path = path;
    return 1;
}

}  // namespace

void* function_of_wheel(std::string_view library, const char* function) {
    Search search{library, {}};
    dl_iterate_phdr(visit, &search);
    if (search.path.empty()) return nullptr;
    // Asked of that library alone: a search among all of them would find ours.
    void* loaded = dlopen(search.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!loaded) return nullptr;
    void* found = dlsym(loaded, function);
    dlclose(loaded);
    return found;
}

}  // namespace movie::phantom

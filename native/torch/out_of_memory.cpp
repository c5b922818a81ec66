#include "torch/out_of_memory.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstring>
#include <stdexcept>

#include "torch/source_location.h"

// Of the C++ ABI; <cxxabi.h> of libstdc++ does not declare them under these names.
extern "C" {
void* __cxa_allocate_exception(std::size_t size) noexcept;
void __cxa_throw(void* object, void* type, void (*destructor)(void*)) __attribute__((noreturn));
}

namespace movie::torch_side {

namespace {

// c10::OutOfMemoryError without its header: its constructor, its type and its destructor, by their mangled names. It
// adds nothing to c10::Error but its type. Older libraries export the constructor of the base only; then the pointer to
// the table of virtual functions, the first word of the object, is set as the compiler would.
struct TorchException {
    void* constructor = nullptr;
    bool old_string = false;  // what the constructor takes
    void (*destroy)(void*) = nullptr;
    void* type = nullptr;
    void* table = nullptr;  // null: the constructor sets it
    [[nodiscard]] bool complete() const { return constructor != nullptr && destroy != nullptr && type != nullptr; }
};

// Far more than c10::Error has had in any version (it holds two strings, a vector and a few pointers).
constexpr std::size_t kRoom = 1024;

void* symbol(const char* name) {
    // Torch's libraries are loaded without their symbols being global; libtorch_cuda brings all others.
    for (const char* library : {"libc10.so", "libc10_cuda.so", "libtorch_python.so"}) {
        void* const handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
        if (handle == nullptr) continue;
        void* const found = dlsym(handle, name);
        dlclose(handle);
        if (found != nullptr) return found;
    }
    return nullptr;
}

TorchException look_up() {
    struct Constructor {
        const char* name;
        bool of_base, old_string;
    };
    // The first that there is.
    constexpr Constructor kConstructors[] = {
        {"_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", false,
         false},
        {"_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", true, false},
        {"_ZN3c105ErrorC1ENS_14SourceLocationESs", true, true},
    };
    TorchException found;
    found.type = symbol("_ZTIN3c1016OutOfMemoryErrorE");
    void* const table = symbol("_ZTVN3c1016OutOfMemoryErrorE");
    if (table == nullptr) return found;
    // The table begins with the offset to the top and the type; then come the two destructors.
    auto** const entries = static_cast<void**>(table) + 2;
    found.destroy = reinterpret_cast<void (*)(void*)>(entries[0]);
    for (const Constructor& constructor : kConstructors) {
        found.constructor = symbol(constructor.name);
        if (found.constructor == nullptr) continue;
        found.old_string = constructor.old_string;
        if (constructor.of_base) found.table = static_cast<void*>(entries);
        break;
    }
    return found;
}

void construct(const TorchException& torch, void* object, const std::string& text) {
    using Construct = void (*)(void*, SourceLocation, std::string);
    const SourceLocation where{.function = "malloc", .file = "movie", .line = 0};
    if (torch.old_string)
        construct_with_old_string(torch.constructor, object, where, text.c_str());
    else
        reinterpret_cast<Construct>(torch.constructor)(object, where, text);
}

TorchException& exception() {
    static TorchException found = look_up();
    return found;
}

}  // namespace

bool find_torch_exception() { return exception().complete(); }

void throw_out_of_memory(const std::string& report) {
    const TorchException& torch = exception();
    if (!torch.complete()) throw std::runtime_error(report);
    void* const object = __cxa_allocate_exception(kRoom);
    construct(torch, object, report);
    if (torch.table != nullptr) std::memcpy(object, &torch.table, sizeof torch.table);
    __cxa_throw(object, torch.type, torch.destroy);
}

}  // namespace movie::torch_side

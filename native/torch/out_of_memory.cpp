#include "torch/out_of_memory.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <typeinfo>

// Of the C++ ABI; <cxxabi.h> of libstdc++ does not declare them under these names.
extern "C" {
void* __cxa_allocate_exception(std::size_t size) noexcept;
void __cxa_throw(void* object, void* type, void (*destructor)(void*)) __attribute__((noreturn));
}

namespace movie::torch_side {

namespace {

// c10::SourceLocation, which is passed by value.
struct SourceLocation {
    const char* function;
    const char* file;
    std::uint32_t line;
};

// c10::OutOfMemoryError without its header: its constructor, its type and its destructor, by their mangled names. It
// adds nothing to c10::Error but its type. Older libraries export the constructor of the base only; then the pointer to
// the table of virtual functions, the first word of the object, is set as the compiler would.
struct TorchException {
    void (*construct)(void*, SourceLocation, std::string) = nullptr;
    void (*destroy)(void*) = nullptr;
    void* type = nullptr;
    void* table = nullptr;  // null: the constructor sets it
    [[nodiscard]] bool complete() const { return construct != nullptr && destroy != nullptr && type != nullptr; }
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

template <class Function>
Function function(const char* name) {
    return reinterpret_cast<Function>(symbol(name));
}

TorchException look_up() {
    using Construct = void (*)(void*, SourceLocation, std::string);
    using Destroy = void (*)(void*);
    constexpr const char* kConstructor =
        "_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
    constexpr const char* kBaseConstructor =
        "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
    constexpr const char* kTable = "_ZTVN3c1016OutOfMemoryErrorE";
    TorchException found;
    found.type = symbol("_ZTIN3c1016OutOfMemoryErrorE");
    void* const table = symbol(kTable);
    if (table != nullptr) {
        // The table begins with the offset to the top and the type; then come the two destructors.
        auto** const entries = static_cast<void**>(table) + 2;
        found.destroy = reinterpret_cast<Destroy>(entries[0]);
        found.construct = function<Construct>(kConstructor);
        if (found.construct == nullptr) {
            found.construct = function<Construct>(kBaseConstructor);
            found.table = static_cast<void*>(entries);
        }
    }
    return found;
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
    torch.construct(object, {.function = "malloc", .file = "movie", .line = 0}, report);
    if (torch.table != nullptr) std::memcpy(object, &torch.table, sizeof torch.table);
    __cxa_throw(object, torch.type, torch.destroy);
}

}  // namespace movie::torch_side

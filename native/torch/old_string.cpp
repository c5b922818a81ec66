// Wheels of PyTorch before 2.7 were built with the std::string that GCC had before version 5, which is another type.
// This file alone is compiled with that one.
#define _GLIBCXX_USE_CXX11_ABI 0

#include <string>

#include "torch/source_location.h"

namespace movie::torch_side {

void construct_with_old_string(void* constructor, void* object, SourceLocation where, const char* text) {
    using Construct = void (*)(void*, SourceLocation, std::string);
    reinterpret_cast<Construct>(constructor)(object, where, text);
}

}  // namespace movie::torch_side

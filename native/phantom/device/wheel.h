// The libraries of NVIDIA that came with torch. They are loaded, since torch links to them, and never used, but for the
// few functions that only tell facts about themselves: those answer for the version that the wheel was built with.
#pragma once

#include <string_view>

namespace movie::phantom {

// The function in the loaded library whose file name begins so ("libcudnn.so"), or null where none is loaded.
void* function_of_wheel(std::string_view library, const char* function);

template <typename Function>
Function* of_wheel(std::string_view library, const char* function) {
    return reinterpret_cast<Function*>(function_of_wheel(library, function));
}

}  // namespace movie::phantom

// c10::SourceLocation, which torch's exceptions are given by value, and the way to construct those of older wheels.
#pragma once

#include <cstdint>

namespace movie::torch_side {

struct SourceLocation {
    const char* function;
    const char* file;
    std::uint32_t line;
};

// Calls the constructor of an exception that takes its text as the std::string of before GCC 5.
void construct_with_old_string(void* constructor, void* object, SourceLocation where, const char* text);

}  // namespace movie::torch_side

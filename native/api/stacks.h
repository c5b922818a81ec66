// Where in a Python program memory was asked for. Each stack that was seen has a number, so that the history of an
// allocator holds numbers; names of files and functions are looked up when somebody wants to read them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace movie {

// The number of the calling thread's Python stack. Takes Python's lock, as PyTorch's own recording does. 0: the thread
// runs no Python, or the interpreter is shutting down.
std::uint64_t current_stack();

// The frames of a stack, innermost first, each as (code object, line). Pre: current_stack() returned the number.
nanobind::list stack_frames(std::uint64_t number);

}  // namespace movie

// Functions of this library by name, whatever other libraries of the process call theirs.
#pragma once

namespace movie::phantom {

// Null if the library exports no such function.
void* own_symbol(const char* name);

}  // namespace movie::phantom

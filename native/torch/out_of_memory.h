// How a request that cannot be served reaches a Python program: as torch.OutOfMemoryError, which many programs catch.
#pragma once

#include <string>

namespace movie::torch_side {

// Looks up, in the libraries of PyTorch that this process has loaded, what is needed to throw its exception; true where
// it was found. Without it throw_out_of_memory() throws a std::runtime_error, which torch turns into RuntimeError.
bool find_torch_exception();

[[noreturn]] void throw_out_of_memory(const std::string& report);

}  // namespace movie::torch_side

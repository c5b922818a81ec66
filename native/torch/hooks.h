// What torch's pluggable allocator calls. None takes Python's lock or calls Python, but for what a recording of the
// history with stacks does (record_history).
#pragma once

#include <cstddef>

#include "torch/pools.h"

namespace movie::torch_side {

// Never null, for torch does not look; but for no bytes, where tensors of PyTorch's own allocator have no address
// either. Throws what throw_out_of_memory() throws, cuda::Unavailable or std::runtime_error.
void* allocate(std::ptrdiff_t size, int device, void* stream);
// `size` and `stream` are ignored: the allocator knows better. Null and strange addresses are ignored too.
void release(void* address, std::size_t size, int device, void* stream);
// The same for a block of any device.
void release_anywhere(void* address);
// Of the block that begins there; -1: none does.
int device_of(void* address);
void empty_cache();
void set_fraction(double fraction, int device);
// The beginning of the block and its size. `address` is a block's.
void* base_of(void* address, std::size_t* size);
void record_stream(void* address, void* stream);
// These three pass C++ objects by value, as the same compiler ABI on both sides has them.
void open_pool(int device, TorchPoolId id, StreamFilter filter);
void close_pool(int device, TorchPoolId id);
void release_pool(int device, TorchPoolId id);

// Called, in the order in which they came, before a request fails; outside of all locks.
using OutOfMemoryObserver = std::function<void(int device, Bytes wanted, Bytes reserved, Bytes free)>;
void observe_out_of_memory(OutOfMemoryObserver observer);

}  // namespace movie::torch_side

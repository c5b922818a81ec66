// What the libraries need of the card: everything they do is work on a stream.
#pragma once

#include <cstddef>

namespace movie::phantom {

using Stream = void*;  // cudaStream_t

// One kernel in the stream's order. False if the card refuses it.
[[nodiscard]] bool launch(Stream stream);
// A copy within the card in the stream's order: really done where memory has bytes.
[[nodiscard]] bool copy_on_card(void* to, const void* from, std::size_t bytes, Stream stream);
// Rows of `width` bytes, in the direction that the pointers tell.
[[nodiscard]] bool copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                             std::size_t width, std::size_t rows, Stream stream);
// Waits for the stream's work.
[[nodiscard]] bool wait_for(Stream stream);
// The device that is current on this thread; -1 if there is none.
int current_device();
// Memory of the current device, outside the reach of torch's allocator. Null if there is none left.
void* allocate(std::size_t bytes);
[[nodiscard]] bool release(void* address);

}  // namespace movie::phantom

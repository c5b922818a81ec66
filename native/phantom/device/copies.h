// Copies and fills: what they touch, when the program has to wait for them, and what they do to bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "phantom/device/machine.h"

namespace movie::phantom {

// Rows of bytes; one row if `height` is 1.
struct Block {
    void* pointer = nullptr;
    std::size_t width = 0;
    std::size_t height = 1;
    std::size_t pitch = 0;  // bytes from a row to the next

    [[nodiscard]] std::size_t span() const { return width == 0 || height == 0 ? 0 : (height - 1) * pitch + width; }
};

struct Side {
    Block block;
    bool device = false;  // device memory, else the host's
    int owner = -1;       // the device that must own it; -1: any that the stream's device reaches
};

// Without bytes mode, copies to the host of up to this many bytes write zeros, larger ones nothing.
constexpr std::size_t kMostZeros = 64 * 1024;

// Queues a copy as a driver does: a host side that is not pinned makes the program wait, or is read at once.
// `wait`: the program waits in any case. Returns a code.
int copy_block(Machine& machine, std::unique_lock<std::mutex>& lock, Stream& stream, const char* what, const Side& to,
               const Side& from, bool wait);

// Queues a fill with a value of `unit` bytes (1, 2 or 4); widths are in bytes. Returns a code.
int set_block(Machine& machine, Stream& stream, const char* what, const Block& to, std::uint32_t value, unsigned unit);

}  // namespace movie::phantom

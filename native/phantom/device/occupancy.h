// How many blocks of a kernel a multiprocessor holds. What kernels need in registers is in their code, which the
// phantom does not read: all are taken to need the same, moderate number.
#pragma once

#include <algorithm>
#include <cstddef>

#include "phantom/device/card.h"

namespace movie::phantom {

constexpr int kRegistersOfKernels = 32;  // a thread

inline int resident_blocks(const Card& card, int threads, std::size_t shared) {
    const int warps = (threads + 31) / 32;
    int blocks = std::min(card.blocks_per_multiprocessor, card.threads_per_multiprocessor / (warps * 32));
    blocks = std::min(blocks, card.registers / (warps * 32 * kRegistersOfKernels));
    const int needed = static_cast<int>(shared) + (card.major >= 8 ? card.shared_reserved_per_block : 0);
    if (needed > 0) blocks = std::min(blocks, card.shared_per_multiprocessor / needed);
    return std::max(blocks, 0);
}

}  // namespace movie::phantom

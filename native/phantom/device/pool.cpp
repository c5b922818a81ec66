#include "phantom/device/pool.h"

#include <algorithm>
#include <iterator>

namespace movie::phantom {

bool Pool::deallocate(Address address, const void* stream, Place until) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || found->second.free) return false;
    used.now -= found->second.size;
    found->second.free = true;
    found->second.stream = stream;
    found->second.until = until;
    join(found);
    return true;
}

void Pool::join(std::map<Address, Block>::iterator block) {
    // Neighbours become one with the later of the two orders. They stay apart where different streams freed them, and
    // never reach from one step of the pool into the next.
    const auto joins = [&](auto left, auto right) {
        return left->second.free && right->second.free && left->second.stream == right->second.stream &&
               left->first + left->second.size == right->first && !steps_.contains(right->first);
    };
    if (const auto next = std::next(block); next != blocks_.end() && joins(block, next)) {
        block->second.size += next->second.size;
        block->second.until = std::max(block->second.until, next->second.until);
        blocks_.erase(next);
    }
    if (block == blocks_.begin()) return;
    if (const auto before = std::prev(block); joins(before, block)) {
        before->second.size += block->second.size;
        before->second.until = std::max(before->second.until, block->second.until);
        blocks_.erase(block);
    }
}

}  // namespace movie::phantom

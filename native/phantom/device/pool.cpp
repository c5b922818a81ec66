#include "phantom/device/pool.h"

#include <algorithm>
#include <iterator>

namespace movie::phantom {

bool Pool::deallocate(Address address, std::uint64_t stream, Place until) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || found->second.free) return false;
    used.now -= found->second.size;
    found->second.free = true;
    found->second.stream = stream;
    found->second.until = until;
    join_next(found);
    if (found != blocks_.begin()) join_next(std::prev(found));
    return true;
}

void Pool::join_next(std::map<Address, Block>::iterator block) {
    const auto next = std::next(block);
    if (next == blocks_.end() || !block->second.free || !next->second.free) return;
    if (block->second.stream != next->second.stream || block->first + block->second.size != next->first ||
        steps_.contains(next->first))
        return;
    block->second.size += next->second.size;
    block->second.until = std::max(block->second.until, next->second.until);
    blocks_.erase(next);
}

}  // namespace movie::phantom

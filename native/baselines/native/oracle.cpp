#include "baselines/native/oracle.h"

namespace movie {

void NativeOracle::start_segment(Address address, Bytes size, Stream stream, PoolId pool, bool small) {
    NativePool& owner = heap_.pool(pool);
    FreeList& list = heap_.list(small ? owner.small : owner.large, stream);
    tail_ = heap_.add_segment(list, address, size);
    segments_[address] = &list;
}

bool NativeOracle::start_block(Address address, Bytes size) {
    if (tail_ == nullptr || address < tail_->address || address + size > tail_->address + tail_->size) return false;
    Block* block = heap_.occupy(heap_.cut(tail_, address), size);
    live_[address] = block;
    tail_ = block->next;
    return true;
}

void NativeOracle::segment_alloc(Address address, Bytes size) {
    ++counts_.segments;
    announced_ = Segment{.address = address, .size = size};
}

void NativeOracle::segment_free(Address address) {
    const auto segment = segments_.find(address);
    Block* block = segment == segments_.end() ? nullptr : heap_.free_block_at(*segment->second, address);
    if (block == nullptr || block->is_split()) {
        ++counts_.lost;
        return;
    }
    heap_.remove_segment(block);
    segments_.erase(address);
}

NativeOracle::Guess NativeOracle::alloc(Address address, Bytes bytes, Stream stream, PoolId pool) {
    ++counts_.allocations;
    const Bytes size = settings().round_size(bytes);
    FreeList& list = heap_.list(heap_.pool(pool).bin_for(size), stream);
    Block* block = heap_.find(list, size);
    Guess guess;
    if (block != nullptr)
        guess.expected = {
            .address = block->address, .size = block->size, .after = block->prev == nullptr ? 0 : block->prev->address};
    if (announced_) {
        if (block != nullptr) ++counts_.unexpected_segments;
        if (announced_->size != settings().segment_size(size)) ++counts_.wrong_segment_sizes;
        guess.right = block == nullptr;
        block = heap_.add_segment(list, announced_->address, announced_->size);
        segments_[announced_->address] = &list;
        announced_.reset();
    } else if (block == nullptr) {
        ++counts_.missing_segments;
    } else {
        guess.right = block->address == address;
    }
    if (block == nullptr || block->address != address) {
        ++counts_.wrong_addresses;
        guess.right = false;
        block = heap_.free_block_at(list, address);
        if (block == nullptr || block->address + block->size < address + size) {
            ++counts_.lost;
            return guess;
        }
        block = heap_.cut(block, address);
    }
    live_[address] = heap_.take(block, size);
    return guess;
}

void NativeOracle::free(Address address) {
    const auto found = live_.find(address);
    if (found == live_.end()) return;  // lost when it was allocated, and counted there
    heap_.give_back(found->second);
    live_.erase(found);
}

}  // namespace movie

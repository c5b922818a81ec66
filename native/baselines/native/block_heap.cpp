#include "baselines/native/block_heap.h"

#include <iterator>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace movie {

NativePool& BlockHeap::pool(PoolId id) {
    const auto [at, is_new] = pools_.try_emplace(id);
    if (is_new) {
        at->second.small.pool = at->second.large.pool = id;
        at->second.small.kind = PoolKind::small;
        at->second.large.kind = PoolKind::large;
    }
    return at->second;
}

FreeList& BlockHeap::list(Bin& bin, Stream stream) {
    const auto handle = static_cast<std::uint64_t>(stream);
    const auto at = bin.lists.find(handle);
    if (at != bin.lists.end()) return at->second;
    return bin.lists
        .emplace(std::piecewise_construct, std::forward_as_tuple(handle), std::forward_as_tuple(&bin, stream, &nodes_))
        .first->second;
}

Block* BlockHeap::find(FreeList& list, Bytes size) const {
    auto at = list.blocks.lower_bound({.size = size});
    if (at == list.blocks.end()) return nullptr;
    if (settings_.expandable_segments) {
        // Best fit by the size that a block can grow to. PyTorch walks on only while that falls.
        for (auto next = std::next(at); next != list.blocks.end(); at = next++)
            if (expandable_size(*next->block) >= expandable_size(*at->block)) break;
    }
    // Oversized blocks are not split, so small requests leave them alone, and large ones take only a close match.
    if (size < settings_.max_split_size) {
        if (at->size >= settings_.max_split_size) return nullptr;
    } else if (at->size >= size + settings_.max_non_split_rounding) {
        return nullptr;
    }
    return at->block;
}

Bytes BlockHeap::expandable_size(const Block& block) {
    const bool can_grow = block.next != nullptr && block.next->state == Block::State::unmapped;
    return block.size + (can_grow ? block.next->size : 0);
}

bool BlockHeap::worth_splitting(const Block& block, Bytes size) const {
    const Bytes rest = block.size - size;
    if (block.list->bin->small() || settings_.expandable_segments) return rest >= kMinBlockSize;
    return size < settings_.max_split_size && rest > kSmallSize;
}

Block* BlockHeap::split(Block* block, Bytes size) {
    Block* rest = new_block();
    rest->address = block->address + size;
    rest->size = block->size - size;
    rest->list = block->list;
    rest->segment = block->segment;
    rest->state = block->state;
    rest->prev = block;
    rest->next = block->next;
    if (rest->next != nullptr) rest->next->prev = rest;
    block->next = rest;
    block->size = size;
    return rest;
}

void BlockHeap::leave_rest(Block* block, Bytes size) {
    Block* rest = split(block, size);
    std::swap(rest->number, block->number);  // to PyTorch the rest is the old block, and what is taken a new one
    insert(rest);
}

Block* BlockHeap::take(Block* block, Bytes size) {
    erase(block);
    if (worth_splitting(*block, size)) leave_rest(block, size);
    block->state = Block::State::live;
    return block;
}

Block* BlockHeap::give_back(Block* block) {
    const auto is_free = [](const Block* other) { return other != nullptr && other->state == Block::State::free; };
    block->state = Block::State::free;
    for (Block* neighbour : {block->prev, block->next}) {
        if (!is_free(neighbour)) continue;
        erase(neighbour);
        join(block, neighbour);
    }
    insert(block);
    return block;
}

void BlockHeap::join(Block* block, Block* neighbour) {
    if (block->prev == neighbour) {
        block->address = neighbour->address;
        block->prev = neighbour->prev;
        if (block->prev != nullptr) block->prev->next = block;
    } else {
        block->next = neighbour->next;
        if (block->next != nullptr) block->next->prev = block;
    }
    block->size += neighbour->size;
    delete_block(neighbour);
}

Block* BlockHeap::add_segment(FreeList& list, Address address, Bytes size) {
    Block* block = add_unmapped_segment(list, address, size);
    block->state = Block::State::free;
    insert(block);
    return block;
}

Block* BlockHeap::add_unmapped_segment(FreeList& list, Address address, Bytes size) {
    Block* block = new_block();
    block->address = address;
    block->size = size;
    block->list = &list;
    block->segment = ++segments_;
    block->state = Block::State::unmapped;
    ++list.bin->segments;
    return block;
}

void BlockHeap::remove_segment(Block* block) {
    const bool unused = block->state == Block::State::free || block->state == Block::State::unmapped;
    if (block->is_split() || !unused) throw std::logic_error("not a whole free segment");
    if (block->state == Block::State::free) erase(block);
    --block->list->bin->segments;
    delete_block(block);
}

Block* BlockHeap::free_block_at(FreeList& list, Address address) const {
    for (const FreeKey& key : list.blocks)
        if (key.address <= address && address < key.address + key.size) return key.block;
    return nullptr;
}

Block* BlockHeap::cut(Block* block, Address address) {
    if (address == block->address) return block;
    erase(block);
    Block* rest = split(block, address - block->address);
    insert(block);
    insert(rest);
    return rest;
}

Block* BlockHeap::occupy(Block* block, Bytes size) {
    erase(block);
    if (block->size > size) leave_rest(block, size);
    block->state = Block::State::live;
    return block;
}

void BlockHeap::insert(Block* block) {
    FreeList& list = *block->list;
    block->freed_at = list.bin->searches;
    list.blocks.insert(key(block));
    if (block->is_split()) {
        list.split_bytes += block->size;
        split_bytes_[static_cast<std::size_t>(list.bin->kind)] += block->size;
        ++split_blocks_[static_cast<std::size_t>(list.bin->kind)];
    } else {
        list.whole_bytes += block->size;
    }
}

// A free block has no free neighbour, so whether it is split does not change while it lies in its list.
void BlockHeap::erase(Block* block) {
    FreeList& list = *block->list;
    list.blocks.erase(key(block));
    if (block->is_split()) {
        list.split_bytes -= block->size;
        split_bytes_[static_cast<std::size_t>(list.bin->kind)] -= block->size;
        --split_blocks_[static_cast<std::size_t>(list.bin->kind)];
    } else {
        list.whole_bytes -= block->size;
    }
}

Block* BlockHeap::new_block() {
    Block* block = nullptr;
    if (unused_.empty()) {
        block = &storage_.emplace_back();
    } else {
        block = unused_.back();
        unused_.pop_back();
        *block = Block{};
    }
    block->number = ++blocks_;
    return block;
}

void BlockHeap::delete_block(Block* block) { unused_.push_back(block); }

}  // namespace movie

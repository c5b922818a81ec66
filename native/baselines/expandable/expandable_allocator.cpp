#include "baselines/expandable/expandable_allocator.h"

#include <algorithm>
#include <stdexcept>

namespace movie {
namespace {

constexpr Bytes kSmallPage = 2 * kMiB;
constexpr Bytes kMostAddresses = 1024 * kGiB;

NativeSettings expandable(NativeSettings settings) {
    settings.expandable_segments = true;
    return settings;
}

bool is_allocatable(const Block* block) {
    return block != nullptr && (block->state == Block::State::free || block->state == Block::State::unmapped);
}

bool is_unmapped(const Block* block) { return block != nullptr && block->state == Block::State::unmapped; }

}  // namespace

ExpandableAllocator::ExpandableAllocator(Driver& driver, NativeSettings settings)
    : NativeAllocator(driver, expandable(settings)) {
    if (kSmallPage % driver.granularity() != 0 || settings.large_segment_size % driver.granularity() != 0)
        throw std::invalid_argument(
            "expandable: pages of 2 MiB and of large_segment_size must be multiples of the "
            "driver's granularity, " +
            std::to_string(driver.granularity()) + " bytes");
}

Block* ExpandableAllocator::grow(const Search& wanted) {
    Block* block = find_room(*wanted.list, wanted.size);
    if (block == nullptr) return nullptr;
    if (is_unmapped(block) && !map(block, std::min(block->size, wanted.size))) return nullptr;
    while (block->size < wanted.size) {
        Block* next = block->next;  // unmapped; it takes in the block before it
        if (!map(next, std::min(next->size, wanted.size - block->size))) return nullptr;
        block = next;
    }
    return block;
}

Block* ExpandableAllocator::find_room(FreeList& list, Bytes size) {
    const auto has_room = [size](const Block* block) {
        Bytes room = 0;
        for (; room < size && is_allocatable(block); block = block->next) room += block->size;
        return room >= size;
    };
    for (const auto& [address, block] : unmapped_[&list]) {
        Block* first = is_allocatable(block->prev) ? block->prev : block;
        if (has_room(first)) return first;
    }
    return new_segment(list, size);
}

Block* ExpandableAllocator::new_segment(FreeList& list, Bytes size) {
    const Bytes page = list.bin->small() ? kSmallPage : heap_.settings().large_segment_size;
    const Bytes card = driver_.memory_info().total;
    const Bytes length = round_up(std::min(card + card / 8, kMostAddresses), page);
    if (length < size) return nullptr;
    const Outcome<Address> address = driver_.reserve(length);
    if (!address.ok()) return nullptr;
    Block* block = heap_.add_unmapped_segment(list, address.value, length);
    segments_.try_emplace(block->segment, driver_, address.value, length, page, list.stream);
    unmapped_[&list].emplace(block->address, block);
    statistics_.segment.increase(list.bin->kind, 1);
    return block;
}

bool ExpandableAllocator::map(Block* block, Bytes size) {
    ExpandableSegment& segment = segments_.at(block->segment);
    const ExpandableSegment::Pages pages = segment.around(block->address, size);
    const Bytes held = segment.held();
    if (cap_ != 0 && reserved() + segment.missing(pages) > cap_) return false;
    const bool mapped = segment.map(pages);
    note_change(block->kind(), held, segment.held());
    if (!mapped) return false;

    auto& unmapped = unmapped_[block->list];
    unmapped.erase(block->address);
    const Bytes length = pages.count() * segment.page();
    if (length < block->size) {
        Block* rest = heap_.split(block, length);
        unmapped.emplace(rest->address, rest);
    }
    heap_.give_back(block);
    return true;
}

bool ExpandableAllocator::begin_releases() {
    for (auto& [number, segment] : segments_) {
        const Bytes held = segment.held();
        segment.sweep();
        note_change(segment.page() == kSmallPage ? PoolKind::small : PoolKind::large, held, segment.held());
    }
    return true;
}

bool ExpandableAllocator::release(Block* block) {
    ExpandableSegment& segment = segments_.at(block->segment);
    const ExpandableSegment::Pages pages = segment.inside(block->address, block->size);
    if (pages.count() == 0) return false;
    const Bytes held = segment.held();
    const std::size_t end = segment.unmap(pages);
    note_change(block->kind(), held, segment.held());
    if (end == pages.first) return false;

    heap_.erase(block);
    const Address from = segment.address_of(pages.first), to = segment.address_of(end);
    if (from > block->address) {  // what lies before the first whole page stays
        Block* rest = heap_.split(block, from - block->address);
        heap_.insert(block);
        block = rest;
    }
    if (to < block->address + block->size) heap_.insert(heap_.split(block, to - block->address));
    block->state = Block::State::unmapped;
    auto& unmapped = unmapped_[block->list];
    for (Block* neighbour : {block->prev, block->next}) {
        if (!is_unmapped(neighbour)) continue;
        unmapped.erase(neighbour->address);
        heap_.join(block, neighbour);
    }
    if (block->is_split() || segment.held() > 0 ||
        driver_.free_address(segment.address(), segment.size()) != Status::ok) {
        unmapped.emplace(block->address, block);
        return true;
    }
    statistics_.segment.decrease(block->kind(), 1);
    segments_.erase(block->segment);
    heap_.remove_segment(block);
    return true;
}

void ExpandableAllocator::note_change(PoolKind kind, Bytes held_before, Bytes held_now) {
    if (held_now > held_before) note_reserved(kind, held_now - held_before);
    if (held_now < held_before) note_returned(kind, held_before - held_now);
}

}  // namespace movie

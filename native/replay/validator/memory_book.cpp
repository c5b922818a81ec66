#include "replay/validator/memory_book.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace movie::validation {

UsesTable::Id UsesTable::add(Uses uses) {
    if (uses.empty()) return 0;
    Id id = static_cast<Id>(entries_.size());
    if (unused_.empty()) {
        entries_.emplace_back();
    } else {
        id = unused_.back();
        unused_.pop_back();
    }
    entries_[id] = {.uses = std::move(uses), .holders = 0};
    return id;
}

void UsesTable::drop(Id id) {
    if (id != 0 && --entries_[id].holders == 0) unused_.push_back(id);
}

std::size_t Physical::piece_at(Bytes offset) const {
    if (pieces.size() == 1) return 0;
    const auto behind = std::upper_bound(pieces.begin(), pieces.end(), offset,
                                         [](Bytes value, const Piece& piece) { return value < piece.begin; });
    return static_cast<std::size_t>(behind - pieces.begin()) - 1;
}

void MemoryBook::create(Handle handle, Bytes size) {
    Physical& physical = handles_[handle];
    physical.handle = handle;
    physical.size = size;
    held_ += size;
}

Physical* MemoryBook::find(Handle handle) {
    const auto found = handles_.find(handle);
    return found == handles_.end() ? nullptr : &found->second;
}

void MemoryBook::forget(Physical& physical) {
    held_ -= physical.size;
    for (const Physical::Piece& piece : physical.pieces) uses_.drop(piece.uses);
    handles_.erase(Handle{physical.handle});  // a copy: the key must outlive the entry
}

void MemoryBook::release(Physical& physical) {
    physical.released = true;
    if (physical.mapped == 0) forget(physical);
}

void MemoryBook::map(Address address, Bytes size, Physical& physical) {
    mappings_[address] = {.size = size, .physical = &physical, .accessible = false, .uses = {}};
    ++physical.mapped;
}

void MemoryBook::unmap(Address address, Bytes size) {
    auto mapping = mappings_.lower_bound(address);
    while (mapping != mappings_.end() && mapping->first < address + size) {
        Physical& physical = *mapping->second.physical;
        mapping = mappings_.erase(mapping);
        if (--physical.mapped == 0 && physical.released) forget(physical);
    }
}

void MemoryBook::set_access(Address address, Bytes size) {
    for (auto mapping = mappings_.lower_bound(address); mapping != mappings_.end() && mapping->first < address + size;
         ++mapping)
        mapping->second.accessible = true;
}

void MemoryBook::malloc(Address address, Bytes size) {
    Physical& physical = plain_[address];
    physical.size = size;
    map(address, size, physical);
    mappings_[address].accessible = true;
    held_ += size;
}

void MemoryBook::mfree(Address address) {
    const auto found = plain_.find(address);
    if (found == plain_.end()) return;
    held_ -= found->second.size;
    for (const Physical::Piece& piece : found->second.pieces) uses_.drop(piece.uses);
    mappings_.erase(address);
    plain_.erase(found);
}

MemoryBook::Mappings::iterator MemoryBook::first_over(Address address) {
    auto mapping = mappings_.upper_bound(address);
    if (mapping != mappings_.begin()) {
        const auto before = std::prev(mapping);
        if (before->first + before->second.size > address) return before;
    }
    return mapping;
}

bool MemoryBook::in_one_unit(Address address, Bytes size) const {
    if (auto range = reservations_.upper_bound(address); range != reservations_.begin()) {
        --range;
        if (address + size <= range->first + range->second) return true;
    }
    if (auto mapping = mappings_.upper_bound(address); mapping != mappings_.begin()) {
        --mapping;
        return mapping->second.physical->handle == 0 && address + size <= mapping->first + mapping->second.size;
    }
    return false;
}

void MemoryBook::take(Physical& physical, Bytes begin, Bytes end, Address block) {
    auto& pieces = physical.pieces;
    ++physical.live;
    const Physical::Piece taken{.begin = begin, .block = block, .uses = 0};
    if (pieces.size() == 1 && begin == 0 && end == physical.size) {
        uses_.drop(pieces[0].uses);
        pieces[0] = taken;
        return;
    }
    const std::size_t first = physical.piece_at(begin);
    const std::size_t last = physical.piece_at(end - 1);
    const bool head = pieces[first].begin < begin;
    const bool tail = end < physical.end_of(last);
    Physical::Piece rest = pieces[last];
    rest.begin = end;
    // The pieces from `first` to `last` make way for: what is left of the first, the taken one, what is left of the
    // last.
    if (tail) uses_.hold(rest.uses);
    for (std::size_t i = first + (head ? 1 : 0); i <= last; ++i) uses_.drop(pieces[i].uses);
    const std::size_t from = first + (head ? 1 : 0);
    const std::size_t old_count = last + 1 - from;
    const std::size_t new_count = tail ? 2 : 1;
    const auto at = pieces.begin() + static_cast<std::ptrdiff_t>(from);
    if (old_count > new_count)
        pieces.erase(at, at + static_cast<std::ptrdiff_t>(old_count - new_count));
    else if (old_count < new_count)
        pieces.insert(at, new_count - old_count, Physical::Piece{});
    pieces[from] = taken;
    if (tail) pieces[from + 1] = rest;
}

void MemoryBook::give(Physical& physical, Bytes begin, UsesTable::Id uses) {
    --physical.live;
    Physical::Piece& piece = physical.pieces[physical.piece_at(begin)];
    piece.block = 0;
    piece.uses = uses;
    uses_.hold(uses);
}

}  // namespace movie::validation

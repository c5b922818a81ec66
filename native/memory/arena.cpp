#include "memory/arena.h"

#include <algorithm>
#include <bit>

namespace movie {

Status Arena::extend(Bytes bytes) {
    const Bytes grain = table_.grain();
    const Bytes least = round_up(bytes, grain) + grain;  // a grain more, since the range may begin inside one
    Outcome<Address> range;
    Bytes size = std::max(round_up(span_, grain) + grain, least);
    for (;; size = std::max(least, round_up(size / 2, grain))) {
        range = driver_.reserve(size);
        if (range.ok() || range.status != Status::out_of_addresses || size == least) break;
    }
    if (!range.ok()) return range.status;
    const Address base = round_up(range.value, grain);
    const Address end = round_down(range.value + size, grain);
    table_.add({.reserved = range.value, .reserved_size = size, .base = base, .end = end});
    holes_.emplace(base, end);
    bases_.push_back(base);
    return Status::ok;
}

Status Arena::fill(Address begin, Address end, std::uint32_t most, bool may_unmap, std::uint64_t& pages) {
    const Bytes grain = table_.grain();
    std::vector<HomePage> slots;
    slots.reserve((end - begin) / grain);
    std::uint64_t count = 0;
    {
        Transaction transaction(driver_, debris_, may_unmap);
        for (Address at = begin; at < end; ++count) {
            const auto left = static_cast<std::uint32_t>(std::min<Bytes>((end - at) / grain, most));
            const std::uint32_t grains = std::bit_floor(left);
            const auto handle = transaction.create(grains * grain);
            if (!handle.ok()) return handle.status;
            const Status status = transaction.map(at, grains * grain, handle.value);
            if (status != Status::ok) return status;
            slots.push_back({.handle = handle.value, .grains = grains});
            for (std::uint32_t offset = 1; offset < grains; ++offset) slots.push_back({.offset = offset});
            at += grains * grain;
        }
        if (const Status status = transaction.set_access(begin, end - begin); status != Status::ok) return status;
        transaction.commit();
    }
    pages += count;
    Span& span = table_.span_of(begin);
    const std::size_t first = (begin - span.base) / grain;
    if (span.slots.size() < first + slots.size()) span.slots.resize(first + slots.size());
    std::copy(slots.begin(), slots.end(), span.slots.begin() + static_cast<std::ptrdiff_t>(first));

    auto hole = std::prev(holes_.upper_bound(begin));
    const Address hole_begin = hole->first;
    const Address hole_end = hole->second;
    holes_.erase(hole);
    if (hole_begin < begin) holes_.emplace(hole_begin, begin);
    if (end < hole_end) holes_.emplace(end, hole_end);
    return Status::ok;
}

std::vector<Arena::Gone> Arena::give_back(Address begin, Address end) {
    const Bytes grain = table_.grain();
    Span& span = table_.span_of(begin);
    if (driver_.unmap(begin, end - begin) != Status::ok) return {};

    std::vector<Gone> gone;
    bool refused = false;
    for (Address at = begin; at < end;) {
        const auto first = span.slots.begin() + static_cast<std::ptrdiff_t>((at - span.base) / grain);
        const Handle handle = first->handle;
        const std::uint32_t grains = first->grains;
        const Address page = at;
        const Bytes size = grains * grain;
        at += size;
        const UndoStep release{.kind = UndoStep::Kind::release, .address = page, .size = size, .handle = handle};
        refused = refused || take(driver_, release) != Status::ok;
        if (refused) {
            // What could not be released goes home again. Where even that fails the page is nobody's until the debris
            // is cleared.
            if (driver_.map(page, size, handle) == Status::ok) {
                if (driver_.set_access(page, size) == Status::ok) continue;
                const UndoStep away{.kind = UndoStep::Kind::unmap, .address = page, .size = size, .handle = handle};
                if (take(driver_, away) != Status::ok) debris_.add(away);
            }
            debris_.add(release);
        }
        std::fill(first, first + grains, HomePage{});
        gone.push_back({page, size});
        open_hole(page, at);
    }
    return gone;
}

void Arena::open_hole(Address begin, Address end) {
    auto next = holes_.lower_bound(begin);
    if (next != holes_.end() && next->first == end) {
        end = next->second;
        next = holes_.erase(next);
    }
    if (next != holes_.begin() && std::prev(next)->second == begin) {
        begin = std::prev(next)->first;
        holes_.erase(std::prev(next));
    }
    holes_.emplace(begin, end);
}

std::vector<std::pair<Address, Address>> Arena::filled() const {
    std::vector<std::pair<Address, Address>> stretches;
    for (const Address base : bases_) {
        const Span& span = table_.span_of(base);
        Address at = base;
        auto hole = holes_.upper_bound(base);
        if (hole != holes_.begin() && std::prev(hole)->second > base) --hole;  // it may begin in a reservation before
        for (; hole != holes_.end() && hole->first < span.end; ++hole) {
            if (at < hole->first) stretches.emplace_back(at, hole->first);
            at = hole->second;
        }
        if (at < span.end) stretches.emplace_back(at, span.end);
    }
    return stretches;
}

void Arena::trim() {
    std::erase_if(bases_, [this](Address base) {
        const auto hole = holes_.find(base);
        Span& span = table_.span_of(base);
        if (hole == holes_.end() || hole->second != span.end) return false;
        if (driver_.free_address(span.reserved, span.reserved_size) != Status::ok) return false;
        holes_.erase(hole);
        table_.forget_cached();
        table_.remove(base);
        return true;
    });
}

}  // namespace movie

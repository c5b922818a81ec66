#include "memory/arena.h"

#include <algorithm>

namespace movie {

Status Arena::extend(Bytes bytes) {
    const Bytes page = table_.page_size();
    const Bytes least = round_up(bytes, page) + page;  // a page more, since the range may begin inside one
    Outcome<Address> range;
    Bytes size = std::max(round_up(span_, page) + page, least);
    for (;; size = std::max(least, round_up(size / 2, page))) {
        range = driver_.reserve(size);
        if (range.ok() || range.status != Status::out_of_addresses || size == least) break;
    }
    if (!range.ok()) return range.status;
    const Address base = table_.ceil(range.value);
    const Address end = table_.floor(range.value + size);
    table_.add({.reserved = range.value, .reserved_size = size, .base = base, .end = end, .pages = {}});
    holes_.emplace(base, end);
    bases_.push_back(base);
    return Status::ok;
}

Status Arena::fill(Address begin, Address end, bool may_unmap) {
    const Bytes page = table_.page_size();
    std::vector<Handle> handles;
    handles.reserve((end - begin) / page);
    {
        Transaction transaction(driver_, debris_, may_unmap);
        for (Address at = begin; at < end; at += page) {
            const auto handle = transaction.create(page);
            if (!handle.ok()) return handle.status;
            handles.push_back(handle.value);
            if (const Status status = transaction.map(at, page, handle.value); status != Status::ok) return status;
        }
        if (const Status status = transaction.set_access(begin, end - begin); status != Status::ok) return status;
        transaction.commit();
    }
    Span& span = table_.span_of(begin);
    const std::size_t first = (begin - span.base) / page;
    if (span.pages.size() < first + handles.size()) span.pages.resize(first + handles.size());
    for (std::size_t i = 0; i < handles.size(); ++i) span.pages[first + i] = {.handle = handles[i]};

    auto hole = std::prev(holes_.upper_bound(begin));
    const Address hole_begin = hole->first;
    const Address hole_end = hole->second;
    holes_.erase(hole);
    if (hole_begin < begin) holes_.emplace(hole_begin, begin);
    if (end < hole_end) holes_.emplace(end, hole_end);
    return Status::ok;
}

std::vector<Address> Arena::give_back(Address begin, Address end) {
    const Bytes page = table_.page_size();
    Span& span = table_.span_of(begin);
    std::vector<Handle> handles;
    for (Address at = begin; at < end; at += page) handles.push_back(span.pages[(at - span.base) / page].handle);
    if (driver_.unmap(begin, end - begin) != Status::ok) return {};

    std::vector<Address> gone;
    bool refused = false;
    for (std::size_t i = 0; i < handles.size(); ++i) {
        const Address at = begin + i * page;
        const UndoStep release{.kind = UndoStep::Kind::release, .address = at, .size = page, .handle = handles[i]};
        refused = refused || take(driver_, release) != Status::ok;
        if (refused) {
            // What could not be released goes home again. Where even that fails the page is nobody's until the debris
            // is cleared.
            if (driver_.map(at, page, handles[i]) == Status::ok) {
                if (driver_.set_access(at, page) == Status::ok) continue;
                const UndoStep away{.kind = UndoStep::Kind::unmap, .address = at, .size = page, .handle = handles[i]};
                if (take(driver_, away) != Status::ok) debris_.add(away);
            }
            debris_.add(release);
        }
        span.pages[(at - span.base) / page] = {};
        gone.push_back(at);
        open_hole(at, at + page);
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

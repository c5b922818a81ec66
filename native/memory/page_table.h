// Where every page of physical memory has its home address, and how many views map it besides.
#pragma once

#include <cassert>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "driver/types.h"

namespace movie {

struct HomePage {
    Handle handle = 0;         // 0: nothing at this address
    std::uint32_t grains = 0;  // its size
    std::uint32_t views = 0;   // mappings in views
    std::uint32_t offset = 0;  // of a grain inside a page: grains from the first, which alone has the rest of this
    bool pinned = false;       // exported or registered: it stays mapped where it is
};

// A part of an arena: one reservation of addresses, cut into slots of one grain. Their boundaries are multiples of the
// grain, so that a slot can be told from an address alone.
struct Span {
    Address reserved = 0;  // as the driver gave it
    Bytes reserved_size = 0;
    Address base = 0;  // of the first slot
    Address end = 0;   // behind the last slot
    std::vector<HomePage> slots{};
};

// Pages differ in size; each is a number of grains, the smallest size there is.
class PageTable {
  public:
    explicit PageTable(Bytes grain) : grain_(grain) {}

    [[nodiscard]] Bytes grain() const { return grain_; }
    // The last boundary of pages up to the address, and the first from it on. Pre: the address lies in a page, or where
    // one ends.
    [[nodiscard]] Address floor(Address address) const {
        const Address slot = address / grain_ * grain_;
        return slot - offset(slot) * grain_;
    }
    [[nodiscard]] Address ceil(Address address) const {
        const Address begin = floor(address);
        return begin == address ? begin : begin + size(begin);
    }
    // Bytes of the page that the address lies in.
    [[nodiscard]] Bytes size(Address address) const { return at(address).grains * grain_; }

    Span& add(Span span) { return spans_.emplace(span.base, std::move(span)).first->second; }
    Span remove(Address base) {
        auto node = spans_.extract(base);
        return std::move(node.mapped());
    }

    // The page that the address lies in.
    [[nodiscard]] const HomePage& at(Address address) const {
        const Span& span = span_of(address);
        const std::size_t slot = (address - span.base) / grain_;
        return span.slots[slot - span.slots[slot].offset];
    }
    [[nodiscard]] HomePage& at(Address address) { return const_cast<HomePage&>(std::as_const(*this).at(address)); }
    [[nodiscard]] Handle handle(Address address) const { return at(address).handle; }
    [[nodiscard]] const Span& span_of(Address address) const {
        if (last_ == nullptr || address < last_->base || address >= last_->end) {
            const auto found = spans_.upper_bound(address);
            assert(found != spans_.begin());
            last_ = &std::prev(found)->second;
        }
        return *last_;
    }
    [[nodiscard]] Span& span_of(Address address) { return const_cast<Span&>(std::as_const(*this).span_of(address)); }
    void forget_cached() { last_ = nullptr; }

  private:
    // Grains from the first of its page; 0 where no page is.
    [[nodiscard]] std::uint32_t offset(Address slot_address) const {
        const Span& span = span_of(slot_address);
        const std::size_t slot = (slot_address - span.base) / grain_;
        return slot < span.slots.size() ? span.slots[slot].offset : 0;
    }

    Bytes grain_;
    std::map<Address, Span> spans_;
    mutable const Span* last_ = nullptr;
};

}  // namespace movie

// Where every page of physical memory has its home address, and how many views map it besides.
#pragma once

#include <cassert>
#include <iterator>
#include <map>
#include <vector>

#include "driver/types.h"

namespace movie {

struct HomePage {
    Handle handle = 0;        // 0: nothing at this address
    std::uint32_t views = 0;  // mappings in views
    bool pinned = false;      // exported or registered: it stays mapped where it is
};

// A part of an arena: one reservation of addresses, cut into page slots. Page boundaries are multiples of the page
// size, so that they can be told from an address alone.
struct Span {
    Address reserved = 0;  // as the driver gave it
    Bytes reserved_size = 0;
    Address base = 0;  // of the first slot
    Address end = 0;   // behind the last slot
    std::vector<HomePage> pages;
};

class PageTable {
  public:
    explicit PageTable(Bytes page) : page_(page) {}

    [[nodiscard]] Bytes page_size() const { return page_; }
    [[nodiscard]] Address floor(Address address) const { return address / page_ * page_; }
    [[nodiscard]] Address ceil(Address address) const { return (address + page_ - 1) / page_ * page_; }

    Span& add(Span span) { return spans_.emplace(span.base, std::move(span)).first->second; }
    Span remove(Address base) {
        auto node = spans_.extract(base);
        return std::move(node.mapped());
    }

    [[nodiscard]] HomePage& at(Address address) {
        Span& span = span_of(address);
        return span.pages[(address - span.base) / page_];
    }
    [[nodiscard]] Handle handle(Address address) { return at(address).handle; }
    [[nodiscard]] Span& span_of(Address address) {
        if (last_ == nullptr || address < last_->base || address >= last_->end) {
            const auto found = spans_.upper_bound(address);
            assert(found != spans_.begin());
            last_ = &std::prev(found)->second;
        }
        return *last_;
    }
    void forget_cached() { last_ = nullptr; }

  private:
    Bytes page_;
    std::map<Address, Span> spans_;
    Span* last_ = nullptr;
};

}  // namespace movie

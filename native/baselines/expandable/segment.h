// One expandable segment: a long range of addresses in which pages are mapped and unmapped one by one.
#pragma once

#include <cstddef>
#include <vector>

#include "driver/driver.h"

namespace movie {

class ExpandableSegment {
  public:
    // [address, address + size) is a reservation of the driver's; `size` is a multiple of `page`.
    ExpandableSegment(Driver& driver, Address address, Bytes size, Bytes page, Stream stream)
        : driver_(driver), address_(address), size_(size), page_(page), stream_(stream) {}

    [[nodiscard]] Address address() const { return address_; }
    [[nodiscard]] Bytes size() const { return size_; }
    [[nodiscard]] Bytes page() const { return page_; }
    // Bytes of physical memory: those of mapped pages, and of pages that the driver would not take back.
    [[nodiscard]] Bytes held() const { return held_ * page_; }

    // What whole pages would hold the range, or lie inside of it.
    struct Pages {
        std::size_t first = 0, last = 0;  // [first, last)

        [[nodiscard]] std::size_t count() const { return last > first ? last - first : 0; }
    };
    [[nodiscard]] Pages around(Address address, Bytes size) const;
    [[nodiscard]] Pages inside(Address address, Bytes size) const;
    [[nodiscard]] Address address_of(std::size_t page) const { return address_ + page * page_; }

    // Physical bytes that map() would have to obtain.
    [[nodiscard]] Bytes missing(Pages pages) const;
    // A handle for each page, a mapping for each, one set_access for all. False: the driver refused, and the pages are
    // as before. Pre: none of them is mapped.
    bool map(Pages pages);
    // Waits for the segment's stream, then unmaps and releases page by page. Returns the end of what was unmapped,
    // which is less than the whole if the driver refuses. Pre: all of them are mapped.
    std::size_t unmap(Pages pages);
    // Gives back what earlier failures of the driver left behind.
    void sweep();

  private:
    struct Page {
        Handle handle = 0;
        bool mapped = false;
        bool in_use = false;  // by map(), until unmap()
    };
    // What is obtained for a page that is not in use goes back, as far as the driver takes it.
    void give_back(std::size_t page);

    Driver& driver_;
    Address address_;
    Bytes size_, page_;
    Stream stream_;
    std::vector<Page> pages_;  // as far as they were ever mapped
    std::size_t held_ = 0, used_ = 0;
};

}  // namespace movie

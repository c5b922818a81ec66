#include "baselines/expandable/segment.h"

#include <algorithm>

namespace movie {

ExpandableSegment::Pages ExpandableSegment::around(Address address, Bytes size) const {
    const Bytes begin = address - address_;
    return {.first = begin / page_, .last = (begin + size + page_ - 1) / page_};
}

ExpandableSegment::Pages ExpandableSegment::inside(Address address, Bytes size) const {
    const Bytes begin = address - address_;
    return {.first = (begin + page_ - 1) / page_, .last = (begin + size) / page_};
}

Bytes ExpandableSegment::missing(Pages pages) const {
    std::size_t count = pages.count();
    for (std::size_t i = pages.first; i < std::min(pages.last, pages_.size()); ++i)
        if (pages_[i].handle != 0) --count;
    return count * page_;
}

bool ExpandableSegment::map(Pages pages) {
    if (pages_.size() < pages.last) pages_.resize(pages.last);
    const auto obtain = [&] {
        for (std::size_t i = pages.first; i < pages.last; ++i) {
            if (pages_[i].handle != 0) continue;
            const Outcome<Handle> handle = driver_.create(page_);
            if (!handle.ok()) return false;
            pages_[i].handle = handle.value;
            ++held_;
        }
        for (std::size_t i = pages.first; i < pages.last; ++i) {
            if (pages_[i].mapped) continue;
            if (driver_.map(address_of(i), page_, pages_[i].handle) != Status::ok) return false;
            pages_[i].mapped = true;
        }
        return driver_.set_access(address_of(pages.first), pages.count() * page_) == Status::ok;
    };
    if (!obtain()) {
        for (std::size_t i = pages.first; i < pages.last; ++i) give_back(i);
        return false;
    }
    for (std::size_t i = pages.first; i < pages.last; ++i) pages_[i].in_use = true;
    used_ += pages.count();
    return true;
}

std::size_t ExpandableSegment::unmap(Pages pages) {
    const Outcome<Event> done = driver_.event_record(stream_);
    if (!done.ok()) return pages.first;
    const Status waited = driver_.event_synchronize(done.value);
    driver_.event_destroy(done.value);
    if (waited != Status::ok) return pages.first;

    std::size_t i = pages.first;
    for (; i < pages.last; ++i) {
        if (driver_.unmap(address_of(i), page_) != Status::ok) break;
        pages_[i].mapped = false;
        pages_[i].in_use = false;
        --used_;
        give_back(i);
    }
    return i;
}

void ExpandableSegment::give_back(std::size_t i) {
    Page& page = pages_[i];
    if (page.mapped && driver_.unmap(address_of(i), page_) == Status::ok) page.mapped = false;
    if (page.mapped || page.handle == 0 || driver_.release(page.handle) != Status::ok) return;
    page.handle = 0;
    --held_;
}

void ExpandableSegment::sweep() {
    if (held_ == used_) return;
    for (std::size_t i = 0; i < pages_.size(); ++i)
        if (!pages_[i].in_use) give_back(i);
}

}  // namespace movie

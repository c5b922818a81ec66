// Host memory that the driver knows: allocated by it (pages come when touched) or registered with it.
#pragma once

#include <map>
#include <optional>

#include "driver/types.h"

namespace movie::phantom {

class Pinned {
  public:
    struct Range {
        Address begin = 0;
        Bytes size = 0;
        Bytes mapped = 0;  // whole pages, if it was allocated here; 0: registered
        int device = 0;    // current when it was made
        unsigned flags = 0;
    };

    Outcome<void*> allocate(Bytes size, int device, unsigned flags);
    // False: no allocation begins there.
    bool deallocate(const void* address);
    // False: part of the range is pinned already.
    bool add(const void* address, Bytes size, int device, unsigned flags);
    // False: no registered range begins there.
    bool remove(const void* address);
    [[nodiscard]] std::optional<Range> find(const void* address) const;
    // Whether all of the range is pinned.
    [[nodiscard]] bool holds(const void* address, Bytes size) const;
    [[nodiscard]] Bytes bytes() const { return bytes_; }

  private:
    std::map<Address, Range> ranges_;
    Bytes bytes_ = 0;
};

}  // namespace movie::phantom

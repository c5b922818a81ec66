// Where device addresses come from: one stretch of this process's address space that nothing else uses, given out from
// its end downwards as cards do, so that the order of addresses is the same in every run.
#pragma once

#include "driver/address_ranges.h"

namespace movie::phantom {

class AddressSpace {
  public:
    // Reserves the stretch, without memory behind it. Throws std::runtime_error where the system refuses.
    AddressSpace();

    Outcome<Address> take(Bytes size, Bytes alignment, Address wanted = 0) {
        return ranges_.take(size, alignment, wanted);
    }
    void give_back(Address address, Bytes size) { ranges_.give_back(address, size); }
    // Whether the address could be one of a card.
    [[nodiscard]] bool contains(Address address) const { return address >= begin_ && address < end_; }

  private:
    Address begin_ = 0, end_ = 0;
    AddressRanges ranges_;
};

}  // namespace movie::phantom

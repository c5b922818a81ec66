// Where device addresses come from: one stretch of this process's address space that nothing else uses, given out from
// its end downwards as cards do, so that the order of addresses is the same in every run.
#pragma once

#include <map>

#include "driver/types.h"

namespace movie::phantom {

class AddressSpace {
  public:
    // Reserves the stretch, without memory behind it. Throws std::runtime_error where the system refuses.
    AddressSpace();

    // A range that is nobody's; `alignment` is a power of two. At `wanted` if that is free, else the highest that fits.
    Outcome<Address> take(Bytes size, Bytes alignment, Address wanted = 0);
    void give_back(Address address, Bytes size);
    // Whether the address could be one of a card.
    [[nodiscard]] bool contains(Address address) const { return address >= begin_ && address < end_; }

  private:
    Address begin_ = 0, end_ = 0;
    std::map<Address, Bytes> free_;  // ranges that touch are one
};

}  // namespace movie::phantom

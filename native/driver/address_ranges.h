// Addresses that are nobody's, or places in a file, given out from their end downwards, as cards do; what comes back is
// given out again.
#pragma once

#include <iterator>
#include <map>

#include "driver/types.h"

namespace movie {

class AddressRanges {
  public:
    // None; what there is comes by give_back().
    AddressRanges() = default;

    // `alignment` is a power of two. At `wanted` if that is free, else the highest range that fits.
    Outcome<Address> take(Bytes size, Bytes alignment, Address wanted = 0) {
        if (wanted != 0 && wanted % alignment == 0) {
            auto range = free_.upper_bound(wanted);
            if (range != free_.begin() && (--range)->first + range->second >= wanted + size) {
                cut(range, wanted, size);
                return {Status::ok, wanted};
            }
        }
        for (auto range = free_.rbegin(); range != free_.rend(); ++range) {
            const auto [begin, length] = *range;
            if (length < size) continue;
            const Address address = round_down(begin + length - size, alignment);
            if (address < begin) continue;
            cut(std::prev(range.base()), address, size);
            return {Status::ok, address};
        }
        return {Status::out_of_addresses, 0};
    }

    void give_back(Address address, Bytes size) {
        auto next = free_.lower_bound(address);
        if (next != free_.end() && next->first == address + size) {
            size += next->second;
            next = free_.erase(next);
        }
        if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == address)
            std::prev(next)->second += size;
        else
            free_.emplace(address, size);
    }

  private:
    using Ranges = std::map<Address, Bytes>;  // ranges that touch are one

    void cut(Ranges::iterator range, Address address, Bytes length) {
        const auto [begin, whole] = *range;
        free_.erase(range);
        if (address > begin) free_.emplace(begin, address - begin);
        if (begin + whole > address + length) free_.emplace(address + length, begin + whole - address - length);
    }

    Ranges free_;
};

}  // namespace movie

// The home of one stream's pages in one pool: one long range of addresses (more where the first is full), in which
// neighbouring free memory merges by itself.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "driver/driver.h"
#include "memory/page_table.h"
#include "memory/transaction.h"

namespace movie {

class Arena {
  public:
    // `span`: addresses reserved at a time; less where addresses are scarce.
    Arena(Driver& driver, PageTable& table, Debris& debris, Bytes span)
        : driver_(driver), table_(table), debris_(debris), span_(span) {}

    // Addresses without pages, where growth may go: begin -> end, in whole pages.
    [[nodiscard]] const std::map<Address, Address>& holes() const { return holes_; }
    // Addresses with pages, as begin and end of each stretch, in order of the reservations.
    [[nodiscard]] std::vector<std::pair<Address, Address>> filled() const;
    // Reserves another range with room for at least `bytes`.
    Status extend(Bytes bytes);

    // New pages at [begin, end), which is part of a hole. All or nothing.
    Status fill(Address begin, Address end, bool may_unmap);
    // The pages of [begin, end) leave for the driver; returns those that did (all, unless a call failed), the others
    // are as before. Pre: nothing uses them and no view maps them.
    std::vector<Address> give_back(Address begin, Address end);
    // Frees reservations that hold no page.
    void trim();

  private:
    void open_hole(Address begin, Address end);

    Driver& driver_;
    PageTable& table_;
    Debris& debris_;
    Bytes span_;
    std::map<Address, Address> holes_;
    std::vector<Address> bases_;
};

}  // namespace movie

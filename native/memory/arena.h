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

    struct Gone {  // a page that left
        Address begin = 0;
        Bytes size = 0;
    };

    // Addresses without pages, where growth may go: begin -> end, in grains.
    [[nodiscard]] const std::map<Address, Address>& holes() const { return holes_; }
    // Addresses with pages, as begin and end of each stretch, in order of the reservations.
    [[nodiscard]] std::vector<std::pair<Address, Address>> filled() const;
    // Reserves another range with room for at least `bytes`.
    Status extend(Bytes bytes);

    // New pages at [begin, end), which is part of a hole: as large as possible, of at most `most` grains (a power of
    // two). All or nothing; how many they are is added to `pages`.
    Status fill(Address begin, Address end, std::uint32_t most, bool may_unmap, std::uint64_t& pages);
    // The pages of [begin, end) leave for the driver; returns those that did (all, unless a call failed), the others
    // are as before. Pre: these are whole pages, nothing uses them and no view maps them.
    std::vector<Gone> give_back(Address begin, Address end);
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

// A view: a second range of addresses, mapped over pages that lie elsewhere, in order. It is kept after its block is
// freed and used again whenever the pages it needs are free.
#pragma once

#include <algorithm>
#include <list>
#include <vector>

#include "driver/types.h"
#include "ordering/fence.h"

namespace movie {

struct View {
    Address base = 0;
    Bytes reserved = 0;          // addresses, more than are mapped, so that a view can be extended
    std::vector<Address> slots;  // home address of the grain in each; 0: nothing is mapped there
    Bytes head = 0;              // where a block begins: the first page may be used from the middle
    Bytes live_bytes = 0;        // from the base to the end of the block that lies in it; 0: idle
    bool pinned = false;         // exported or registered: never to be remapped
    bool captured = false;       // a graph holds it: not to be remapped while its pool lives
    Fence used;                  // what may still touch the range: the host must have seen it pass before an unmap
    std::uint64_t last_used = 0;

    [[nodiscard]] bool fixed() const { return pinned || captured; }
    // The slots that a block of so many bytes lies in: [first, behind).
    [[nodiscard]] std::size_t first_slot(Bytes grain) const { return static_cast<std::size_t>(head / grain); }
    [[nodiscard]] std::size_t slots_for(Bytes bytes, Bytes grain) const {
        return static_cast<std::size_t>((head + bytes + grain - 1) / grain);
    }
};

using Views = std::list<View>;

// A stretch of a view whose grains are neighbours at home too.
struct HomeRange {
    std::size_t slot = 0;
    Address begin = 0, end = 0;  // home addresses
};

// The home ranges that a block of `bytes` at `head` would lie in, in order; slots without a page are left out.
inline std::vector<HomeRange> home_ranges(const View& view, Bytes head, Bytes bytes, Bytes grain) {
    std::vector<HomeRange> ranges;
    Bytes at = head;
    const Bytes end = head + bytes;
    std::size_t expected = 0;  // the slot that would go on with the last range
    for (std::size_t slot = head / grain; at < end; ++slot) {
        const Bytes slot_begin = slot * grain;
        const Bytes stop = std::min(end, slot_begin + grain);
        if (slot < view.slots.size() && view.slots[slot] != 0) {
            const Address begin = view.slots[slot] + (at - slot_begin);
            const Address range_end = view.slots[slot] + (stop - slot_begin);
            if (!ranges.empty() && ranges.back().end == begin && expected == slot)
                ranges.back().end = range_end;
            else
                ranges.push_back({slot, begin, range_end});
            expected = slot + 1;
        }
        at = stop;
    }
    return ranges;
}

}  // namespace movie

// All free memory of one pool, as extents of home addresses with their fences, and for each arena the runs that its own
// stream may use without waiting, found by size.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "driver/types.h"
#include "ordering/timelines.h"
#include "placement/run_index.h"

namespace movie {

using ArenaId = std::uint32_t;

struct Extent {
    Address end = 0;
    ArenaId arena = 0;
    bool clear = false;  // part of its arena's runs
    Fence fence;
};

class FreeSpace {
  public:
    explicit FreeSpace(Timelines& timelines) : timelines_(timelines) {}

    // Arenas are numbered from 0 in the order in which they are added.
    ArenaId add_arena(TimelineId owner);
    [[nodiscard]] TimelineId owner(ArenaId arena) const { return arenas_[arena].owner; }
    [[nodiscard]] const RunIndex& clear(ArenaId arena) const { return arenas_[arena].clear; }
    [[nodiscard]] const std::map<Address, Extent>& extents() const { return extents_; }
    [[nodiscard]] Bytes bytes() const { return bytes_; }

    void insert(Address begin, Address end, ArenaId arena, Fence fence);
    // Takes [begin, end). Pre: all of it is free.
    void take(Address begin, Address end);
    // What may still touch [begin, end). Pre: all of it is free.
    [[nodiscard]] Fence fence_in(Address begin, Address end) const;
    [[nodiscard]] bool contains(Address address) const;
    // Pre: the address is free.
    [[nodiscard]] ArenaId arena_at(Address address) const {
        return std::prev(extents_.upper_bound(address))->second.arena;
    }
    // Whether all of [begin, end) is free; and if `stream` is given, usable by it without waiting.
    [[nodiscard]] bool covers(Address begin, Address end, std::optional<TimelineId> stream) const;
    // Puts extents whose fences have passed, or that their arena's stream now comes after, among the clear runs.
    void refresh();
    // Moves everything to `other`, as arenas of its own.
    void move_to(FreeSpace& other, const std::function<ArenaId(ArenaId)>& renamed);

  private:
    struct Side {
        TimelineId owner = 0;
        RunIndex clear;
    };
    using Iterator = std::map<Address, Extent>::iterator;

    [[nodiscard]] Iterator containing(Address address);
    void drop_stale();

    Timelines& timelines_;
    std::vector<Side> arenas_;
    std::map<Address, Extent> extents_;
    std::vector<Address> held_;  // beginnings of extents that were not clear when inserted; some may be stale
    Bytes bytes_ = 0;
};

}  // namespace movie

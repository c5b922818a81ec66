// Who holds which physical byte, and where it is mapped: the validator's own account of the device's memory.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "driver/types.h"
#include "replay/validator/order.h"

namespace movie::validation {

// Sets of uses that many pieces of memory share: a freed block of a thousand pages has one.
class UsesTable {
  public:
    using Id = std::uint32_t;  // 0 is the empty set

    UsesTable() : entries_(1) {}
    // The set starts without any piece that holds it.
    Id add(Uses uses);
    void hold(Id id) {
        if (id != 0) ++entries_[id].holders;
    }
    void drop(Id id);
    [[nodiscard]] const Uses& operator[](Id id) const { return entries_[id].uses; }

  private:
    struct Entry {
        Uses uses;
        std::uint64_t holders = 0;
    };
    std::vector<Entry> entries_;
    std::vector<Id> unused_;
};

// One piece of physical memory from the driver: a handle, or a plain allocation (mapped once, for good).
struct Physical {
    // [begin, begin of the next piece): either a live block's, or free, with the uses that came before.
    struct Piece {
        Bytes begin = 0;
        Address block = 0;  // 0: free
        UsesTable::Id uses = 0;
    };

    Handle handle = 0;  // 0: a plain allocation
    Bytes size = 0;
    std::uint64_t mapped = 0;  // how many times
    std::uint64_t live = 0;    // pieces that belong to live blocks
    bool released = false;
    bool pinned = false;
    bool owned = false;      // some pool has used it
    std::uint64_t pool = 0;  // which
    std::vector<Piece> pieces{Piece{}};

    [[nodiscard]] std::size_t piece_at(Bytes offset) const;
    [[nodiscard]] Bytes end_of(std::size_t piece) const {
        return piece + 1 < pieces.size() ? pieces[piece + 1].begin : size;
    }
};

class MemoryBook {
  public:
    struct Mapping {
        Bytes size = 0;
        Physical* physical = nullptr;
        bool accessible = false;
        Uses uses;  // work of the device that went through this range
    };
    using Mappings = std::map<Address, Mapping>;

    void reserve(Address address, Bytes size) { reservations_[address] = size; }
    void free_address(Address address) { reservations_.erase(address); }
    void create(Handle handle, Bytes size);
    [[nodiscard]] Physical* find(Handle handle);
    void release(Physical& physical);
    void map(Address address, Bytes size, Physical& physical);
    void unmap(Address address, Bytes size);
    void set_access(Address address, Bytes size);
    void malloc(Address address, Bytes size);
    void mfree(Address address);

    [[nodiscard]] Mappings& mappings() { return mappings_; }
    // The first mapping that overlaps [address, ...), or the first behind it.
    [[nodiscard]] Mappings::iterator first_over(Address address);
    // Whether the range lies inside one reservation, or one plain allocation.
    [[nodiscard]] bool in_one_unit(Address address, Bytes size) const;

    // The bytes [begin, end) become the block's, whatever was there.
    void take(Physical& physical, Bytes begin, Bytes end, Address block);
    // A live piece becomes free, behind these uses.
    void give(Physical& physical, Bytes begin, UsesTable::Id uses);

    UsesTable& uses() { return uses_; }
    [[nodiscard]] Bytes held() const { return held_; }

  private:
    void forget(Physical& physical);

    std::map<Address, Bytes> reservations_;
    Mappings mappings_;
    std::unordered_map<Handle, Physical> handles_;
    std::unordered_map<Address, Physical> plain_;
    UsesTable uses_;
    Bytes held_ = 0;
};

}  // namespace movie::validation

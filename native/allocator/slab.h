// Small requests: pages cut up in units of 512 bytes, best fit, in constant time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "allocator/piece.h"
#include "ordering/timelines.h"

namespace movie {

constexpr Bytes kUnit = 512;
constexpr Bytes kSlabBytes = 2 * kMiB;
constexpr Bytes kMostSmall = kMiB;  // requests up to this size are counted as small, as PyTorch does
// Requests up to this size come from slabs. A slab has room for few that are larger, and what is left beside them is
// lost: of requests of 0.78 MiB, as in models of a billion parameters, a fifth.
constexpr Bytes kMostInSlab = kSlabBytes / 8;
constexpr std::uint32_t kSlabUnits = kSlabBytes / kUnit;

struct Slab {
    Piece home;
    std::uint32_t index = 0;
    std::uint32_t used = 0;  // units in live or waiting blocks
    // At the first and the last unit of each free run: the run's node. 0 everywhere else.
    std::array<std::uint32_t, kSlabUnits> edge{};
};

// The slabs of one stream in one pool.
class SlabFamily {
  public:
    struct Place {
        Slab* slab = nullptr;
        Address address = 0;
    };

    // The smallest free run that holds `units`; nothing if there is none.
    std::optional<Place> allocate(std::uint32_t units);
    // Exactly these units. False: they are not all free.
    bool allocate_at(Slab* slab, Address address, std::uint32_t units);
    void add_slab(const Piece& home);
    // The block's units are free for the family's stream.
    void free(Slab* slab, Address address, std::uint32_t units);
    // Slabs without blocks are kept, so that the next blocks change nothing around them, until somebody wants their
    // pages.
    [[nodiscard]] bool has_empty() const { return empty_ > 0; }
    // An empty slab leaves.
    Piece remove(Slab* slab);

    // The block is free, but other streams may still touch it: it waits aside.
    struct Waiting {
        Slab* slab = nullptr;
        Address address = 0;
        std::uint32_t units = 0;
        Fence fence;
        Bytes requested = 0;
        std::uint64_t context = 0;  // of its allocation
        [[nodiscard]] Bytes bytes() const { return Bytes{units} * kUnit; }
    };
    void free_later(Waiting block) { waiting_.push_back(std::move(block)); }
    // Frees what `ready` accepts of the blocks that wait, and tells of each.
    template <class Ready, class Freed>
    void settle(Ready ready, Freed freed) {
        for (std::size_t i = 0; i < waiting_.size();) {
            if (!ready(waiting_[i].fence)) {
                ++i;
                continue;
            }
            const Waiting block = std::move(waiting_[i]);
            if (i + 1 < waiting_.size()) waiting_[i] = std::move(waiting_.back());
            waiting_.pop_back();
            free(block.slab, block.address, block.units);
            freed(block);
        }
    }
    [[nodiscard]] bool has_waiting() const { return !waiting_.empty(); }
    template <class Visit>
    void for_each_waiting(Visit visit) const {
        for (const Waiting& block : waiting_) visit(block);
    }

    template <class Visit>
    void for_each_slab(Visit visit) {
        for (const auto& slab : slabs_)
            if (slab) visit(*slab);
    }

    [[nodiscard]] Bytes free_bytes() const { return free_units_ * kUnit; }

  private:
    struct Run {  // a free run, in the list of its length
        std::uint32_t slab = 0, unit = 0, length = 0, previous = 0, next = 0;
    };
    void link(Slab& slab, std::uint32_t unit, std::uint32_t length);
    Run unlink(std::uint32_t node);

    std::vector<std::unique_ptr<Slab>> slabs_;  // by index; empty places are used again
    std::vector<std::uint32_t> vacant_;
    std::vector<Run> runs_ = std::vector<Run>(1);  // node 0 is none
    std::vector<std::uint32_t> spare_;
    std::array<std::uint32_t, kSlabUnits + 1> lists_{};                // by length
    std::array<std::uint64_t, (kSlabUnits + 1 + 63) / 64> lengths_{};  // which lists are not empty
    std::vector<Waiting> waiting_;
    std::uint64_t free_units_ = 0, empty_ = 0;
};

}  // namespace movie

#include "allocator/slab.h"

#include <bit>

namespace movie {

void SlabFamily::link(Slab& slab, std::uint32_t unit, std::uint32_t length) {
    std::uint32_t node = 0;
    if (spare_.empty()) {
        node = static_cast<std::uint32_t>(runs_.size());
        runs_.emplace_back();
    } else {
        node = spare_.back();
        spare_.pop_back();
    }
    std::uint32_t& head = lists_[length];
    runs_[node] = {.slab = slab.index, .unit = unit, .length = length, .previous = 0, .next = head};
    if (head != 0) runs_[head].previous = node;
    head = node;
    lengths_[length / 64] |= std::uint64_t{1} << (length % 64);
    slab.edge[unit] = node;
    slab.edge[unit + length - 1] = node;
}

SlabFamily::Run SlabFamily::unlink(std::uint32_t node) {
    const Run run = runs_[node];
    if (run.previous != 0)
        runs_[run.previous].next = run.next;
    else
        lists_[run.length] = run.next;
    if (run.next != 0) runs_[run.next].previous = run.previous;
    if (lists_[run.length] == 0) lengths_[run.length / 64] &= ~(std::uint64_t{1} << (run.length % 64));
    Slab& slab = *slabs_[run.slab];
    slab.edge[run.unit] = 0;
    slab.edge[run.unit + run.length - 1] = 0;
    spare_.push_back(node);
    return run;
}

std::optional<SlabFamily::Place> SlabFamily::allocate(std::uint32_t units) {
    std::size_t word = units / 64;
    std::uint64_t bits = lengths_[word] & (~std::uint64_t{0} << (units % 64));
    while (bits == 0) {
        if (++word == lengths_.size()) return std::nullopt;
        bits = lengths_[word];
    }
    const std::size_t length = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
    const Run run = unlink(lists_[length]);
    Slab& slab = *slabs_[run.slab];
    if (run.length > units) link(slab, run.unit + units, run.length - units);
    if (slab.used == 0) --empty_;
    slab.used += units;
    free_units_ -= units;
    return Place{&slab, slab.home.begin + run.unit * kUnit};
}

bool SlabFamily::allocate_at(Slab* slab, Address address, std::uint32_t units) {
    const auto unit = static_cast<std::uint32_t>((address - slab->home.begin) / kUnit);
    // The last edge before the unit, or at it, is that of the run with the unit, if there is one.
    std::uint32_t at = unit;
    while (at > 0 && slab->edge[at] == 0) --at;
    if (slab->edge[at] == 0) return false;
    const Run& found = runs_[slab->edge[at]];
    if (unit < found.unit || unit + units > found.unit + found.length) return false;
    const Run run = unlink(slab->edge[at]);
    if (unit > run.unit) link(*slab, run.unit, unit - run.unit);
    const std::uint32_t behind = run.unit + run.length - (unit + units);
    if (behind > 0) link(*slab, unit + units, behind);
    if (slab->used == 0) --empty_;
    slab->used += units;
    free_units_ -= units;
    return true;
}

void SlabFamily::add_slab(const Piece& home) {
    auto slab = std::make_unique<Slab>();
    slab->home = home;
    if (vacant_.empty()) {
        slab->index = static_cast<std::uint32_t>(slabs_.size());
        slabs_.emplace_back();
    } else {
        slab->index = vacant_.back();
        vacant_.pop_back();
    }
    Slab& placed = *slab;
    slabs_[placed.index] = std::move(slab);
    link(placed, 0, kSlabUnits);
    free_units_ += kSlabUnits;
    ++empty_;
}

void SlabFamily::free(Slab* slab, Address address, std::uint32_t units) {
    auto unit = static_cast<std::uint32_t>((address - slab->home.begin) / kUnit);
    slab->used -= units;
    free_units_ += units;
    if (unit + units < kSlabUnits && slab->edge[unit + units] != 0) units += unlink(slab->edge[unit + units]).length;
    if (unit > 0 && slab->edge[unit - 1] != 0) {
        const Run before = unlink(slab->edge[unit - 1]);
        unit = before.unit;
        units += before.length;
    }
    link(*slab, unit, units);
    if (slab->used == 0) ++empty_;
}

Piece SlabFamily::remove(Slab* slab) {
    unlink(slab->edge[0]);
    free_units_ -= kSlabUnits;
    --empty_;
    const Piece home = slab->home;
    const std::uint32_t index = slab->index;
    slabs_[index].reset();
    vacant_.push_back(index);
    return home;
}

}  // namespace movie

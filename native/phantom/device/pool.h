// A memory pool of the driver (cudaMallocAsync): memory that is taken and given back in the order of streams.
//
// Room is taken from the card in steps of 32 MiB and kept for later requests until the program waits for the device;
// then what is above the release threshold and free goes back. The real pool re-maps pages, so that free parts of
// several steps can serve one request; this one does not, and may hold more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "phantom/device/clock.h"
#include "phantom/device/memory.h"

namespace movie::phantom {

class Pool {
  public:
    struct Block {
        Bytes size = 0;
        bool free = false;
        std::uint64_t stream =
            0;  // its number, that freed it: it may have it again at once, others when `until` has passed
        Place until{};
    };
    struct Mark {
        Bytes now = 0, high = 0;
    };

    Pool(Memory& memory, int device) : memory_(memory), device_(device) {}

    [[nodiscard]] int device() const { return device_; }
    // For work of `stream`. `passed` says whether a place has been reached.
    template <class Passed>
    Outcome<Address> allocate(Bytes size, std::uint64_t stream, Passed passed);
    // From `until` on, and for work of `stream` from now on. False: no block of the pool begins there.
    bool deallocate(Address address, std::uint64_t stream, Place until);
    // Steps that are free and passed go back, until no more than `keep` bytes are held.
    template <class Passed>
    void trim(Bytes keep, Passed passed);

    Bytes release_threshold = 0;
    Mark reserved, used;

  private:
    static constexpr Bytes kStep = 32 * kMiB;
    static constexpr Bytes kUnit = 512;

    static void raise(Mark& mark, Bytes by) {
        mark.now += by;
        mark.high = std::max(mark.high, mark.now);
    }
    // Makes one of the block and the one behind it, if they are free, of one stream and of one step.
    void join_next(std::map<Address, Block>::iterator block);
    // What has passed is nobody's any more: blocks that different streams freed become one.
    template <class Passed>
    void forget_streams(Passed passed);

    Memory& memory_;
    int device_;
    std::map<Address, Bytes> steps_;
    std::map<Address, Block> blocks_;
};

template <class Passed>
Outcome<Address> Pool::allocate(Bytes size, std::uint64_t stream, Passed passed) {
    size = round_up(std::max<Bytes>(size, 1), kUnit);
    auto best = blocks_.end();
    for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
        const Block& one = block->second;
        if (!one.free || one.size < size || (best != blocks_.end() && one.size >= best->second.size)) continue;
        if (one.stream == stream || passed(one.until)) best = block;
    }
    if (best == blocks_.end()) {
        Bytes step = round_up(size, kStep);
        auto got = memory_.allocate(device_, step);
        if (!got.ok()) {
            trim(0, passed);
            got = memory_.allocate(device_, step);
        }
        if (!got.ok()) got = memory_.allocate(device_, step = round_up(size, memory_.granularity()));
        if (!got.ok()) return got;
        steps_.emplace(got.value, step);
        raise(reserved, step);
        best = blocks_.emplace(got.value, Block{.size = step, .free = true, .stream = stream}).first;
    }
    Block& block = best->second;
    if (block.size > size) {
        blocks_.emplace(best->first + size, Block{block.size - size, true, block.stream, block.until});
        block.size = size;
    }
    block.free = false;
    raise(used, size);
    return {Status::ok, best->first};
}

template <class Passed>
void Pool::forget_streams(Passed passed) {
    for (auto& [address, block] : blocks_)
        if (block.free && passed(block.until)) block.stream = 0;
    // From the end, so that a block that goes has no part in what is still to be looked at.
    for (auto block = blocks_.end(); block != blocks_.begin();) {
        --block;
        if (block->second.free) join_next(block);
    }
}

template <class Passed>
void Pool::trim(Bytes keep, Passed passed) {
    forget_streams(passed);
    for (auto step = steps_.begin(); step != steps_.end() && reserved.now > keep;) {
        const auto block = blocks_.find(step->first);
        if (!block->second.free || block->second.size != step->second || !passed(block->second.until)) {
            ++step;
            continue;
        }
        blocks_.erase(block);
        memory_.deallocate(step->first);
        reserved.now -= step->second;
        step = steps_.erase(step);
    }
}

}  // namespace movie::phantom

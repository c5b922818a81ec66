// Blocks of the native caching allocator and the lists of free ones.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <set>
#include <vector>

#include "allocator/allocator.h"
#include "allocator/statistics.h"
#include "driver/types.h"

namespace movie {

struct Block;

// Free blocks of one size are ordered by the tie rule: `order` is 0 under TieRule::address.
struct FreeKey {
    Bytes size = 0;
    std::uint64_t order = 0;
    Address address = 0;
    Block* block = nullptr;

    friend bool operator<(const FreeKey& a, const FreeKey& b) {
        if (a.size != b.size) return a.size < b.size;
        if (a.order != b.order) return a.order < b.order;
        return a.address < b.address;
    }
};

struct Bin;

// The free blocks of one stream in one bin. Blocks never serve another stream.
struct FreeList {
    Bin* bin = nullptr;
    Stream stream = 0;
    std::pmr::set<FreeKey> blocks;
    Bytes split_bytes = 0;  // in blocks that share their segment with others
    Bytes whole_bytes = 0;  // in blocks that are a whole segment

    FreeList(Bin* owner, Stream for_stream, std::pmr::memory_resource* nodes)
        : bin(owner), stream(for_stream), blocks(nodes) {}
};

// The small or the large half of a pool.
struct Bin {
    PoolId pool = 0;
    PoolKind kind = PoolKind::small;
    std::map<std::uint64_t, FreeList> lists;  // by stream, in the order of the raw handles
    std::uint64_t searches = 0;               // counted only while garbage collection is on: the clock of block ages
    std::uint64_t segments = 0;

    [[nodiscard]] bool small() const { return kind == PoolKind::small; }
};

struct Block {
    enum class State : std::uint8_t {
        free,
        live,
        pending,   // freed by its owner, while other streams may still use it
        unmapped,  // addresses of an expandable segment without memory behind them; in no list
    };

    Address address = 0;
    Bytes size = 0;
    Bytes requested = 0;
    Block* prev = nullptr;  // neighbours in the same segment, in address order
    Block* next = nullptr;
    FreeList* list = nullptr;    // where it lies when it is free
    std::uint64_t segment = 0;   // segments are numbered in the order of their allocation, from 1
    std::uint64_t number = 0;    // of the block, in the order in which PyTorch makes them, from 1
    std::uint64_t freed_at = 0;  // bin->searches when it was last put into the list
    std::uint32_t events = 0;    // of other streams that have not completed
    State state = State::free;
    std::vector<Stream> users;  // other streams, from record_stream

    [[nodiscard]] bool is_split() const { return prev != nullptr || next != nullptr; }
    [[nodiscard]] PoolKind kind() const { return list->bin->kind; }
};

}  // namespace movie

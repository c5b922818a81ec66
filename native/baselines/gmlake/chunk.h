// Physical memory of the GMLake model: 2 MiB chunks, their home, and the views that stitch them together.
#pragma once

#include <cstddef>
#include <vector>

#include "baselines/native/block.h"
#include "driver/types.h"

namespace movie::gmlake {

constexpr Bytes kChunk = 2 * kMiB;

struct View;
struct Segment;

// One handle of the driver.
struct Chunk {
    Handle handle = 0;
    Segment* segment = nullptr;
    Address home = 0;
    bool used = false;           // by a live block
    std::vector<View*> views{};  // that map it
};

// Addresses with chunks mapped side by side from their beginning on.
struct Range {
    Address address = 0;  // 0: none, or given back
    Bytes size = 0;
    std::size_t mapped = 0;  // how many chunks
};

// What one growth obtained: chunks at their home addresses. Free parts of it are blocks of the heap.
struct Segment : Range {
    std::vector<Chunk> chunks;
    std::size_t held = 0;  // chunks that have a handle
};

// A second range of addresses over the chunks of several blocks, kept for reuse. It serves any request up to its size
// with its first chunks, whenever all its chunks are free.
struct View : Range {
    Block block;  // what malloc hands out; its size is what is used
    std::vector<Chunk*> chunks;
    std::size_t free = 0;        // of the chunks
    std::vector<Block*> pieces;  // of the heap, that its live block occupies
    Event freed = 0;             // behind the work of its stream when it was last freed; 0: never freed, or unknown
    std::uint64_t freed_at = 0;  // orders views by when they were last freed
    bool live = false;
    bool shelved = false;    // all its chunks are free, so it may serve
    bool condemned = false;  // memory of it was released: it goes when its block is freed
};

}  // namespace movie::gmlake

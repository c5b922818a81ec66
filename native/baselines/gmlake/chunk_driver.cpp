#include "baselines/gmlake/chunk_driver.h"

namespace movie::gmlake {
namespace {

// Maps the chunk behind those that are mapped already.
bool map_next(Driver& driver, Range& range, Handle handle) {
    const Address at = range.address + range.mapped * kChunk;
    if (driver.map(at, kChunk, handle) != Status::ok) return false;
    ++range.mapped;
    return driver.set_access(at, kChunk) == Status::ok;
}

}  // namespace

bool obtain(Driver& driver, Segment& segment, std::size_t chunks) {
    segment.chunks.resize(chunks);
    segment.size = chunks * kChunk;
    for (Chunk& chunk : segment.chunks) {
        const Outcome<Handle> handle = driver.create(kChunk);
        if (!handle.ok()) return false;
        chunk.handle = handle.value;
        ++segment.held;
    }
    const Outcome<Address> address = driver.reserve(segment.size);
    if (!address.ok()) return false;
    segment.address = address.value;
    for (std::size_t i = 0; i < chunks; ++i) {
        Chunk& chunk = segment.chunks[i];
        chunk.segment = &segment;
        chunk.home = segment.address + i * kChunk;
        if (!map_next(driver, segment, chunk.handle)) return false;
    }
    return true;
}

void release_chunks(Driver& driver, Segment& segment) {
    for (Chunk& chunk : segment.chunks) {
        if (chunk.handle == 0 || !chunk.views.empty() || driver.release(chunk.handle) != Status::ok) continue;
        chunk.handle = 0;
        --segment.held;
    }
}

bool map(Driver& driver, View& view) {
    const Outcome<Address> address = driver.reserve(view.size);
    if (!address.ok()) return false;
    view.address = address.value;
    for (const Chunk* chunk : view.chunks)
        if (!map_next(driver, view, chunk->handle)) return false;
    return true;
}

bool unmap(Driver& driver, Range& range) {
    if (range.mapped > 0 && driver.unmap(range.address, range.mapped * kChunk) != Status::ok) return false;
    range.mapped = 0;
    if (range.address != 0 && driver.free_address(range.address, range.size) == Status::ok) range.address = 0;
    return true;
}

}  // namespace movie::gmlake

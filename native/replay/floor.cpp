#include "replay/floor.h"

#include <algorithm>
#include <vector>

#include "baselines/bound.h"

namespace movie {

Floor floor_of(const TraceView& trace) {
    struct Block {
        Bytes bytes = 0;
        PoolId pool = 0;
    };
    std::vector<Block> blocks(static_cast<std::size_t>(trace.ids));
    FloorCounter requested;
    FloorCounter allocated;
    Floor floor;
    const auto add = [&](std::size_t id, std::int64_t bytes, std::int64_t pool, std::int64_t row) {
        blocks[id] = {.bytes = static_cast<Bytes>(bytes), .pool = static_cast<PoolId>(pool)};
        requested.add(blocks[id].bytes, blocks[id].pool);
        allocated.add(round_up(blocks[id].bytes, 512), blocks[id].pool);
        floor.peak_requested = std::max(floor.peak_requested, requested.live());
        floor.peak_allocated = std::max(floor.peak_allocated, allocated.live());
        if (requested.peak() > floor.requested) {
            floor.requested = requested.peak();
            floor.row = row;
        }
    };
    for (std::size_t i = 0; i < trace.start_bytes.size(); ++i)
        if (!trace.start_pending[i]) add(i, trace.start_bytes[i], trace.start_pool[i], -1);
    for (std::size_t row = 0; row < trace.rows(); ++row) {
        switch (static_cast<Action>(trace.action[row])) {
            case Action::alloc:
                add(static_cast<std::size_t>(trace.id[row]), trace.bytes[row], trace.pool[row],
                    static_cast<std::int64_t>(row));
                break;
            case Action::free_requested: {
                const Block& block = blocks[static_cast<std::size_t>(trace.id[row])];
                requested.remove(block.bytes, block.pool);
                allocated.remove(round_up(block.bytes, 512), block.pool);
                break;
            }
            case Action::release_pool:
                requested.release_pool(static_cast<PoolId>(trace.pool[row]));
                allocated.release_pool(static_cast<PoolId>(trace.pool[row]));
                break;
            default:
                break;
        }
    }
    return floor;
}

}  // namespace movie

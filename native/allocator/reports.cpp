// What is said about the allocator, and about its blocks.
#include "allocator/movie_allocator.h"

namespace movie {

std::vector<HistoryEvent> MovieAllocator::history() const {
    const std::lock_guard lock(mutex_);
    return history_.events();
}

void MovieAllocator::record_history(std::size_t most, ContextSource source, bool keep) {
    const std::lock_guard lock(mutex_);
    history_.restart(most, keep);
    context_source_ = source;
}

void MovieAllocator::reset_peak_statistics() {
    const std::lock_guard lock(mutex_);
    statistics_.reset_peaks();
}

void MovieAllocator::reset_accumulated_statistics() {
    const std::lock_guard lock(mutex_);
    statistics_.reset_accumulated();
}

std::optional<MovieAllocator::BlockRange> MovieAllocator::block_at(Address address) const {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return std::nullopt;
    return BlockRange{.begin = address, .size = found->second->size};
}

bool MovieAllocator::lives_exactly(PoolId id, const std::unordered_set<Address>& blocks) const {
    const std::lock_guard lock(mutex_);
    const auto pool = pool_by_id_.find(id);
    if (pool == pool_by_id_.end()) return blocks.empty();
    std::size_t live = 0;
    for (const auto& [address, block] : blocks_) {
        if (block->pool != pool->second) continue;
        if (!blocks.contains(address)) return false;
        ++live;
    }
    return live == blocks.size();
}

Statistics MovieAllocator::statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
}

ViewCounters MovieAllocator::views() const {
    const std::lock_guard lock(mutex_);
    return view_counters_;
}

Unusable MovieAllocator::unusable(Stream stream, PoolId id) const {
    const std::lock_guard lock(mutex_);
    return unusable_for(const_cast<Timelines&>(timelines_).of(stream), id);
}

Unusable MovieAllocator::unusable_for(TimelineId timeline, PoolId id) const {
    Unusable result;
    result.soft = debris_held_.bytes;
    result.rounding = static_cast<Bytes>(statistics_.allocated_bytes[PoolKind::all].current -
                                         statistics_.requested_bytes[PoolKind::all].current) +
                      withheld_;
    for (const auto& pool : pools_) {
        Bytes slabs = 0;
        for (const auto& [family, owner] : pool->owners) {
            slabs += family->free_bytes();
            family->for_each_waiting([&result](const auto& block) { result.stream += block.bytes(); });
        }
        if (pool->id != id) {
            result.pool += pool->space.bytes() + slabs;
            continue;
        }
        result.hard += slabs;
        // Whole free pages can be joined with any others; what is free beside a live block in a page cannot.
        for (const auto& [begin, extent] : pool->space.extents()) {
            if (!timelines_.implied(timeline, extent.fence)) {
                result.stream += extent.end - begin;
                continue;
            }
            const Address first = table_.ceil(begin);
            const Address last = table_.floor(extent.end);
            const Bytes whole = last > first ? last - first : 0;
            result.none += whole;
            result.hard += extent.end - begin - whole;
        }
    }
    return result;
}

}  // namespace movie

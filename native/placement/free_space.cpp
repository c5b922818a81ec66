#include "placement/free_space.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace movie {

ArenaId FreeSpace::add_arena(TimelineId owner) {
    arenas_.push_back({.owner = owner, .clear = {}});
    return static_cast<ArenaId>(arenas_.size() - 1);
}

FreeSpace::Iterator FreeSpace::containing(Address address) {
    auto extent = extents_.upper_bound(address);
    assert(extent != extents_.begin());
    --extent;
    assert(address < extent->second.end);
    return extent;
}

void FreeSpace::insert(Address begin, Address end, ArenaId arena, Fence fence) {
    if (begin >= end) return;
    bytes_ += end - begin;
    Side& side = arenas_[arena];
    const bool clear = timelines_.implied(side.owner, fence);
    if (clear) side.clear.add(begin, end);

    auto next = extents_.lower_bound(begin);
    const auto like = [&](const Extent& other) {
        return other.arena == arena && other.clear == clear && other.fence == fence;
    };
    if (next != extents_.end() && next->first == end && like(next->second)) {
        end = next->second.end;
        next = extents_.erase(next);
    }
    if (next != extents_.begin()) {
        const auto before = std::prev(next);
        if (before->second.end == begin && like(before->second)) {
            before->second.end = end;
            return;
        }
    }
    if (!clear) {
        if (held_.size() > 2 * extents_.size() + 64) drop_stale();
        held_.push_back(begin);
    }
    extents_.emplace_hint(next, begin, Extent{.end = end, .arena = arena, .clear = clear, .fence = std::move(fence)});
}

void FreeSpace::take(Address begin, Address end) {
    bytes_ -= end - begin;
    auto extent = containing(begin);
    Address at = begin;
    while (at < end) {
        assert(extent != extents_.end() && extent->first <= at);
        const Address extent_begin = extent->first;
        const Address stop = std::min(end, extent->second.end);
        if (extent->second.clear) arenas_[extent->second.arena].clear.remove(at, stop);
        if (extent_begin == at && stop == extent->second.end) {
            extent = extents_.erase(extent);
        } else if (extent_begin == at) {  // the front goes
            auto node = extents_.extract(extent);
            node.key() = stop;
            if (!node.mapped().clear) held_.push_back(stop);
            extent = std::next(extents_.insert(std::move(node)).position);
        } else {
            Extent behind = extent->second;
            extent->second.end = at;
            if (stop < behind.end) {
                if (!behind.clear) held_.push_back(stop);
                extents_.emplace_hint(std::next(extent), stop, std::move(behind));
                return;
            }
            ++extent;
        }
        at = stop;
    }
}

Fence FreeSpace::fence_in(Address begin, Address end) const {
    Fence fence;
    for (auto extent = std::prev(extents_.upper_bound(begin)); extent != extents_.end() && extent->first < end;
         ++extent)
        fence.add(extent->second.fence);
    return fence;
}

bool FreeSpace::contains(Address address) const {
    const auto extent = extents_.upper_bound(address);
    return extent != extents_.begin() && address < std::prev(extent)->second.end;
}

bool FreeSpace::covers(Address begin, Address end, std::optional<TimelineId> stream) const {
    auto extent = extents_.upper_bound(begin);
    if (extent == extents_.begin()) return false;
    --extent;
    for (Address at = begin; at < end; ++extent) {
        if (extent == extents_.end() || extent->first > at || extent->second.end <= at) return false;
        if (stream && !timelines_.implied(*stream, extent->second.fence)) return false;
        at = extent->second.end;
    }
    return true;
}

void FreeSpace::refresh() {
    std::vector<Address> candidates;
    candidates.swap(held_);
    for (const Address begin : candidates) {
        const auto extent = extents_.find(begin);
        if (extent == extents_.end() || extent->second.clear) continue;  // stale
        if (!timelines_.implied(arenas_[extent->second.arena].owner, extent->second.fence)) {
            held_.push_back(begin);
            continue;
        }
        Extent ready = std::move(extent->second);
        extents_.erase(extent);
        bytes_ -= ready.end - begin;
        insert(begin, ready.end, ready.arena,
               ready.fence.without([this](Mark mark) { return timelines_.passed(mark); }));
    }
}

void FreeSpace::drop_stale() {
    std::sort(held_.begin(), held_.end());
    held_.erase(std::unique(held_.begin(), held_.end()), held_.end());
    std::erase_if(held_, [this](Address begin) {
        const auto extent = extents_.find(begin);
        return extent == extents_.end() || extent->second.clear;
    });
}

void FreeSpace::move_to(FreeSpace& other, const std::function<ArenaId(ArenaId)>& renamed) {
    for (auto& [begin, extent] : extents_)
        other.insert(begin, extent.end, renamed(extent.arena), std::move(extent.fence));
    extents_.clear();
    held_.clear();
    bytes_ = 0;
    for (Side& side : arenas_) side.clear = {};
}

}  // namespace movie

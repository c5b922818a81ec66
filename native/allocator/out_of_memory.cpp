// What is tried before a request fails, one rung after the other, and what is said when it does.
#include <algorithm>
#include <cstdio>

#include "allocator/movie_allocator.h"

namespace movie {

std::optional<MovieAllocator::Placement> MovieAllocator::last_resorts(const Site& site, Bytes requested) {
    Reach reach{.wait = config_.cross_stream && timelines_.size() > 1};
    for (const auto& pool : pools_) return_empty_slabs(*pool);
    ++statistics_.num_alloc_retries;
    // Others on the card are asked first: it costs them what is idle, and us nothing.
    if (on_shortage_ && capturing_ == 0 && on_shortage_(site.bytes) > 0) {
        reach.ask = true;
        if (auto placement = place_large(site, reach)) return placement;
    }
    reach.ask = true;
    // Just enough waiting, oldest work first; twice as much each time, so that few searches are made.
    for (std::size_t batch = 1; capturing_ == 0 && timelines_.outstanding(); batch *= 2) {
        bool waited = false;
        for (std::size_t i = 0; i < batch; ++i) {
            const auto mark = timelines_.oldest_outstanding();
            if (!mark || timelines_.wait_on_host(*mark) != Status::ok) break;
            waited = true;
        }
        if (!waited) break;
        settle();
        if (auto placement = place_large(site, reach)) return placement;
    }
    // What no event stands for yet: blocks that wait aside in slabs, and the ranges of views.
    if (capturing_ == 0) {
        Fence rest;
        for (const auto& pool : pools_) {
            for (const auto& [family, owner] : pool->owners)
                family->for_each_waiting([&rest](const auto& block) { rest.add(block.fence); });
            for (const View& view : pool->views) rest.add(view.used);
        }
        if (!timelines_.passed(rest) && host_passed(rest, true)) {
            settle();
            if (auto placement = place_large(site, reach)) return placement;
        }
    }
    // The default pool has no owner that expects its idle memory where it is: another pool may grow instead.
    const Bytes wanted = round_up(site.bytes, grain_);
    const Bytes beyond_cap = cap_ != 0 && reserved_ + wanted > cap_ ? reserved_ + wanted - cap_ : 0;
    if (site.pool.id != 0 && give_back(std::max(wanted, beyond_cap), true) > 0)
        if (auto placement = place_large(site, reach)) return placement;
    reach.lend = true;
    if (auto placement = place_large(site, reach)) return placement;
    if (capturing_ == 0) {  // addresses may be what is short
        drop_idle_views();
        for (const auto& pool : pools_)
            for (const auto& arena : pool->arenas)
                if (arena) arena->trim();
        if (auto placement = place_large(site, reach)) return placement;
    }
    raise(site, requested);
}

void MovieAllocator::raise(const Site& site, Bytes requested) {
    ++statistics_.num_ooms;
    const Stream stream = timelines_.stream_of(site.timeline);
    history_.add({.kind = HistoryEvent::Kind::out_of_memory,
                  .address = driver_.memory_info().free,
                  .size = requested,
                  .stream = stream,
                  .pool = site.pool.id});
    throw OutOfMemory({.bytes = requested, .stream = stream, .pool = site.pool.id}, report(site, requested));
}

namespace {

std::string mebibytes(Bytes bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / static_cast<double>(kMiB));
    return text;
}

}  // namespace

std::string MovieAllocator::report(const Site& site, Bytes requested) {
    const MemoryInfo card = driver_.memory_info();
    const Unusable unusable = unusable_for(site.timeline, site.pool.id);
    const auto live = static_cast<Bytes>(statistics_.requested_bytes[PoolKind::all].current);
    const Bytes others = card.total - std::min(card.total, card.free + reserved_);
    std::string text = "MOVie out of memory. Tried to allocate " + mebibytes(requested) + " on stream " +
                       std::to_string(timelines_.stream_of(site.timeline)) + " in pool " +
                       std::to_string(site.pool.id) + ". The card has " + mebibytes(card.total) + ", of which " +
                       mebibytes(card.free) + " are free and " + mebibytes(others) + " belong to others. MOVie holds " +
                       mebibytes(reserved_);
    if (cap_ != 0) text += " (capped at " + mebibytes(cap_) + ")";
    text += ": " + mebibytes(live) + " in use, " + mebibytes(unusable.none) + " free in whole pages, " +
            mebibytes(unusable.rounding) + " lost to rounding, " + mebibytes(unusable.hard) +
            " free between live blocks inside a page, " + mebibytes(unusable.stream) +
            " behind work of other streams, " + mebibytes(unusable.pool) + " in other pools.";
    if (unusable.pool > 0) text += " Pools that may lend their idle memory can be marked lendable.";
    if (others > 0)
        text += " What others (programs, libraries, contexts) hold becomes free when they end or give it back.";
    if (live + requested > card.total) text += " What is in use and this request together exceed the card.";
    return text;
}

}  // namespace movie

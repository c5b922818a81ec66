#include "baselines/native/native_allocator.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace movie {
namespace {

std::int64_t as_signed(Bytes bytes) { return static_cast<std::int64_t>(bytes); }

std::string in_words(Bytes bytes) {
    char text[32];
    if (bytes >= kGiB) {
        std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / static_cast<double>(kGiB));
    } else if (bytes >= kMiB) {
        std::snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / static_cast<double>(kMiB));
    } else {
        std::snprintf(text, sizeof text, "%llu bytes", static_cast<unsigned long long>(bytes));
    }
    return text;
}

}  // namespace

NativeAllocator::NativeAllocator(Driver& driver, const NativeSettings& settings)
    : driver_(driver), heap_(settings), default_pool_(heap_.pool(0)) {
    if (settings.memory_fraction < 1)
        cap_ = static_cast<Bytes>(settings.memory_fraction * static_cast<double>(driver.memory_info().total));
    statistics_.max_split_size = settings.max_split_size == kUnlimited ? -1 : as_signed(settings.max_split_size);
}

// --- malloc ----------------------------------------------------------------------------------------------------------

Address NativeAllocator::malloc(const Request& request) {
    const std::lock_guard lock(mutex_);
    if (request.bytes == 0) throw std::invalid_argument("malloc of 0 bytes");
    if (!uses_.empty()) poll_events();

    Search wanted;
    if (request.bytes > (Bytes{1} << 60)) {  // no rounding could be trusted
        wanted.size = wanted.segment_size = request.bytes;
        out_of_memory(request, wanted);
    }
    wanted.size = heap_.settings().round_size(request.bytes);
    wanted.segment_size = heap_.settings().segment_size(wanted.size);
    NativePool& pool = request.pool == 0 ? default_pool_ : heap_.pool(request.pool);
    pool.released = false;
    wanted.list = &heap_.list(pool.bin_for(wanted.size), request.stream);

    Block* block = acquire(wanted, request);
    if (block == nullptr) out_of_memory(request, wanted);
    return hand_out(block, wanted, request);
}

Block* NativeAllocator::acquire(const Search& wanted, const Request& request) {
    Block* block = search(wanted);
    if (block == nullptr) {
        if (collects_garbage()) collect_garbage();
        block = allocate_segment(wanted, false);
    }
    if (block == nullptr && request.pool == 0) block = borrow_from_lendable_pools(wanted, request.stream);
    if (block == nullptr && release_oversize_blocks(wanted)) block = allocate_segment(wanted, false);
    if (block == nullptr) {
        // Everything idle goes back to the driver, after a wait for all events. Note the hole: a block that this wait
        // returns to its list is not looked for, only the driver is asked again.
        synchronize_events();
        if (heap_.settings().rerun_search) block = search(wanted);
        if (block == nullptr) {
            release_all();
            block = allocate_segment(wanted, true);
        }
    }
    return block;
}

Block* NativeAllocator::search(const Search& wanted) {
    if (collects_garbage()) ++wanted.list->bin->searches;
    return heap_.find(*wanted.list, wanted.size);
}

Block* NativeAllocator::allocate_segment(const Search& wanted, bool is_retry) {
    if (is_retry) ++statistics_.num_alloc_retries;
    if (cap_ != 0 && reserved() + wanted.segment_size > cap_) return nullptr;
    return grow(wanted);
}

Block* NativeAllocator::grow(const Search& wanted) {
    const Outcome<Address> segment = driver_.malloc(wanted.segment_size);
    if (!segment.ok()) return nullptr;
    const PoolKind kind = wanted.list->bin->kind;
    statistics_.segment.increase(kind, 1);
    note_reserved(kind, wanted.segment_size);
    if (wanted.segment_size >= heap_.settings().max_split_size) statistics_.oversize_segments.increase(1);
    return heap_.add_segment(*wanted.list, segment.value, wanted.segment_size);
}

Block* NativeAllocator::borrow_from_lendable_pools(const Search& wanted, Stream stream) {
    for (auto& [id, pool] : heap_.pools()) {
        if (id == 0 || !pool.lendable) continue;
        Block* block = heap_.find(heap_.list(pool.bin_for(wanted.size), stream), wanted.size);
        if (block != nullptr) return block;
    }
    return nullptr;
}

// With a split limit: an idle block beyond the limit that is large enough, or the largest of them until they add up.
bool NativeAllocator::release_oversize_blocks(const Search& wanted) {
    const Bytes limit = heap_.settings().max_split_size;
    if (limit == kUnlimited || heap_.settings().expandable_segments) return false;
    const Bytes needed = std::max(wanted.size, limit);
    auto& blocks = wanted.list->blocks;
    const auto fits = blocks.lower_bound({.size = needed});
    if (fits != blocks.end()) return release(fits->block);
    Bytes released = 0;
    while (released < needed && !blocks.empty()) {
        Block* largest = blocks.rbegin()->block;
        const Bytes size = largest->size;
        if (size < limit || !release(largest)) break;
        released += size;
    }
    return released >= needed;
}

void NativeAllocator::release_all() {
    if (!begin_releases()) return;
    release_blocks(default_pool_.large);
    release_blocks(default_pool_.small);
    auto& pools = heap_.pools();
    for (auto at = pools.begin(); at != pools.end();) {
        const PoolId id = at->first;
        NativePool& pool = at->second;
        ++at;
        if (id == 0 || !pool.released) continue;
        release_blocks(pool.small);
        release_blocks(pool.large);
        if (pool.small.segments + pool.large.segments == 0) heap_.forget_pool(id);
    }
}

// Releases idle segments of more than average age, in sweeps, until the reserved bytes are back below the threshold. A
// sweep does not stop at the target.
void NativeAllocator::collect_garbage() {
    const auto threshold =
        static_cast<Bytes>(heap_.settings().garbage_collection_threshold * static_cast<double>(cap_));
    if (reserved() <= threshold) return;
    const Bytes target = reserved() - threshold;
    Bin& bin = default_pool_.large;
    const auto age = [&bin](const Block* block) { return bin.searches - block->freed_at; };

    std::vector<Block*> idle;
    std::uint64_t total_age = 0;
    for (const auto& [handle, list] : bin.lists) {
        for (const FreeKey& key : list.blocks) {
            if (key.block->is_split()) continue;
            idle.push_back(key.block);
            total_age += age(key.block);
        }
    }
    Bytes reclaimed = 0;
    for (bool progress = true; progress && reclaimed < target && !idle.empty();) {
        const double average = static_cast<double>(total_age) / static_cast<double>(idle.size());
        progress = false;
        std::vector<Block*> kept;
        for (Block* block : idle) {
            const std::uint64_t block_age = age(block);
            const Bytes size = block->size;
            if (static_cast<double>(block_age) >= average && release(block)) {
                progress = true;
                reclaimed += size;
                total_age -= block_age;
            } else {
                kept.push_back(block);
            }
        }
        idle.swap(kept);
    }
}

void NativeAllocator::out_of_memory(const Request& request, const Search& wanted) {
    ++statistics_.num_ooms;
    const MemoryInfo card = driver_.memory_info();
    // Like PyTorch this says how large a segment it asked the driver for; the request itself may be smaller.
    std::string report = "out of memory: tried to allocate " + in_words(wanted.segment_size) + " for a request of " +
                         in_words(request.bytes) + " on stream " + std::to_string(request.stream);
    if (request.pool != 0) report += " in pool " + std::to_string(request.pool);
    report += "; the card has " + in_words(card.total) + ", of which " + in_words(card.free) + " are free";
    if (cap_ != 0) report += "; the memory cap is " + in_words(cap_);
    const auto allocated = static_cast<Bytes>(statistics_.allocated_bytes[PoolKind::all].current);
    report += "; " + in_words(allocated) + " are allocated and " + in_words(reserved() - allocated) +
              " are reserved but unallocated";
    throw OutOfMemory(request, report);
}

Address NativeAllocator::hand_out(Block* block, const Search& wanted, const Request& request) {
    block = place(block, wanted.size);
    block->requested = request.bytes;
    live_.insert_or_assign(block->address, block);
    live_requested_ += request.bytes;
    const PoolKind kind = block->kind();
    note_split_blocks(kind);
    statistics_.allocation.increase(kind, 1);
    statistics_.allocated_bytes.increase(kind, as_signed(block->size));
    statistics_.active.increase(kind, 1);
    statistics_.active_bytes.increase(kind, as_signed(block->size));
    statistics_.requested_bytes.increase(kind, as_signed(block->requested));
    if (block->size >= heap_.settings().max_split_size) statistics_.oversize_allocations.increase(1);
    return block->address;
}

// --- free ------------------------------------------------------------------------------------------------------------

void NativeAllocator::free(Address address) {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(address);
    if (found == live_.end())
        throw std::invalid_argument("free of " + std::to_string(address) + ", which is not a live block");
    Block* block = found->second;
    live_.erase_fast(found);
    live_requested_ -= block->requested;
    const PoolKind kind = block->kind();
    statistics_.allocation.decrease(kind, 1);
    statistics_.allocated_bytes.decrease(kind, as_signed(block->size));
    if (block->size >= heap_.settings().max_split_size) statistics_.oversize_allocations.decrease(1);
    if (block->users.empty()) {
        finish_free(block);
    } else {
        block->state = Block::State::pending;
        record_uses(block);
    }
}

void NativeAllocator::finish_free(Block* block) {
    const PoolKind kind = block->kind();
    statistics_.active.decrease(kind, 1);
    statistics_.active_bytes.decrease(kind, as_signed(block->size));
    statistics_.requested_bytes.decrease(kind, as_signed(block->requested));
    put_back(block);
    note_split_blocks(kind);
}

void NativeAllocator::note_split_blocks(PoolKind kind) {
    if (heap_.settings().expandable_segments) return;  // PyTorch does not count them there
    const auto follow = [kind](StatByKind& figure, std::uint64_t now) {
        const std::int64_t change = static_cast<std::int64_t>(now) - figure[kind].current;
        if (change > 0) figure.increase(kind, change);
        if (change < 0) figure.decrease(kind, -change);
    };
    follow(statistics_.inactive_split, heap_.split_blocks(kind));
    follow(statistics_.inactive_split_bytes, heap_.split_bytes(kind));
}

// --- other streams ---------------------------------------------------------------------------------------------------

void NativeAllocator::record_stream(Address address, Stream stream) {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(address);
    if (found == live_.end()) return;
    Block* block = found->second;
    if (stream == block->list->stream) return;
    if (std::find(block->users.begin(), block->users.end(), stream) == block->users.end())
        block->users.push_back(stream);
}

void NativeAllocator::record_uses(Block* block) {
    for (const Stream stream : block->users) {
        const Outcome<Event> event = driver_.event_record(stream);
        uses_[stream].push_back({.event = event.ok() ? event.value : 0, .block = block});
        ++block->events;
    }
    block->users.clear();
}

// Whether the use has passed; if so, it no longer holds its block.
bool NativeAllocator::resolve(Stream stream, Use& use, bool wait) {
    if (use.event == 0) {
        const Outcome<Event> event = driver_.event_record(stream);
        if (!event.ok()) return false;
        use.event = event.value;
    }
    const Status status = wait ? driver_.event_synchronize(use.event) : driver_.event_query(use.event);
    if (status != Status::ok) return false;
    driver_.event_destroy(use.event);
    if (--use.block->events == 0) finish_free(use.block);
    return true;
}

void NativeAllocator::poll_events() {
    for (auto at = uses_.begin(); at != uses_.end();) {
        auto& [stream, uses] = *at;
        while (!uses.empty() && resolve(stream, uses.front(), false)) uses.pop_front();
        at = uses.empty() ? uses_.erase(at) : std::next(at);
    }
}

void NativeAllocator::synchronize_events() {
    ++statistics_.num_sync_all_streams;
    for (auto at = uses_.begin(); at != uses_.end();) {
        auto& [stream, uses] = *at;
        while (!uses.empty() && resolve(stream, uses.front(), true)) uses.pop_front();
        at = uses.empty() ? uses_.erase(at) : std::next(at);
    }
}

// --- giving memory back ----------------------------------------------------------------------------------------------

bool NativeAllocator::release(Block* block) {
    const Bytes size = block->size;
    const PoolKind kind = block->kind();
    if (block->is_split() || driver_.mfree(block->address) != Status::ok) return false;
    heap_.remove_segment(block);
    statistics_.segment.decrease(kind, 1);
    note_returned(kind, size);
    if (size >= heap_.settings().max_split_size) statistics_.oversize_segments.decrease(1);
    return true;
}

void NativeAllocator::note_reserved(PoolKind kind, Bytes bytes) {
    ++statistics_.num_device_alloc;
    statistics_.reserved_bytes.increase(kind, as_signed(bytes));
}

void NativeAllocator::note_returned(PoolKind kind, Bytes bytes) {
    ++statistics_.num_device_free;
    statistics_.reserved_bytes.decrease(kind, as_signed(bytes));
}

std::vector<Block*> NativeAllocator::releasable(const FreeList& list) const {
    std::vector<Block*> blocks;
    const bool in_part = heap_.settings().expandable_segments;
    if (!in_part && list.whole_bytes == 0) return blocks;
    for (const FreeKey& key : list.blocks)
        if (in_part || !key.block->is_split()) blocks.push_back(key.block);
    return blocks;
}

void NativeAllocator::release_blocks(Bin& bin) {
    for (auto& [handle, list] : bin.lists)
        for (Block* block : releasable(list)) release(block);
}

void NativeAllocator::empty_cache() {
    const std::lock_guard lock(mutex_);
    synchronize_events();
    release_all();
    after_empty_cache();
}

// PyTorch has no such call: what is idle goes back, the largest segments first; only if that is too little, events are
// waited for.
Bytes NativeAllocator::reclaim(Bytes bytes) {
    const std::lock_guard lock(mutex_);
    const Bytes before = reserved();
    const auto released = [&] { return before - reserved(); };
    const auto release_idle = [&] {
        if (!begin_releases()) return;
        for (auto& [id, pool] : heap_.pools()) {
            if (id != 0 && !pool.released) continue;
            for (Bin* bin : {&pool.large, &pool.small}) {
                for (auto& [handle, list] : bin->lists) {
                    const std::vector<Block*> blocks = releasable(list);
                    for (auto at = blocks.rbegin(); at != blocks.rend() && released() < bytes; ++at) release(*at);
                }
            }
        }
    };
    poll_events();
    release_idle();
    if (released() < bytes) {
        synchronize_events();
        release_idle();
    }
    return released();
}

void NativeAllocator::release_pool(PoolId id) {
    const std::lock_guard lock(mutex_);
    if (id == 0) throw std::invalid_argument("the default pool cannot be released");
    heap_.pool(id).released = true;
}

void NativeAllocator::set_pool_lendable(PoolId id, bool lendable) {
    const std::lock_guard lock(mutex_);
    if (id == 0) throw std::invalid_argument("the default pool lends to nobody");
    heap_.pool(id).lendable = lendable;
}

void NativeAllocator::set_memory_cap(Bytes bytes) {
    const std::lock_guard lock(mutex_);
    cap_ = bytes;
}

// --- reports ---------------------------------------------------------------------------------------------------------

Statistics NativeAllocator::statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
}

Unusable NativeAllocator::unusable(Stream stream, PoolId pool) const {
    const std::lock_guard lock(mutex_);
    Unusable result;
    Bytes listed = 0;
    for (const auto& [id, other] : heap_.pools()) {
        for (const Bin* bin : {&other.small, &other.large}) {
            for (const auto& [handle, list] : bin->lists) {
                listed += list.split_bytes + list.whole_bytes;
                if (id != pool) {
                    result.pool += list.split_bytes + list.whole_bytes;
                } else if (list.stream != stream) {
                    result.stream += list.split_bytes + list.whole_bytes;
                } else {
                    result.hard += list.split_bytes;
                    result.soft += list.whole_bytes;
                }
            }
        }
    }
    const auto allocated = static_cast<Bytes>(statistics_.allocated_bytes[PoolKind::all].current);
    const auto active = static_cast<Bytes>(statistics_.active_bytes[PoolKind::all].current);
    result.stream += active - allocated;
    // What is in no block: left over where the driver failed, or by relatives.
    result.soft += reserved() - active - listed;
    result.rounding = allocated - live_requested_;
    return result;
}

}  // namespace movie

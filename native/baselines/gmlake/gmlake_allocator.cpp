#include "baselines/gmlake/gmlake_allocator.h"

#include <algorithm>
#include <stdexcept>

#include "baselines/gmlake/chunk_driver.h"

namespace movie {

using gmlake::kChunk;

namespace {

constexpr int kRounds = 3;  // of dropping views when a range cannot be mapped

NativeSettings rounding() {
    NativeSettings settings;
    settings.large_step = kChunk;
    return settings;
}

}  // namespace

GmlakeAllocator::GmlakeAllocator(Driver& driver, const GmlakeSettings& settings)
    : NativeAllocator(driver, rounding()), settings_(settings) {
    if (kChunk % driver.granularity() != 0)
        throw std::invalid_argument("gmlake: its chunks of 2 MiB must be a multiple of the driver's granularity, " +
                                    std::to_string(driver.granularity()) + " bytes");
}

// --- malloc ----------------------------------------------------------------------------------------------------------

Block* GmlakeAllocator::acquire(const Search& wanted, const Request& /*request*/) {
    if (!condemned_.empty()) drop_condemned(false);
    Block* block = search(wanted);
    if (block == nullptr) block = stitch(wanted);
    if (block == nullptr) block = allocate_segment(wanted, false);
    if (block == nullptr) block = stitch(wanted);  // growth may have dropped views
    if (block == nullptr) {
        synchronize_events();
        release_all();
        block = allocate_segment(wanted, true);
    }
    if (block == nullptr) block = stitch(wanted);
    return block;
}

Block* GmlakeAllocator::search(const Search& wanted) {
    Block* block = NativeAllocator::search(wanted);
    if (block != nullptr || wanted.list->bin->small()) return block;
    const auto shelf = shelves_.find(wanted.list);
    if (shelf == shelves_.end()) return nullptr;
    const auto at = shelf->second.lower_bound({.size = wanted.size});
    if (at == shelf->second.end()) return nullptr;
    if (static_cast<double>(at->size) > static_cast<double>(wanted.size) * settings_.reuse) return nullptr;
    ++counters_.reused;
    return &at->view->block;
}

Block* GmlakeAllocator::stitch(const Search& wanted) {
    const auto& free = wanted.list->blocks;
    if (wanted.list->bin->small() || wanted.size < settings_.frag || free.size() < 2) return nullptr;
    std::vector<Block*> chosen;
    Bytes found = 0;
    for (auto at = free.rbegin(); at != free.rend() && found < wanted.size; ++at) {
        chosen.push_back(at->block);
        found += at->size;
    }
    if (found < wanted.size) return nullptr;

    auto owned = std::make_unique<View>();
    View& view = *owned;
    views_.emplace(&view.block, std::move(owned));
    view.size = wanted.size;
    view.block.list = wanted.list;
    view.chunks = chunks_of(chosen, wanted.size);
    view.free = view.chunks.size();
    view.live = true;  // not to be dropped below
    for (Chunk* chunk : view.chunks) chunk->views.push_back(&view);
    bool mapped = false;
    for (int round = 0; round < kRounds && !mapped; ++round) {
        mapped = gmlake::map(driver_, view);
        if (mapped) break;
        if (!gmlake::unmap(driver_, view) || view.address != 0) break;
        collect_views(round, wanted.size);
    }
    view.live = mapped;
    if (!mapped) {
        if (drop(view)) {
            --counters_.evicted;  // it never was one
        } else {
            view.condemned = true;
            condemned_.push_back(&view);
        }
        return nullptr;
    }
    view.block.address = view.address;
    ++counters_.created;
    stitched_ += view.size;
    if (stitched_ > settings_.auto_gc) collect_views(2, 0);
    return &view.block;
}

Block* GmlakeAllocator::grow(const Search& wanted) {
    if (wanted.list->bin->small()) return NativeAllocator::grow(wanted);
    const auto of_views = [&] {
        Bytes bytes = 0;
        for (const auto& [block, view] : views_)
            if (!view->live && !view->condemned && block->list->stream == wanted.list->stream) bytes += view->size;
        return bytes;
    };
    for (int round = 0; round < kRounds; ++round) {
        auto segment = std::make_unique<Segment>();
        const bool obtained = gmlake::obtain(driver_, *segment, wanted.segment_size / kChunk);
        note_reserved(PoolKind::large, segment->held * kChunk);
        if (obtained) {
            Block* block = heap_.add_segment(*wanted.list, segment->address, segment->size);
            segments_.emplace(block->segment, std::move(segment));
            statistics_.segment.increase(PoolKind::large, 1);
            return block;
        }
        retire(std::move(segment));
        // Views go only where it must have been addresses that were missing.
        if (driver_.memory_info().free <= wanted.segment_size || of_views() < wanted.segment_size) break;
        collect_views(round, wanted.segment_size);
    }
    return nullptr;
}

Block* GmlakeAllocator::place(Block* block, Bytes size) {
    if (View* view = view_of(block)) {
        occupy(*view, size);
        return block;
    }
    block = heap_.take(block, size);
    if (block->kind() == PoolKind::large)
        for (Chunk& chunk : chunks_of(*block)) use(chunk);
    return block;
}

void GmlakeAllocator::occupy(View& view, Bytes size) {
    if (view.shelved) unshelve(view);
    view.live = true;
    view.block.size = size;
    view.block.state = Block::State::live;
    const std::size_t count = size / kChunk;
    for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
        const Chunk& first = *view.chunks[begin];
        for (end = begin + 1; end < count; ++end) {  // as far as chunks are neighbours at home too
            const Chunk& chunk = *view.chunks[end];
            if (chunk.segment != first.segment || chunk.home != first.home + (end - begin) * kChunk) break;
        }
        Block* around = heap_.free_block_at(*view.block.list, first.home);
        view.pieces.push_back(heap_.occupy(heap_.cut(around, first.home), (end - begin) * kChunk));
    }
    for (std::size_t i = 0; i < count; ++i) use(*view.chunks[i]);
}

// --- free ------------------------------------------------------------------------------------------------------------

void GmlakeAllocator::put_back(Block* block) {
    const Event done = record(*block);
    View* view = view_of(block);
    if (view == nullptr) {
        if (done != 0) driver_.event_destroy(done);  // it orders blocks in the release; views alone need it here
        if (block->kind() == PoolKind::large)
            for (Chunk& chunk : chunks_of(*block)) unuse(chunk);
        heap_.give_back(block);
        return;
    }
    view->live = false;
    for (std::size_t i = 0; i < block->size / kChunk; ++i) unuse(*view->chunks[i]);
    for (Block* piece : view->pieces) heap_.give_back(piece);
    view->pieces.clear();
    block->state = Block::State::free;
    if (view->freed != 0) driver_.event_destroy(view->freed);
    view->freed = done;
    view->freed_at = ++frees_;
    if (view->condemned) condemned_.push_back(view);
}

Event GmlakeAllocator::record(const Block& block) {
    const Outcome<Event> event = driver_.event_record(block.list->stream);
    return event.ok() ? event.value : 0;
}

// --- which views can serve -------------------------------------------------------------------------------------------

void GmlakeAllocator::use(Chunk& chunk) {
    for (View* view : chunk.views) {
        if (view->shelved) unshelve(*view);
        --view->free;
    }
}

void GmlakeAllocator::unuse(Chunk& chunk) {
    for (View* view : chunk.views) {
        ++view->free;
        if (view->free == view->chunks.size() && !view->live && !view->condemned) shelve(*view);
    }
}

void GmlakeAllocator::shelve(View& view) {
    shelves_[view.block.list].insert({view.size, view.block.address, &view});
    view.shelved = true;
}

void GmlakeAllocator::unshelve(View& view) {
    shelves_[view.block.list].erase({view.size, view.block.address, &view});
    view.shelved = false;
}

GmlakeAllocator::View* GmlakeAllocator::view_of(const Block* block) const {
    const auto found = views_.find(block);
    return found == views_.end() ? nullptr : found->second.get();
}

std::span<GmlakeAllocator::Chunk> GmlakeAllocator::chunks_of(const Block& block) {
    Segment& segment = *segments_.at(block.segment);
    return std::span(segment.chunks).subspan((block.address - segment.address) / kChunk, block.size / kChunk);
}

std::vector<GmlakeAllocator::Chunk*> GmlakeAllocator::chunks_of(const std::vector<Block*>& blocks, Bytes size) {
    std::vector<Chunk*> chunks;
    for (const Block* block : blocks)
        for (Chunk& chunk : chunks_of(*block))
            if (chunks.size() < size / kChunk) chunks.push_back(&chunk);
    return chunks;
}

// --- giving back -----------------------------------------------------------------------------------------------------

bool GmlakeAllocator::begin_releases() {
    if (driver_.synchronize() != Status::ok) return false;
    drop_condemned(true);
    clear_retired();
    return true;
}

bool GmlakeAllocator::release(Block* block) {
    if (block->kind() == PoolKind::small) return NativeAllocator::release(block);
    if (block->is_split()) return false;
    const auto at = segments_.find(block->segment);
    for (const Chunk& chunk : at->second->chunks) {
        const std::vector<View*> views = chunk.views;  // drop() takes them out
        for (View* view : views) {
            if (view->live)
                view->condemned = true;
            else if (!drop(*view))
                return false;
        }
    }
    if (!gmlake::unmap(driver_, *at->second)) return false;
    heap_.remove_segment(block);
    statistics_.segment.decrease(PoolKind::large, 1);
    std::unique_ptr<Segment> segment = std::move(at->second);
    segments_.erase(at);
    retire(std::move(segment));
    return true;
}

void GmlakeAllocator::retire(std::unique_ptr<Segment> segment) {
    if (!clear(*segment)) retired_.push_back(std::move(segment));
}

void GmlakeAllocator::clear_retired() {
    std::erase_if(retired_, [this](const std::unique_ptr<Segment>& segment) { return clear(*segment); });
}

bool GmlakeAllocator::clear(Segment& segment) {
    if (!gmlake::unmap(driver_, segment)) return false;
    const std::size_t held = segment.held;
    gmlake::release_chunks(driver_, segment);
    if (segment.held < held) note_returned(PoolKind::large, (held - segment.held) * kChunk);
    return segment.held == 0 && segment.address == 0;
}

bool GmlakeAllocator::drop(View& view) {
    if (!gmlake::unmap(driver_, view)) return false;
    if (view.address != 0) {  // addresses that the driver would not take back yet
        auto rest = std::make_unique<Segment>();
        rest->address = view.address;
        rest->size = view.size;
        retired_.push_back(std::move(rest));
    }
    if (view.shelved) unshelve(view);
    for (Chunk* chunk : view.chunks) std::erase(chunk->views, &view);
    if (view.freed != 0) driver_.event_destroy(view.freed);
    ++counters_.evicted;
    views_.erase(&view.block);
    return true;
}

void GmlakeAllocator::drop_condemned(bool waited) {
    const std::size_t before = condemned_.size();
    std::erase_if(condemned_, [&](View* view) {
        const bool unused = waited || (view->freed != 0 && driver_.event_query(view->freed) == Status::ok);
        return unused && drop(*view);
    });
    if (condemned_.size() < before) clear_retired();
}

void GmlakeAllocator::collect_views(int round, Bytes size) {
    Bytes dropped = 0;
    const auto collect = [&](bool idle, Bytes enough) {
        std::map<Stream, std::vector<View*>> by_stream;
        for (const auto& [block, view] : views_)
            if (!view->live && !view->condemned && view->shelved == idle)
                by_stream[block->list->stream].push_back(view.get());
        for (auto& [stream, views] : by_stream) {
            std::sort(views.begin(), views.end(),
                      [](const View* a, const View* b) { return a->freed_at < b->freed_at; });
            for (View* view : views) {
                if (view->freed == 0 || driver_.event_query(view->freed) != Status::ok) break;
                const Bytes bytes = view->size;
                if (drop(*view)) dropped += bytes;
                if (enough > 0 && dropped >= enough) break;
            }
        }
    };
    collect(false, round <= 1 ? size << (2 * (round + 1)) : 0);
    if (round > 0) collect(true, 0);
    stitched_ -= std::min(stitched_, dropped);
}

ViewCounters GmlakeAllocator::views() const { return counters_; }

}  // namespace movie

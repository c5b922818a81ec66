// The MOVie allocator of one device: slabs for small requests, arenas that grow, and views that put free pages side by
// side where no free range is long enough. ARCHITECTURE.md tells how the parts play together.
#pragma once

#include <tsl/robin_map.h>

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>

#include "allocator/allocator.h"
#include "allocator/config.h"
#include "allocator/fork_guard.h"
#include "allocator/history.h"
#include "allocator/layout.h"
#include "allocator/moment.h"
#include "allocator/pool.h"
#include "memory/page_table.h"
#include "memory/transaction.h"
#include "ordering/timelines.h"
#include "placement/lifetimes.h"

namespace movie {

// Addresses are multiples of 512: spreads them over all bits.
struct AddressHash {
    std::size_t operator()(Address address) const {
        const std::uint64_t mixed = address * 0x9e3779b97f4a7c15;
        return static_cast<std::size_t>(mixed ^ (mixed >> 32));
    }
};

class MovieAllocator final : public Allocator {
  public:
    // Throws std::invalid_argument if the configuration does not fit the device.
    MovieAllocator(Driver& driver, const MovieConfig& config);
    ~MovieAllocator() override;

    Address malloc(const Request& request) override;
    void free(Address address) override;
    void record_stream(Address address, Stream stream) override;
    void empty_cache() override;
    Bytes reclaim(Bytes bytes) override;
    void release_pool(PoolId pool) override;
    void set_pool_lendable(PoolId pool, bool lendable) override;
    void set_memory_cap(Bytes bytes) override;
    [[nodiscard]] Statistics statistics() const override;
    [[nodiscard]] Unusable unusable(Stream stream, PoolId pool) const override;
    [[nodiscard]] ViewCounters views() const override;

    // While any thread captures a graph: no event is queried, nothing is unmapped, memory is reused on its own stream
    // only.
    void begin_capture();
    void end_capture();
    // The range is exported, registered or captured: its pages stay where they are mapped from now on.
    void pin(Address address);
    // What lives in the pool now; views that hold some of it stay as they are for as long as the pool lives.
    PoolMoment moment(PoolId pool);
    struct Rewound {
        std::vector<Address> freed;  // all blocks that lived before
        std::vector<Address> live;   // all that live now: a block may be among both
    };
    // Back to an earlier moment of its pool, which has to live still. Throws std::runtime_error where a block cannot be
    // had again: other streams still use its memory, or the pool lent it.
    Rewound rewind(const PoolMoment& moment);
    // Whether `blocks` are all that live in the pool.
    [[nodiscard]] bool lives_exactly(PoolId pool, const std::unordered_set<Address>& blocks) const;
    // Asked, before a request fails, to give back memory of the card that others hold; returns how much came free.
    // Called under the allocator's lock: it must not call the allocator.
    void on_shortage(std::function<Bytes(Bytes)> reclaim);
    // Events are kept from now on, the last `most` of them (0: none); those kept before are dropped (History::restart).
    // `source` says, in
    // the thread of a malloc() or free() and before any lock is taken, where in the program that is; null: nobody does.
    using ContextSource = std::uint64_t (*)(bool of_free);
    void record_history(std::size_t most, ContextSource source = nullptr, bool keep = false);
    [[nodiscard]] std::vector<HistoryEvent> history() const;
    // What lies where now.
    [[nodiscard]] Layout layout() const;
    void reset_peak_statistics();
    void reset_accumulated_statistics();
    struct BlockRange {
        Address begin = 0;
        Bytes size = 0;
    };
    // The live block that begins at the address.
    [[nodiscard]] std::optional<BlockRange> block_at(Address address) const;

  private:
    // Where a request was placed.
    struct Placement {
        Address address = 0;
        View* view = nullptr;
        std::vector<Piece> pieces{};
    };
    // How far a search may go.
    struct Reach {
        bool wait = false;  // memory behind fences, after waiting on the device
        bool lend = false;  // pages of lendable pools
        bool ask = false;   // ask the driver what the card has left, however lately that was done
    };
    struct Site {  // who asks: fixed during a request
        Pool& pool;
        TimelineId timeline;
        ArenaId arena;  // into which it grows
        Bytes bytes;    // rounded
        Recall* recall = nullptr;
    };
    // Free whole pages, side by side at home, with one likely wait. Sizes of pages and views are counted in grains.
    struct PageRun {
        Address begin = 0;
        std::uint32_t grains = 0;
        std::uint32_t wait = 0;
        ArenaId arena = 0;
        Pool* pool = nullptr;
    };
    // A page of which only the beginning or the end is free.
    struct OddEnd {
        Address begin = 0, end = 0;
        ArenaId arena = 0;
        bool head = false;  // the end of its page is free: it can only be the first piece of a view
        [[nodiscard]] Bytes size() const { return end - begin; }
    };
    struct FreePages {
        std::vector<PageRun> runs;
        std::vector<OddEnd> odd;
        std::uint64_t grains = 0;
    };
    // What a new view would consist of: whole pages, between the free end of one page and the free beginning of
    // another.
    struct Recipe {
        std::uint64_t grains = 0;
        const OddEnd* head = nullptr;
        const OddEnd* tail = nullptr;
        Bytes head_bytes = 0;  // used of the head
    };

    struct Growth {
        Address begin = 0, end = 0;  // pages to add
        Address at = 0;              // where the request goes
        [[nodiscard]] Bytes size() const { return end - begin; }
    };
    struct Gap {  // slots of a view whose pages leave it, or that have none: [first, behind)
        std::size_t first = 0, behind = 0;
    };
    struct Edit {
        Views::iterator view{};
        std::vector<Gap> gaps{};   // in order
        std::uint64_t grains = 0;  // needed to fill them, as far as the block goes
        Bytes cost = 0;
    };

    // Who asked last: most requests come from the same stream and pool as the one before.
    struct Asker {
        Stream stream = 0;
        PoolId id = 0;
        Pool* pool = nullptr;  // null: nobody yet
        TimelineId timeline = 0;
        ArenaId arena = 0;
        ArenaId slab_arena = 0;
        SlabFamily* family = nullptr;
        Recall* recall = nullptr;
    };

    // --- movie_allocator.cpp: blocks
    LiveBlock& book(LiveBlock block, PoolKind kind);
    [[nodiscard]] bool counts_lifetimes() const { return config_.policy == Policy::lean && config_.lifetimes; }
    // A block that is in the books no more.
    void retire(LiveBlock& block, std::uint64_t context);
    void note_pieces(HistoryEvent::Kind kind, const LiveBlock& block);
    [[nodiscard]] std::uint64_t context_now(bool of_free) const {
        const ContextSource source = context_source_.load(std::memory_order_relaxed);
        return source == nullptr ? 0 : source(of_free);
    }
    Fence fence_of(const LiveBlock& block);
    // Empty slabs that touch [begin, end) give their pages back. False: there were none.
    bool return_empty_slabs(Pool& pool, Address begin = 0, Address end = ~Address{0});
    void collect();
    void settle();

    // --- pools.cpp
    const Asker& asker_for(const Request& request);
    Pool& pool_of(PoolId id);
    ArenaId arena_for(Pool& pool, TimelineId timeline);
    ArenaId slab_arena_for(Pool& pool, TimelineId timeline);
    ArenaId add_arena(Pool& pool, TimelineId timeline);
    SlabFamily& family_for(Pool& pool, TimelineId timeline);
    Recall& recall_for(Pool& pool, TimelineId timeline);

    // --- reports.cpp
    [[nodiscard]] Unusable unusable_for(TimelineId timeline, PoolId id) const;

    // --- serve.cpp: the steps of a request, each of which succeeds or changes nothing
    std::optional<Placement> place_large(const Site& site, const Reach& reach);
    std::optional<Placement> in_own_arena(const Site& site);
    [[nodiscard]] std::optional<Address> place_in_own_arena(const Site& site) const;
    // The lowest place, but one that leaves whole pages behind it first.
    [[nodiscard]] std::optional<Address> low_place(const RunIndex& clear, Bytes bytes) const;
    std::optional<Placement> as_before(const Site& site, const Reach& reach);
    std::optional<Placement> from_free_memory(const Site& site, const Reach& reach);
    std::optional<Placement> contiguous_anywhere(const Site& site, const Reach& reach);
    std::optional<SlabFamily::Place> place_small(const Site& site, ArenaId slabs, SlabFamily& family,
                                                 const Reach& reach);
    std::optional<Piece> page_for_slab(const Site& site, ArenaId slabs, const Reach& reach);
    std::optional<Piece> own_page_for_slab(const Site& site, ArenaId arena);
    std::optional<Piece> page_of_others_for_slab(const Site& site, const Reach& reach);
    // Waits on the device for what touches [begin, end) and takes it. False: the wait failed, nothing was taken.
    bool wait_and_take(const Site& site, Address begin, Address end, Pool& from);
    bool wait_for(const Site& site, const Fence& fence);
    [[nodiscard]] std::uint32_t likely_wait(TimelineId timeline, const Fence& fence) const;

    // --- sparing_waits.cpp: what policy lean does before a stream has to wait for another
    [[nodiscard]] bool follows_with_waits(const Site& site) const;
    std::optional<Placement> spare_a_wait(const Site& site, const Reach& reach);
    [[nodiscard]] bool may_grow_ahead(const Pool& pool, Bytes growth, Bytes request);
    bool grow_ahead(const Site& page);

    // --- growth.cpp
    bool has_room(Bytes bytes, bool ask);
    [[nodiscard]] Growth plan_growth(const Site& site) const;
    // How large a page may be, in grains, that is obtained now for so many bytes.
    [[nodiscard]] std::uint32_t most_grains(Bytes growth = 0) const;
    bool fill(Pool& pool, ArenaId arena, Address begin, Address end);
    void count_reserved(std::int64_t bytes, std::int64_t pages);
    // Memory that the driver refused to take back is still reserved, and of no use.
    void count_debris();
    void clear_debris();
    std::optional<Placement> grow_contiguous(const Site& site, bool ask);
    std::optional<Placement> grow_within_budget(const Site& site);
    // Whether growing for the request would leave more of what is reserved unused than need be.
    [[nodiscard]] bool wastes(const Site& site) const;
    // With what lies free and needs no wait, and only what is missing beside it.
    std::optional<Placement> grow_sparingly(const Site& site);
    [[nodiscard]] bool within_budget(Bytes bytes) const;
    // The ranges that were added are appended to `grown`, also where the rest failed.
    bool grow_grains(const Site& site, std::uint64_t grains, bool ask, std::vector<Growth>* grown = nullptr);
    std::optional<Placement> grow_and_stitch(const Site& site, const Reach& reach);

    // --- free_pages.cpp
    void add_free_pages(const Site& site, Pool& from, const Reach& reach, FreePages& free);
    FreePages free_pages(const Site& site, const Reach& reach);
    [[nodiscard]] Recipe recipe_for(const FreePages& free, Bytes bytes) const;
    [[nodiscard]] std::uint64_t grains_missing(const Site& site, const Reach& reach);
    std::optional<std::vector<PageRun>> choose(const FreePages& free, std::uint64_t grains);

    // --- stitch.cpp
    std::optional<Placement> occupy(const Site& site, View& view, Bytes head);
    [[nodiscard]] bool is_ready(const Site& site, const View& view, bool may_wait) const;
    std::optional<Placement> ready_view(const Site& site, const Reach& reach);
    std::optional<Placement> reuse(const Site& site, View& view);
    // A view maps (change 1), or no longer maps (-1), what is in these slots.
    void count_mapped(const View& view, std::size_t first, std::size_t behind, std::int64_t change);
    std::optional<Placement> stitch(const Site& site, const Reach& reach);
    std::optional<Placement> make_view(const Site& site, const Reach& reach);

    // --- edit_view.cpp
    // What it takes until `edit.view` can hold the request. False: as much as the limit, or more.
    bool plan_edit(const Site& site, const Reach& reach, Bytes limit, Edit& edit);
    std::optional<Edit> cheapest_edit(const Site& site, const Reach& reach);
    std::optional<Placement> apply(const Site& site, const Reach& reach, const Edit& edit);
    bool replace(Transaction& transaction, const Site& site, const Edit& edit, const std::vector<Address>& fresh);
    void exclude(FreePages& free, std::vector<Address> slots) const;
    void keep_smallest(FreePages& free);

    // --- giving_back.cpp
    bool host_passed(const Fence& fence, bool wait);
    // Waits, on the host, until no small block of the pool is behind work of other streams.
    void wait_for_slabs_of(Pool& pool);
    Bytes give_back(Bytes most, bool wait);
    // The pages of a free range that nothing uses leave; returns their bytes.
    Bytes shrink(Pool& pool, ArenaId arena, Address begin, Address end);
    bool clear_views_of(Address begin, Address end, bool wait);
    bool unmap_slots(View& view, std::size_t first, std::size_t behind);
    bool evict(Pool& pool, Views::iterator view);
    void drop_empty_views();
    void drop_idle_views();
    void keep_within_bounds();

    // --- rewind.cpp
    [[nodiscard]] PoolMoment::Block held_as(const LiveBlock& block) const;
    std::vector<LiveBlock*> live_in(const Pool& pool);  // by address
    bool take_again(Pool& pool, const PoolMoment::Block& held);
    // The slab of this page, made if the page is free. Null: it is not.
    Slab* slab_at(const Site& site, SlabFamily& family, Address page);

    // --- out_of_memory.cpp
    std::optional<Placement> last_resorts(const Site& site, Bytes requested);
    [[noreturn]] void raise(const Site& site, Bytes requested);
    [[nodiscard]] std::string report(const Site& site, Bytes requested);

    ForkGuard fork_;
    mutable std::mutex mutex_;
    Driver& driver_;
    MovieConfig config_;
    Bytes grain_;
    Timelines timelines_;
    Debris debris_;
    PageTable table_;
    std::vector<std::unique_ptr<Pool>> pools_;  // the default pool first
    std::unordered_map<PoolId, Pool*> pool_by_id_;
    tsl::robin_map<Address, LiveBlock*, AddressHash> blocks_;
    std::deque<LiveBlock> store_;
    std::vector<LiveBlock*> spare_;
    Asker last_;
    Statistics statistics_;
    ViewCounters view_counters_;
    History history_;
    std::atomic<ContextSource> context_source_{nullptr};
    std::function<Bytes(Bytes)> on_shortage_;
    Lifetimes lifetimes_;  // of blocks outside slabs, under policy lean
    Bytes cap_ = 0;
    Bytes reserved_ = 0;        // by our own count; reports use the device's
    Bytes most_reserved_ = 0;   // ever
    Debris::Held debris_held_;  // of which in the debris
    Bytes withheld_ = 0;        // of lenders' pages, beyond the blocks in them
    Bytes most_in_use_ = 0;     // by blocks, after rounding
    Bytes freed_ = 0;           // of blocks, since the beginning
    Bytes room_ = 0;            // what the card had left when it was last asked, less what was taken since
    std::uint64_t mapped_ = 0;  // grains mapped in views
    std::size_t view_count_ = 0;
    std::size_t arena_count_ = 0;
    std::uint64_t operations_ = 0, asked_at_ = 0;
    int capturing_ = 0;
};

}  // namespace movie

// An idle view is made to hold a request: pages that it has lost, or never had, are replaced by free ones.
#include <algorithm>

#include "allocator/movie_allocator.h"

namespace movie {

namespace {

// What driver calls cost relative to each other, in microseconds a page, where nothing better is known: published
// measurements agree on the proportions. They decide between editing a view and making one.
constexpr Bytes kMapCost = 2 + 38;  // map and set access
constexpr Bytes kUnmapCost = 34;
constexpr Bytes kReserveCost = 2;

}  // namespace

bool MovieAllocator::plan_edit(const Site& site, const Reach& reach, Bytes limit, Edit& edit) {
    const View& view = *edit.view;
    const auto stream = reach.wait ? std::nullopt : std::optional(site.timeline);
    const std::size_t begin = view.first_slot(grain_);
    const std::size_t end = view.slots_for(site.bytes, grain_);
    edit.gaps.clear();
    edit.grains = 0;
    edit.cost = 0;
    for (std::size_t slot = begin; slot < end && edit.cost < limit;) {
        Gap gap{slot, slot + 1};
        if (slot < view.slots.size() && view.slots[slot] != 0) {
            const Bytes from = std::max(view.head, slot * grain_) - slot * grain_;
            const Bytes to = std::min(grain_, view.head + site.bytes - slot * grain_);
            if (site.pool.space.covers(view.slots[slot] + from, view.slots[slot] + to, stream)) {
                ++slot;
                continue;
            }
            // A page leaves as a whole, also where it begins before this slot.
            gap.first -= (view.slots[slot] - table_.floor(view.slots[slot])) / grain_;
            gap.behind = gap.first + table_.at(view.slots[slot]).grains;
            edit.cost += kUnmapCost;
        }
        const std::uint64_t grains = std::min(gap.behind, end) - std::max(gap.first, begin);
        edit.grains += grains;
        edit.cost += grains * kMapCost;
        slot = gap.behind;
        if (!edit.gaps.empty() && edit.gaps.back().behind == gap.first)
            edit.gaps.back().behind = gap.behind;
        else
            edit.gaps.push_back(gap);
    }
    return edit.cost < limit;
}

std::optional<MovieAllocator::Edit> MovieAllocator::cheapest_edit(const Site& site, const Reach& reach) {
    if (!config_.edit_views || !config_.keep_views || capturing_ > 0 || debris_.blocks_addresses()) return std::nullopt;
    const bool crowded = static_cast<double>(mapped_) > config_.most_mapped * static_cast<double>(reserved_ / grain_);
    std::optional<Edit> best;
    Edit edit;
    // Less than the price of a new view: what an edit takes out of a view will be missed there, and cost another edit.
    Bytes limit = (kReserveCost + round_up(site.bytes, grain_) / grain_ * kMapCost) * 3 / 4;
    if (crowded) limit *= 5;
    for (auto view = site.pool.views.begin(); view != site.pool.views.end() && limit > 0; ++view) {
        if (view->live_bytes != 0 || view->fixed()) continue;
        if (view->slots_for(site.bytes, grain_) > view->reserved / grain_) continue;
        edit.view = view;
        if (!plan_edit(site, reach, limit, edit)) continue;
        if (edit.cost > 0 && !timelines_.passed(view->used)) {
            timelines_.ask_for(view->used);  // so that it can be edited another time
            continue;
        }
        limit = edit.cost;
        best = edit;
    }
    return best;
}

std::optional<MovieAllocator::Placement> MovieAllocator::apply(const Site& site, const Reach& reach, const Edit& edit) {
    View& view = *edit.view;
    if (edit.gaps.empty()) return reuse(site, view);
    // Pages that the view has already stay where they are; only the smallest fill a gap of any length.
    FreePages free = free_pages(site, reach);
    exclude(free, view.slots);
    keep_smallest(free);
    const auto chosen = choose(free, edit.grains);
    if (!chosen) return std::nullopt;
    std::vector<Address> fresh;
    for (const PageRun& run : *chosen)
        for (std::uint32_t i = 0; i < run.grains; ++i) fresh.push_back(run.begin + i * grain_);

    const View before = view;
    std::optional<Placement> placement;
    {
        Transaction transaction(driver_, debris_);
        if (replace(transaction, site, edit, fresh)) placement = occupy(site, view, view.head);
        if (placement) transaction.commit();
    }
    if (!placement) {
        view.slots = before.slots;
        return std::nullopt;
    }
    for (const Gap& gap : edit.gaps) {
        count_mapped(before, gap.first, gap.behind, -1);
        count_mapped(view, gap.first, gap.behind, 1);
    }
    ++view_counters_.edited;
    history_.add({.kind = HistoryEvent::Kind::edit,
                  .address = placement->address,
                  .size = fresh.size() * grain_,
                  .stream = timelines_.stream_of(site.timeline),
                  .pool = site.pool.id});
    return placement;
}

bool MovieAllocator::replace(Transaction& transaction, const Site& site, const Edit& edit,
                             const std::vector<Address>& fresh) {
    View& view = *edit.view;
    const std::size_t begin = view.first_slot(grain_);
    const std::size_t end = view.slots_for(site.bytes, grain_);
    view.slots.resize(std::max(view.slots.size(), end), 0);
    auto next = fresh.begin();
    for (const Gap& gap : edit.gaps) {
        // One call for each range of complete mappings.
        std::vector<Mapped> old;
        Bytes size = 0;
        for (std::size_t slot = gap.first; slot <= gap.behind; ++slot) {
            if (slot < gap.behind && view.slots[slot] != 0) {
                const Address page = view.slots[slot];
                if (table_.floor(page) == page) old.push_back({table_.handle(page), table_.size(page)});
                size += grain_;
                view.slots[slot] = 0;
            } else if (!old.empty()) {
                if (transaction.unmap(view.base + slot * grain_ - size, old) != Status::ok) return false;
                old.clear();
                size = 0;
            }
        }
        const std::size_t first = std::max(gap.first, begin);
        const std::size_t behind = std::min(gap.behind, end);
        for (std::size_t slot = first; slot < behind; ++slot, ++next) {
            if (transaction.map(view.base + slot * grain_, grain_, table_.handle(*next)) != Status::ok) return false;
            view.slots[slot] = *next;
        }
        if (transaction.set_access(view.base + first * grain_, (behind - first) * grain_) != Status::ok) return false;
    }
    return true;
}

void MovieAllocator::exclude(FreePages& free, std::vector<Address> slots) const {
    std::sort(slots.begin(), slots.end());
    std::vector<PageRun> left;
    for (PageRun run : free.runs) {
        const Address end = run.begin + run.grains * grain_;
        for (auto slot = std::lower_bound(slots.begin(), slots.end(), run.begin); slot != slots.end() && *slot < end;
             ++slot) {
            PageRun before = run;
            before.grains = static_cast<std::uint32_t>((*slot - run.begin) / grain_);
            if (before.grains > 0) left.push_back(before);
            run.begin = *slot + grain_;
            --free.grains;
        }
        run.grains = static_cast<std::uint32_t>((end - run.begin) / grain_);
        if (run.grains > 0) left.push_back(run);
    }
    free.runs = std::move(left);
}

void MovieAllocator::keep_smallest(FreePages& free) {
    if (config_.largest_page == grain_) return;
    std::vector<PageRun> small;
    free.grains = 0;
    for (const PageRun& run : free.runs) {
        const Address end = run.begin + run.grains * grain_;
        bool open = false;  // the last run goes on
        for (Address page = run.begin; page < end; page += table_.size(page)) {
            const bool smallest = table_.at(page).grains == 1;
            if (smallest && !open) {
                small.push_back(run);
                small.back().begin = page;
                small.back().grains = 0;
            }
            if (smallest) {
                ++small.back().grains;
                ++free.grains;
            }
            open = smallest;
        }
    }
    free.runs = std::move(small);
}

}  // namespace movie

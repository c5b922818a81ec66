// Disjoint, never adjacent intervals of addresses ("runs"), found by address and by size.
#pragma once

#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "driver/types.h"

namespace movie {

class RunIndex {
  public:
    struct Run {
        Address begin = 0, end = 0;
        [[nodiscard]] Bytes size() const { return end - begin; }
    };

    // Adds [begin, end), merging with the runs that it touches.
    void add(Address begin, Address end) {
        auto next = by_address_.lower_bound(begin);
        if (next != by_address_.end() && next->first == end) {
            end = next->second;
            by_size_.erase({next->second - next->first, next->first});
            next = by_address_.erase(next);
        }
        if (next != by_address_.begin()) {
            const auto before = std::prev(next);
            if (before->second == begin) {
                by_size_.erase({before->second - before->first, before->first});
                before->second = end;
                by_size_.emplace(end - before->first, before->first);
                return;
            }
        }
        by_address_.emplace_hint(next, begin, end);
        by_size_.emplace(end - begin, begin);
    }

    // Takes [begin, end) out. Pre: part of one run.
    void remove(Address begin, Address end) {
        const auto run = std::prev(by_address_.upper_bound(begin));
        const auto [run_begin, run_end] = *run;
        by_size_.erase({run_end - run_begin, run_begin});
        if (run_begin < begin) {
            run->second = begin;
            by_size_.emplace(begin - run_begin, run_begin);
            if (end < run_end) {
                by_address_.emplace_hint(std::next(run), end, run_end);
                by_size_.emplace(run_end - end, end);
            }
            return;
        }
        const auto next = by_address_.erase(run);
        if (end < run_end) {
            by_address_.emplace_hint(next, end, run_end);
            by_size_.emplace(run_end - end, end);
        }
    }

    // The smallest run of at least `size` bytes, the lowest among equals.
    [[nodiscard]] std::optional<Run> best_fit(Bytes size) const {
        const auto found = by_size_.lower_bound({size, 0});
        if (found == by_size_.end()) return std::nullopt;
        return Run{found->second, found->second + found->first};
    }

    // The first run of at least `size` bytes, by address. O(runs).
    [[nodiscard]] std::optional<Run> first_fit(Bytes size) const {
        for (const auto& [begin, end] : by_address_)
            if (end - begin >= size) return Run{begin, end};
        return std::nullopt;
    }

    // The first run, by address, at whose beginning `size` bytes would end at a multiple of `edge`. O(runs).
    [[nodiscard]] std::optional<Run> first_fit_to_edge(Bytes size, Bytes edge) const {
        for (const auto& [begin, end] : by_address_)
            if (end - begin >= size && (begin + size) % edge == 0) return Run{begin, end};
        return std::nullopt;
    }

    // The run that contains the address, or that begins (ends) there.
    [[nodiscard]] std::optional<Run> at(Address address) const {
        auto run = by_address_.upper_bound(address);
        if (run == by_address_.begin()) return std::nullopt;
        --run;
        if (address >= run->second) return std::nullopt;
        return Run{run->first, run->second};
    }
    [[nodiscard]] Bytes ending_at(Address address) const {
        const auto run = at(address - 1);
        return run && run->end == address ? run->size() : 0;
    }
    [[nodiscard]] Bytes beginning_at(Address address) const {
        const auto run = at(address);
        return run && run->begin == address ? run->size() : 0;
    }

    // In order of size, from `size` on; `visit` returns true to stop. Returns whether it did.
    template <class Visit>
    bool by_size_from(Bytes size, Visit visit) const {
        for (auto run = by_size_.lower_bound({size, 0}); run != by_size_.end(); ++run)
            if (visit(Run{run->second, run->second + run->first})) return true;
        return false;
    }

    [[nodiscard]] bool empty() const { return by_address_.empty(); }

  private:
    std::map<Address, Address> by_address_;
    std::set<std::pair<Bytes, Address>> by_size_;
};

}  // namespace movie

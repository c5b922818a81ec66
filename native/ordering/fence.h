// What may still touch a piece of memory: a set of places in the timelines of streams. Empty = ready for anyone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace movie {

using TimelineId = std::uint32_t;
using Epoch = std::uint64_t;

// All work that a stream had queued when this epoch of it closed. An epoch closes when an event is recorded, so one
// event stands for everything that was freed since the event before.
struct Mark {
    TimelineId timeline = 0;
    Epoch epoch = 0;

    bool operator==(const Mark&) const = default;
};

// At most one mark a timeline (the latest), ordered by timeline. One mark, the usual case, needs no memory of its own.
class Fence {
  public:
    Fence() = default;
    explicit Fence(Mark mark) : first_(mark), has_first_(true) {}

    [[nodiscard]] bool empty() const { return !has_first_; }

    void add(Mark mark) {
        if (!has_first_) {
            first_ = mark;
            has_first_ = true;
        } else if (first_.timeline == mark.timeline) {
            first_.epoch = std::max(first_.epoch, mark.epoch);
        } else {
            if (mark.timeline < first_.timeline) std::swap(mark, first_);
            const auto at = std::lower_bound(rest_.begin(), rest_.end(), mark,
                                             [](const Mark& a, const Mark& b) { return a.timeline < b.timeline; });
            if (at != rest_.end() && at->timeline == mark.timeline)
                at->epoch = std::max(at->epoch, mark.epoch);
            else
                rest_.insert(at, mark);
        }
    }

    void add(const Fence& other) {
        other.for_each([this](Mark mark) { add(mark); });
    }

    template <class Visit>
    void for_each(Visit visit) const {
        if (has_first_) visit(first_);
        for (const Mark& mark : rest_) visit(mark);
    }

    template <class Test>
    [[nodiscard]] bool all_of(Test test) const {
        return !has_first_ || (test(first_) && std::all_of(rest_.begin(), rest_.end(), test));
    }

    // The fence without the marks that `gone` accepts.
    template <class Test>
    [[nodiscard]] Fence without(Test gone) const {
        Fence left;
        for_each([&](Mark mark) {
            if (!gone(mark)) left.add(mark);
        });
        return left;
    }

    bool operator==(const Fence& other) const {
        if (has_first_ != other.has_first_) return false;
        return !has_first_ || (first_ == other.first_ && rest_ == other.rest_);
    }

  private:
    Mark first_{};
    bool has_first_ = false;
    std::vector<Mark> rest_;
};

}  // namespace movie

// Traces that no program ever made, but that one could have made: sizes of all orders of magnitude, several streams,
// pools, uses by other streams, synchronisation, other owners of the card.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "replay/trace_view.h"

namespace movie::test {

class RandomTrace {
  public:
    RandomTrace(std::uint64_t seed, std::size_t rows) : random_(seed) {
        std::vector<std::int64_t> live;
        bool pool_open = true;
        while (action_.size() < rows) {
            const std::uint64_t kind = random_() % 100;
            const std::int64_t stream = static_cast<std::int64_t>(random_() % 4);
            const bool crowded = live.size() > 60;
            if (live.empty() || (kind < 45 && !crowded)) {
                const std::int64_t pool = pool_open && random_() % 10 == 0 ? 1 : 0;
                add(Action::alloc, ids_, size(), stream, pool);
                live.push_back(ids_++);
            } else if (kind < 88) {
                const std::size_t which = random_() % live.size();
                add(Action::free_requested, live[which], 0, stream, 0);
                live[which] = live.back();
                live.pop_back();
            } else if (kind < 95) {
                add(Action::use, live[random_() % live.size()], 0, stream, 0);
            } else if (kind == 95) {
                add(Action::sync, -1, 0, 0, 0);
            } else if (kind == 96 && random_() % 8 == 0) {
                add(Action::empty_cache, -1, 0, 0, 0);
            } else if (kind == 97 && pool_open && random_() % 30 == 0) {
                add(Action::release_pool, -1, 0, 0, 1);
                pool_open = false;
            } else if (kind == 98 && external_ == 0) {
                external_ = static_cast<std::int64_t>(1 + random_() % 64) << 20;
                add(Action::external, -1, external_, 0, 0);
            } else if (kind == 99 && external_ != 0) {
                add(Action::external_free, -1, external_, 0, 0);
                external_ = 0;
            }
        }
    }

    [[nodiscard]] TraceView view() const {
        TraceView view;
        view.action = action_;
        view.id = id_;
        view.bytes = bytes_;
        view.stream = stream_;
        view.pool = pool_;
        view.ids = ids_;
        view.completions_recorded = false;
        return view;
    }

  private:
    void add(Action action, std::int64_t id, std::int64_t bytes, std::int64_t stream, std::int64_t pool) {
        action_.push_back(static_cast<std::uint8_t>(action));
        id_.push_back(id);
        bytes_.push_back(bytes);
        stream_.push_back(stream);
        pool_.push_back(pool);
    }
    std::int64_t size() {
        const std::uint64_t power = 6 + random_() % 20;  // 64 B to 64 MiB
        return static_cast<std::int64_t>((std::uint64_t{1} << power) + random_() % (std::uint64_t{1} << power));
    }

    std::mt19937_64 random_;
    std::vector<std::uint8_t> action_;
    std::vector<std::int64_t> id_, bytes_, stream_, pool_;
    std::int64_t ids_ = 0, external_ = 0;
};

}  // namespace movie::test

// How long blocks of each size live. A program asks for the same sizes again and again: of some it keeps what it gets
// (weights, the state of an optimizer), of others it gives back what it gets at once. So what became of the blocks of a
// size tells what will become of the next, with nothing profiled or announced.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "driver/types.h"

namespace movie {

// Time is counted in bytes requested, so that it passes for a block as others want its place.
class Lifetimes {
  public:
    using Time = double;  // of 2^53 bytes and more the last ones do not matter

    // A block of this size begins to live. What comes back is what died() wants to know.
    Time born(Bytes size) {
        if (sizes_.size() >= kMostSizes && !sizes_.contains(size)) forget();
        Lives& lives = sizes_[size];
        ++born_;
        ++lives.live;
        lives.births += now_;
        return std::exchange(now_, now_ + static_cast<Time>(size));
    }

    // Pre: one that lives.
    void died(Bytes size, Time birth) {
        ++died_;
        Lives& lives = sizes_.find(size)->second;
        --lives.live;
        lives.births -= birth;
        ++lives.dead;
        lives.past += now_ - birth;
    }

    // Whether a block of this size is likely to stay: blocks of its size live, on average and as far as they have come,
    // while as many bytes are requested as `turn` says. Where a run begins a fraction of what was requested is enough.
    [[nodiscard]] bool stays(Bytes size, Bytes turn) const {
        const auto found = sizes_.find(size);
        // Nothing is known of it: most of what is allocated first stays, and of what comes later goes.
        if (found == sizes_.end()) return 2 * died_ < born_;
        const Lives& lives = found->second;
        const Time sum = lives.past + static_cast<Time>(lives.live) * now_ - lives.births;
        const Time mean = sum / static_cast<Time>(lives.live + lives.dead);
        return mean >= std::min(static_cast<Time>(turn), now_ / kEarly);
    }

  private:
    struct Lives {
        std::uint64_t live = 0, dead = 0;
        Time births = 0;  // of the live ones, summed up
        Time past = 0;    // what the dead ones lived
    };
    static constexpr std::size_t kMostSizes = 1 << 16;
    static constexpr Time kEarly = 4;

    // Sizes of which nothing lives: where lengths vary there are ever more of them.
    void forget() {
        std::erase_if(sizes_, [](const auto& entry) { return entry.second.live == 0; });
    }

    std::unordered_map<Bytes, Lives> sizes_;
    Time now_ = 0;
    std::uint64_t born_ = 0, died_ = 0;
};

}  // namespace movie

#include "phantom/device/clock.h"

#include <algorithm>

namespace movie::phantom {

namespace {
// Later than any program gets by its own work, with room for waiting that often.
constexpr std::uint64_t kNever = std::uint64_t{1} << 40;
constexpr std::uint64_t kLongestStretch = 64;
}  // namespace

Clock::Clock(std::int64_t lag, std::uint64_t seed)
    : lag_(lag < 0 ? kNever : static_cast<std::uint64_t>(lag)), seed_(seed), random_(seed) {}

Place Clock::work(Line& line, std::uint64_t not_before) {
    ++now_;
    if (seed_ == 0 || lag_ == kNever) {
        line.lag = lag_;
    } else if (line.stretch-- == 0) {
        line.lag = random_() % (2 * lag_ + 1);
        line.stretch = random_() % kLongestStretch;
    }
    line.last_due = std::max({line.last_due, not_before, now_ + line.lag});
    latest_ = std::max(latest_, line.last_due);
    return {line.last_due, ++order_};
}

void Clock::pass_until(std::uint64_t due) { now_ = std::max(now_, due); }

}  // namespace movie::phantom

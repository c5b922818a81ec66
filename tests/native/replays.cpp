// Random traces through every allocator of the catalogue, watched by the validator.
#include "check.h"
#include "random_trace.h"
#include "replay/catalogue.h"
#include "replay/replay.h"

namespace movie::test {
namespace {

constexpr Bytes kTight = 320 * kMiB;  // a card on which some of the traces do not fit

ReplayResult watched(const RandomTrace& trace, const std::string& name, const ReplayOptions& options) {
    try {
        return replay(trace.view(), [&](Driver& driver) { return make_allocator(driver, name, {}); }, options);
    } catch (const std::exception& error) {
        fail(__FILE__, __LINE__, name + ": " + error.what());
    }
}

void replay_all() {
    std::size_t replays = 0;
    std::size_t completed = 0;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const RandomTrace trace(seed, 3000);
        for (const AllocatorEntry& entry : catalogue()) {
            for (const std::int64_t lag : {std::int64_t{0}, std::int64_t{100}, kNeverCompletes}) {
                for (const Bytes capacity : {Bytes{1} << 40, kTight}) {
                    ReplayOptions options;
                    options.device = {.capacity = capacity, .lag = lag, .seed = seed % 2};
                    // PyTorch lends parts of segments, and so shares pages between pools: invariant 8 is not its.
                    if (seed % 2 == 0 && entry.name.starts_with("movie")) options.lendable = {1};
                    const ReplayResult result = watched(trace, entry.name, options);
                    ++replays;
                    if (result.completed) ++completed;
                    CHECK_SAYING(result.completed || capacity == kTight, entry.name + ": " + result.failure);
                    CHECK(result.peak_reserved >= result.peak_requested || !result.completed);
                }
            }
        }
    }
    std::printf("%zu replays, %zu of them completed\n", replays, completed);
}

}  // namespace
}  // namespace movie::test

int main() { return movie::test::run("replays", movie::test::replay_all); }

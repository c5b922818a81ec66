// Real bytes on the host device: one thread in lockstep, and eight threads that share an allocator.
#include <thread>
#include <vector>

#include "allocator/movie_allocator.h"
#include "check.h"
#include "driver/model/model_device.h"
#include "replay/soak/soak.h"

namespace movie::test {
namespace {

void check_clean(const SoakOptions& options) {
    const SoakResult result = soak(options);
    std::printf("%s, %u threads: %llu allocations, %llu views made, %llu edited, %llu waits, %llu checks\n",
                options.allocator.c_str(), options.threads, static_cast<unsigned long long>(result.allocations),
                static_cast<unsigned long long>(result.views.created),
                static_cast<unsigned long long>(result.views.edited), static_cast<unsigned long long>(result.waits),
                static_cast<unsigned long long>(result.report.checks));
    CHECK_SAYING(result.clean(), result.report.first_problem);
    CHECK(result.allocations == result.frees);
    CHECK(result.report.checks >= result.frees);
    CHECK_SAYING(result.left_reserved == 0, std::to_string(result.left_reserved) + " bytes are left");
    CHECK(result.left_mappings == 0 && result.left_handles == 0);
}

void soak_host() {
    for (const AllocatorEntry& entry : catalogue()) {
        HostOptions device{.capacity = 128 * kMiB, .streams = {.lag = 50, .seed = 7}};
        check_clean({.allocator = entry.name,
                     .operations = 1500,
                     .largest = 16 * kMiB,
                     .pools = true,
                     .validate = true,
                     .device = device});
        device.streams.lockstep = false;
        check_clean(
            {.allocator = entry.name, .operations = 4000, .threads = 8, .largest = 16 * kMiB, .device = device});
    }
    // With the validator between them too.
    const HostOptions device{.capacity = 128 * kMiB, .streams = {.lag = 20, .seed = 3, .lockstep = false}};
    check_clean({.allocator = "movie",
                 .operations = 2000,
                 .threads = 8,
                 .largest = 16 * kMiB,
                 .validate = true,
                 .device = device});
}

// The model device is not safe for threads by itself: the allocator keeps them apart.
void hammer_model() {
    ModelDevice device({.capacity = kGiB});
    MovieAllocator allocator(device, {.policy = Policy::lean});
    std::vector<std::thread> threads;
    for (std::uint64_t seed = 1; seed <= 8; ++seed)
        threads.emplace_back([&allocator, seed] {
            std::mt19937_64 random(seed);
            std::vector<Address> live;
            for (int i = 0; i < 2000; ++i) {
                const auto stream = static_cast<Stream>(random() % 4);
                if (live.size() < 8 && random() % 5 < 3) {
                    live.push_back(
                        allocator.malloc({.bytes = 1 + random() % (4 * kMiB), .stream = stream, .pool = random() % 2}));
                } else if (!live.empty()) {
                    const std::size_t which = random() % live.size();
                    if (random() % 3 == 0) allocator.record_stream(live[which], stream);
                    allocator.free(live[which]);
                    live[which] = live.back();
                    live.pop_back();
                }
                if (random() % 100 == 0) allocator.empty_cache();
                if (random() % 100 == 0) (void)allocator.statistics();
                if (random() % 100 == 0) (void)allocator.unusable(stream, 0);
            }
            for (const Address address : live) allocator.free(address);
        });
    for (std::thread& thread : threads) thread.join();
    allocator.release_pool(1);
    allocator.empty_cache();
    CHECK(device.ledger().reserved == 0);
    CHECK(device.book().mappings().empty());
}

}  // namespace
}  // namespace movie::test

int main() {
    return movie::test::run("soaks", [] {
        movie::test::soak_host();
        movie::test::hammer_model();
    });
}

// A failure at every driver call that MOVie makes in a set of scenarios, one run each, and pairs of failures: a request
// is served otherwise or leaves everything as it was, the next one is served, nothing is lost in the end. The validator
// watches. With an argument, the places that made calls and those that saw a failure are written there, for
// tools/fault_sites.py.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "allocator/configured.h"
#include "check.h"
#include "driver/model/model_device.h"
#include "faulty_driver.h"
#include "replay/validator/watch.h"

namespace movie::test {
namespace {

struct Setting {
    Policy policy = Policy::automatic;
    std::map<std::string, std::string> options{};
    Bytes card = 64 * kMiB;
    std::int64_t lag = 0;
    Bytes address_space = Bytes{1} << 40;
};

// An allocator on a card, and a program that copes with failures.
class World {
  public:
    World(const Setting& setting, const FaultPlan& plan, Sites& sites, const std::vector<bool>& served_without_faults)
        : device_({.capacity = setting.card, .lag = setting.lag, .address_space = setting.address_space}),
          watch_(device_, 1),
          faulty_(watch_.driver(), device_, plan, sites),
          served_before_(served_without_faults) {
        auto movie = std::make_unique<MovieAllocator>(faulty_, movie_config(setting.policy, setting.options));
        movie_ = movie.get();
        watch_.watch(std::move(movie));
    }

    Address malloc(Bytes bytes, Stream stream = 1, PoolId pool = 0) {
        const bool expected = served.size() >= served_before_.size() || served_before_[served.size()];
        device_.clock().advance(stream);
        const bool as_without_faults = faulty_.faults() == 0;
        Address address = attempt(bytes, stream, pool);
        // The next request is served: the same one again.
        if (address == 0 && expected && as_without_faults && faulty_.faults() > 0 && faulty_.spent() && !owes_) {
            address = attempt(bytes, stream, pool);
            CHECK_SAYING(address != 0,
                         "a request for " + std::to_string(bytes) + " bytes is refused after the failure");
        }
        // Until faults begin, everything is as in the run without them.
        if (faulty_.faults() == 0 && served.size() < served_before_.size())
            CHECK((address != 0) == served_before_[served.size()]);
        served.push_back(address != 0);
        if (address != 0) live_.push_back(address);
        return address;
    }
    void free(Address address) {
        if (address == 0) return;
        device_.clock().advance(1);
        allocator().free(address);
        std::erase(live_, address);
    }
    void use(Address address, Stream stream) {
        device_.clock().work(stream);
        if (address != 0) allocator().record_stream(address, stream);
    }
    void pass(int rows) {
        for (int i = 0; i < rows; ++i) device_.clock().advance(1);
    }
    void begin_capture(Stream stream) {
        device_.begin_capture(stream);
        watch_.validator().begin_capture(stream);
        // A step back that unmaps has to wait for the end of the capture; until then addresses cannot be trusted.
        owes_ = true;
        movie_->begin_capture();
    }
    void end_capture(Stream stream) {
        device_.end_capture(stream);
        watch_.validator().end_capture(stream);
        owes_ = false;
        movie_->end_capture();
    }
    Allocator& allocator() { return watch_.allocator(); }
    MovieAllocator& movie() { return *movie_; }
    ModelDevice& device() { return device_; }
    [[nodiscard]] const FaultyDriver& faulty() const { return faulty_; }
    [[nodiscard]] const std::vector<Address>& live() const { return live_; }

    // Everything ends: nothing may be left.
    void finish() {
        faulty_.heal();
        while (!live_.empty()) free(live_.back());
        for (PoolId pool = 1; pool <= 4; ++pool) allocator().release_pool(pool);
        device_.clock().finish_all();
        free(malloc(2 * kMiB));
        allocator().empty_cache();
        const auto left = std::to_string(device_.ledger().reserved) + " bytes, " +
                          std::to_string(device_.book().mappings().size()) + " mappings, " +
                          std::to_string(device_.book().handles()) + " handles, " +
                          std::to_string(device_.book().reservations()) + " reservations are left";
        CHECK_SAYING(device_.ledger().reserved == 0 && device_.book().mappings().empty(), left);
        CHECK_SAYING(device_.book().handles() == 0 && device_.book().reservations() == 0, left);
        watch_.check_all();
    }

    std::vector<bool> served;  // of each request, whether it was

  private:
    Address attempt(Bytes bytes, Stream stream, PoolId pool) {
        const Statistics before = allocator().statistics();
        try {
            return allocator().malloc({.bytes = bytes, .stream = stream, .pool = pool});
        } catch (const OutOfMemory&) {
            const Statistics after = allocator().statistics();
            CHECK(before.allocation[PoolKind::all].current == after.allocation[PoolKind::all].current);
            CHECK(before.allocated_bytes[PoolKind::all].current == after.allocated_bytes[PoolKind::all].current);
            CHECK(before.requested_bytes[PoolKind::all].current == after.requested_bytes[PoolKind::all].current);
            return 0;
        }
    }

    ModelDevice device_;
    Watch watch_;
    FaultyDriver faulty_;
    MovieAllocator* movie_ = nullptr;
    std::vector<bool> served_before_;
    bool owes_ = false;
    std::vector<Address> live_;
};

struct Scenario {
    std::string name;
    Setting setting;
    std::function<void(World&)> play;
    std::uint64_t second_faults = 4;  // a failure while the first is being coped with comes soon after it
};

// Alternate blocks of a full card are freed: what is left is free in pieces.
void make_holes(World& world, Bytes block, int count, std::vector<Address>& kept) {
    std::vector<Address> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back(world.malloc(block));
    for (int i = 0; i < count; ++i)
        if (i % 2 == 0)
            world.free(blocks[static_cast<std::size_t>(i)]);
        else
            kept.push_back(blocks[static_cast<std::size_t>(i)]);
}

void play_views(World& world) {
    std::vector<Address> kept;
    make_holes(world, 4 * kMiB, 16, kept);
    const Address made = world.malloc(10 * kMiB);
    world.free(made);
    world.free(world.malloc(10 * kMiB));  // the view is ready
    world.free(world.malloc(9 * kMiB));
    const Address taken = world.malloc(4 * kMiB);  // part of what the view maps
    const Address edited = world.malloc(12 * kMiB);
    world.free(taken);
    world.free(edited);
    const Address extended = world.malloc(20 * kMiB);
    world.free(extended);
    if (!kept.empty()) world.free(kept.front());
    world.free(world.malloc(26 * kMiB + 512 * 3));
}

std::vector<Scenario> scripted() {
    std::vector<Scenario> all;
    for (const Policy policy : {Policy::automatic, Policy::lean}) {
        const std::string suffix = policy == Policy::lean ? ", lean" : "";
        all.push_back({"growth" + suffix, {.policy = policy}, [](World& world) {
                           const Address a = world.malloc(3 * kMiB);
                           const Address b = world.malloc(5 * kMiB + 512);
                           world.malloc(7 * kMiB, 2);
                           world.free(a);
                           world.malloc(9 * kMiB);
                           world.free(b);
                           world.malloc(11 * kMiB);
                           world.malloc(90 * kMiB);  // more than there is
                       }});
        all.push_back({"views" + suffix, {.policy = policy}, play_views});
        all.push_back({"views that are late" + suffix, {.policy = policy, .lag = 6}, play_views});
        all.push_back({"views that change" + suffix, {.policy = policy}, [](World& world) {
                           std::vector<Address> kept;
                           make_holes(world, 4 * kMiB, 16, kept);
                           for (int round = 0; round < 4; ++round) {
                               world.free(world.malloc(12 * kMiB));
                               const Address taken = world.malloc(4 * kMiB);  // what the view maps is not free any more
                               world.pass(2);
                               world.free(world.malloc(12 * kMiB));
                               world.pass(2);
                               const Address more = world.malloc((3 + 4 * static_cast<Bytes>(round % 2)) * kMiB);
                               world.free(world.malloc(14 * kMiB));
                               world.free(taken);
                               world.free(more);
                           }
                       }});
        all.push_back({"views of which another stream takes a part" + suffix,
                       {.policy = policy},
                       [](World& world) {
                           std::vector<Address> kept;
                           make_holes(world, 4 * kMiB, 16, kept);
                           std::vector<Address> taken;
                           for (int round = 0; round < 4; ++round) {
                               world.free(world.malloc(12 * kMiB));
                               // The other stream waits for what was done in the view, so its range is known to be
                               // idle.
                               taken.push_back(world.malloc(4 * kMiB, 2));
                               world.pass(2);
                               world.free(world.malloc(12 * kMiB));
                           }
                           for (const Address address : taken) world.free(address);
                           world.free(world.malloc(12 * kMiB));
                       },
                       8});
        all.push_back({"views, few of them" + suffix,
                       {.policy = policy, .options = {{"most_views", "1"}, {"most_mapped", "0.2"}}},
                       [](World& world) {
                           std::vector<Address> kept;
                           make_holes(world, 4 * kMiB, 16, kept);
                           for (const Bytes size : {10U, 14U, 6U, 18U, 8U}) {
                               const Address a = world.malloc(size * kMiB);
                               const Address b = world.malloc(6 * kMiB);
                               world.free(a);
                               world.free(b);
                           }
                       }});
        all.push_back({"slabs" + suffix, {.policy = policy, .card = 16 * kMiB, .lag = 4}, [](World& world) {
                           std::vector<Address> blocks;
                           for (int i = 0; i < 40; ++i) blocks.push_back(world.malloc(100'000, 1 + i % 2));
                           for (std::size_t i = 0; i < blocks.size(); ++i) {
                               if (i % 3 == 0) world.use(blocks[i], 3);
                               if (i % 5 != 0) world.free(blocks[i]);
                           }
                           for (int i = 0; i < 30; ++i) world.malloc(300'000, 3);
                           world.malloc(8 * kMiB, 2);
                       }});
        all.push_back({"other streams" + suffix, {.policy = policy, .card = 32 * kMiB, .lag = 12}, [](World& world) {
                           const Address a = world.malloc(10 * kMiB, 1);
                           const Address b = world.malloc(10 * kMiB, 2);
                           const Address c = world.malloc(10 * kMiB, 3);
                           world.use(a, 2);
                           world.use(a, 3);
                           world.free(a);
                           const Address d = world.malloc(9 * kMiB, 2);
                           world.use(b, 3);
                           world.free(b);
                           world.free(d);
                           const Address e = world.malloc(18 * kMiB, 3);  // joined, after waiting for others
                           world.free(c);
                           world.malloc(10 * kMiB, 1);
                           world.free(e);
                           world.pass(30);
                           world.malloc(19 * kMiB, 2);
                       }});
        all.push_back({"giving back" + suffix, {.policy = policy, .lag = 5}, [](World& world) {
                           std::vector<Address> kept;
                           make_holes(world, 4 * kMiB, 16, kept);
                           const Address view = world.malloc(14 * kMiB);
                           world.free(view);
                           world.allocator().reclaim(6 * kMiB);
                           world.malloc(3 * kMiB);
                           world.allocator().empty_cache();
                           world.malloc(8 * kMiB);
                           for (const Address address : kept) world.free(address);
                           world.allocator().empty_cache();
                           world.malloc(8 * kMiB);
                       }});
        all.push_back({"the last resorts" + suffix, {.policy = policy, .card = 32 * kMiB, .lag = -1}, [](World& world) {
                           std::vector<Address> kept;
                           make_holes(world, 4 * kMiB, 8, kept);
                           const Address view = world.malloc(12 * kMiB);
                           if (!kept.empty()) world.use(kept.front(), 2);
                           world.free(view);
                           world.malloc(15 * kMiB, 2);
                           if (!kept.empty()) world.free(kept.front());
                           world.malloc(3 * kMiB, 3);
                           world.malloc(40 * kMiB);
                           (void)world.device().external_take(2 * kMiB);
                           world.malloc(20 * kMiB, 3);
                           world.device().external_give(2 * kMiB);
                           world.allocator().set_memory_cap(24 * kMiB);
                           world.malloc(14 * kMiB);
                           world.allocator().set_memory_cap(0);
                       }});
        all.push_back({"pools" + suffix, {.policy = policy, .card = 32 * kMiB, .lag = 3}, [](World& world) {
                           const Address a = world.malloc(6 * kMiB, 1, 1);
                           const Address b = world.malloc(6 * kMiB, 1, 2);
                           world.malloc(200'000, 1, 1);
                           const Address c = world.malloc(12 * kMiB);
                           world.free(a);
                           world.free(b);
                           world.allocator().set_pool_lendable(1, true);
                           world.malloc(11 * kMiB);  // with what pool 1 lends
                           world.free(c);
                           world.malloc(16 * kMiB, 1, 2);  // the default pool gives way
                           world.allocator().release_pool(1);
                           world.malloc(5 * kMiB);
                       }});
        all.push_back({"few addresses" + suffix,
                       {.policy = policy, .options = {{"arena_span", "33554432"}}, .address_space = 40 * kMiB},
                       [](World& world) {
                           const Address a = world.malloc(4 * kMiB, 1);
                           const Address b = world.malloc(4 * kMiB, 2);
                           world.malloc(4 * kMiB, 1);
                           world.free(a);
                           world.malloc(6 * kMiB, 2);
                           world.free(b);
                           world.malloc(12 * kMiB, 1);
                       }});
        all.push_back({"a capture" + suffix, {.policy = policy, .card = 48 * kMiB}, [](World& world) {
                           std::vector<Address> kept;
                           make_holes(world, 4 * kMiB, 6, kept);
                           // What a graph holds stays where it is until its pool is released.
                           world.begin_capture(1);
                           const Address a = world.malloc(6 * kMiB, 1, 1);
                           const Address b = world.malloc(3 * kMiB, 1, 1);
                           world.free(a);
                           world.malloc(5 * kMiB, 1, 1);
                           world.malloc(10 * kMiB, 1, 1);
                           world.end_capture(1);
                           world.free(b);
                           world.malloc(10 * kMiB);
                       }});
    }
    return all;
}

// A program that takes and gives at random; the same one for the same seed, whatever fails.
Scenario random_scenario(std::uint64_t seed) {
    Setting setting{.policy = seed % 2 == 0 ? Policy::automatic : Policy::lean,
                    .card = 48 * kMiB,
                    .lag = std::vector<std::int64_t>{0, 4, 20, -1}[seed / 2 % 4]};
    if (seed % 3 == 0) setting.options = {{"most_mapped", "0.5"}, {"most_views", "2"}};
    return {"random program " + std::to_string(seed), setting,
            [seed](World& world) {
                std::mt19937_64 random(seed);
                const auto below = [&random](std::uint64_t end) { return random() % end; };
                for (int i = 0; i < 60; ++i) {
                    // Drawn before anything is done, so that a failure does not change what follows.
                    const std::uint64_t kind = below(16);
                    const std::uint64_t which = random();
                    const Bytes bytes = below(4) == 0 ? 1 + below(kMiB) : kMiB + below(11 * kMiB);
                    const auto stream = static_cast<Stream>(1 + below(3));
                    const PoolId pool = below(8) == 0 ? 1 : 0;
                    const Address some = world.live().empty() ? 0 : world.live()[which % world.live().size()];
                    if (kind < 8) world.malloc(bytes, stream, pool);
                    if (kind >= 8 && kind < 13) world.free(some);
                    if (kind == 13 || kind == 10) world.use(some, stream);
                    if (kind == 14) world.pass(5);
                    if (kind == 15 && which % 3 == 0) world.allocator().empty_cache();
                    if (kind == 15 && which % 3 == 1) (void)world.allocator().reclaim(bytes);
                }
            },
            6};
}

struct Counts {
    std::uint64_t runs = 0, faults = 0, wrong = 0;
};

struct Played {
    std::vector<bool> served;
    std::uint64_t calls = 0, faults = 0;
    Call failed_first = Call::create;
};

Played play(const Scenario& scenario, const FaultPlan& plan, Sites& sites, const std::vector<bool>& served) {
    World world(scenario.setting, plan, sites, served);
    scenario.play(world);
    Played played{world.served, world.faulty().calls(), world.faulty().faults(), world.faulty().failed_first()};
    world.finish();
    played.calls = std::max(played.calls, world.faulty().calls());
    return played;
}

void press(const Scenario& scenario, Sites& sites, Counts& counts) {
    std::uint64_t wrong = 0;
    Played plain;
    try {
        plain = play(scenario, {}, sites, {});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s, without failures: %s\n", scenario.name.c_str(), error.what());
        ++counts.wrong;
        return;
    }
    for (std::uint64_t n = 1; n <= plain.calls; ++n) {
        const auto with = [&](const FaultPlan& plan) {
            try {
                const Played played = play(scenario, plan, sites, plain.served);
                ++counts.runs;
                counts.faults += played.faults;
                return played.failed_first;
            } catch (const std::exception& error) {
                constexpr int kShown = 3;  // of one scenario
                if (++wrong <= kShown)
                    std::fprintf(stderr, "%s, failures at call %llu and %llu later%s: %s\n", scenario.name.c_str(),
                                 static_cast<unsigned long long>(plan.first),
                                 static_cast<unsigned long long>(plan.second), plan.scarce ? " (scarce)" : "",
                                 error.what());
                return Call::map;
            }
        };
        const Call failed = with({.first = n});
        if (failed == Call::create || failed == Call::reserve) with({.first = n, .scarce = true});
        for (std::uint64_t second = 1; second <= scenario.second_faults; ++second) with({.first = n, .second = second});
    }
    counts.wrong += wrong;
}

void write_sites(const Sites& sites, const char* path) {
    Dl_info self{};
    CHECK(dladdr(reinterpret_cast<const void*>(&write_sites), &self) != 0);
    std::ofstream out(path);
    const auto write = [&](const char* what, const std::set<Site>& set) {
        for (const auto& [call, site] : set)
            out << what << ' ' << name_of(call) << ' '
                << static_cast<const char*>(site) - static_cast<const char*>(self.dli_fbase) << '\n';
    };
    write("called", sites.called);
    write("failed", sites.failed);
}

}  // namespace
}  // namespace movie::test

int main(int argc, char** argv) {
    using namespace movie::test;
    return run("faults", [&] {
        Sites sites;
        Counts counts;
        std::vector<Scenario> scenarios = scripted();
        for (std::uint64_t seed = 0; seed < 24; ++seed) scenarios.push_back(random_scenario(seed));
        for (const Scenario& scenario : scenarios) press(scenario, sites, counts);
        std::printf(
            "%zu scenarios, %llu runs, %llu failures, %zu places in the code that called, %zu that saw a failure\n",
            scenarios.size(), static_cast<unsigned long long>(counts.runs),
            static_cast<unsigned long long>(counts.faults), sites.called.size(), sites.failed.size());
        if (argc > 1) write_sites(sites, argv[1]);
        CHECK_SAYING(counts.wrong == 0, std::to_string(counts.wrong) + " runs");
    });
}

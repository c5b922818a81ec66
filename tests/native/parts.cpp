// The parts below the allocator: combine() against trying everything, transactions of which any call may fail.
#include <algorithm>
#include <random>
#include <vector>

#include "check.h"
#include "driver/model/model_device.h"
#include "memory/transaction.h"
#include "placement/combine.h"

namespace movie::test {
namespace {

// The least cost over all subsets, each with its largest member cut.
std::optional<ChoiceCost> least_cost(const std::vector<Part>& parts, std::uint32_t need) {
    std::optional<ChoiceCost> best;
    for (std::uint32_t subset = 1; subset < 1U << parts.size(); ++subset) {
        ChoiceCost cost;
        std::uint32_t pages = 0;
        std::uint32_t largest = 0;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if ((subset >> i & 1) == 0) continue;
            pages += parts[i].pages;
            largest = std::max(largest, parts[i].pages);
            cost.longest_wait = std::max(cost.longest_wait, parts[i].wait);
            cost.breaks += parts[i].breaks;
            ++cost.pieces;
        }
        if (pages < need || pages - need >= largest) continue;
        cost.remnant = pages - need;
        if (!best || cost < *best) best = cost;
    }
    return best;
}

void combine_is_best() {
    std::mt19937_64 random(11);
    for (int round = 0; round < 2000; ++round) {
        std::vector<Part> parts(1 + random() % 9);
        std::uint64_t sum = 0;
        for (Part& part : parts) {
            part = {.pages = static_cast<std::uint32_t>(1 + random() % 40),
                    .wait = static_cast<std::uint32_t>(random() % 3 * (random() % 5)),
                    .breaks = static_cast<std::uint32_t>(random() % 3)};
            sum += part.pages;
        }
        const auto need = static_cast<std::uint32_t>(1 + random() % (sum + 2));
        for (const Combiner combiner : {Combiner::dynamic, Combiner::greedy, Combiner::best_fit_decreasing}) {
            const auto choice = combine(parts, need, combiner);
            CHECK(choice.has_value() == (sum >= need));
            if (!choice) continue;
            std::uint64_t taken = 0;
            for (const Taken& each : *choice) taken += each.pages;
            CHECK(taken == need);
            const ChoiceCost cost = cost_of(parts, *choice);
            const auto best = least_cost(parts, need);
            CHECK(best.has_value() && (combiner == Combiner::dynamic ? cost == *best : cost >= *best));
        }
    }
    // Many parts and large requests, where the choice is made on a coarser grain.
    for (int round = 0; round < 30; ++round) {
        std::vector<Part> parts(300);
        for (Part& part : parts) part.pages = static_cast<std::uint32_t>(1 + random() % 60);
        const auto choice = combine(parts, 2048, Combiner::dynamic);
        std::uint64_t taken = 0;
        for (const Taken& each : choice.value()) taken += each.pages;
        CHECK(taken == 2048);
    }
}

constexpr Call kMayFail[] = {Call::reserve, Call::create,  Call::map,         Call::set_access,
                             Call::unmap,   Call::release, Call::free_address};

// What a transaction must leave as it was.
struct State {
    std::vector<std::tuple<Address, Bytes, Handle, bool>> mappings;
    std::size_t handles = 0, reservations = 0;
    Bytes reserved = 0;
    bool operator==(const State&) const = default;
};

State state_of(const ModelDevice& device) {
    State state;
    for (const auto& [address, mapping] : device.book().mappings())
        state.mappings.emplace_back(address, mapping.size, mapping.handle, mapping.accessible);
    state.handles = device.book().handles();
    state.reservations = device.book().reservations();
    state.reserved = device.ledger().reserved;
    return state;
}

// Moves some mappings of a range elsewhere and adds new ones; stops where a call fails.
bool change(Transaction& transaction, Address range, const std::vector<Handle>& handles, std::mt19937_64& random) {
    constexpr Bytes kPage = 2 * kMiB;
    const std::size_t first = random() % handles.size();
    const std::size_t count = 1 + random() % (handles.size() - first);
    std::vector<Mapped> some;
    for (std::size_t i = first; i < first + count; ++i) some.push_back({handles[i], kPage});
    if (transaction.unmap(range + first * kPage, some) != Status::ok) return false;
    for (std::size_t i = 0; i < count; ++i) {
        Handle handle = some[count - 1 - i].handle;
        if (random() % 2 == 0) {
            const auto created = transaction.create(kPage);
            if (!created.ok()) return false;
            handle = created.value;
        }
        if (transaction.map(range + (first + i) * kPage, kPage, handle) != Status::ok) return false;
    }
    if (transaction.set_access(range + first * kPage, count * kPage) != Status::ok) return false;
    const auto other = transaction.reserve(4 * kPage);
    return other.ok() && transaction.map(other.value + kPage, kPage, handles.front()) == Status::ok &&
           transaction.set_access(other.value + kPage, kPage) == Status::ok;
}

void transactions_are_whole() {
    constexpr Bytes kPage = 2 * kMiB;
    std::mt19937_64 random(5);
    int undone = 0;
    int owed = 0;
    for (int round = 0; round < 3000; ++round) {
        ModelDevice device({.capacity = 64 * kPage});
        Debris debris;
        const Address range = device.reserve(8 * kPage).value;
        std::vector<Handle> handles;
        for (std::size_t i = 0; i < 8; ++i) {
            handles.push_back(device.create(kPage).value);
            CHECK(device.map(range + i * kPage, kPage, handles.back()) == Status::ok);
        }
        CHECK(device.set_access(range, 8 * kPage) == Status::ok);
        const State before = state_of(device);
        for (std::uint64_t faults = random() % 4; faults > 0; --faults)
            device.inject(kMayFail[random() % std::size(kMayFail)], 1 + random() % 6, Status::failed);
        bool done = false;
        {
            Transaction transaction(device, debris);
            done = change(transaction, range, handles, random);
            if (done && random() % 2 == 0)
                transaction.commit();
            else
                done = false;
        }
        if (done) continue;
        ++undone;
        if (!debris.empty()) ++owed;
        device.heal();
        debris.clear(device);
        CHECK(debris.empty());
        CHECK(state_of(device) == before);
    }
    std::printf("%d transactions taken back, %d of them in two goes\n", undone, owed);
    CHECK(undone > 500 && owed > 20);
}

}  // namespace
}  // namespace movie::test

int main() {
    return movie::test::run("parts", [] {
        movie::test::combine_is_best();
        movie::test::transactions_are_whole();
    });
}

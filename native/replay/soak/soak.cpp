#include "replay/soak/soak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "replay/validator/watch.h"

namespace movie {
namespace {

constexpr PoolId kIsolated = 1;

// What all threads of the program share.
struct Shared {
    const SoakOptions& options;
    HostDevice& device;
    Allocator& allocator;
    Bytes target = 0;  // requested bytes that the program keeps in use
    std::atomic<Bytes> live{0}, peak{0};
    std::atomic<std::uint64_t> patterns{0};
};

// One thread of the program, with blocks of its own on streams that it shares with the others.
class Program {
  public:
    Program(Shared& shared, std::uint64_t seed) : shared_(shared), random_(seed) {}

    void run(std::uint64_t operations) {
        for (std::uint64_t i = 0; i < operations; ++i) {
            if (!blocks_.empty() && chance(0.1)) look_again();
            const bool room = shared_.live.load() < shared_.target;
            if (blocks_.empty() || chance(room ? 0.7 : 0.2))
                allocate();
            else
                release(pick());
            if (chance(0.0005)) shared_.allocator.empty_cache();
            if (chance(0.0005)) (void)shared_.allocator.reclaim(size());
        }
    }
    void release_all() {
        while (!blocks_.empty()) release(blocks_.size() - 1);
    }

    std::uint64_t allocations = 0, frees = 0, out_of_memory = 0, uses_by_others = 0;

  private:
    struct Block {
        Address address = 0;
        Bytes bytes = 0;
        Stream stream = 0;
        std::uint64_t pattern = 0;
        bool shared = false;  // other streams look at it
    };

    bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
    std::size_t pick() { return std::uniform_int_distribution<std::size_t>(0, blocks_.size() - 1)(random_); }
    Stream stream() { return std::uniform_int_distribution<Stream>(1, shared_.options.streams)(random_); }
    Bytes between(Bytes least, Bytes most) {  // as many of each order of magnitude
        const double power = std::uniform_real_distribution<>(std::log2(static_cast<double>(least)),
                                                              std::log2(static_cast<double>(most)))(random_);
        return std::clamp(static_cast<Bytes>(std::exp2(power)), least, most);
    }
    Bytes size() {
        const double kind = std::uniform_real_distribution<>(0, 1)(random_);
        const Bytes largest = shared_.options.largest;
        if (kind < 0.35) return between(1, std::min(kMiB, largest));
        if (kind < 0.85) return between(std::min(kMiB, largest), std::min(8 * kMiB, largest));
        return between(std::min(8 * kMiB, largest), largest);
    }

    void allocate() {
        Block block{.bytes = size(), .stream = stream()};
        // Some blocks are copies of others, if they are so short that their words lie alike wherever they are.
        const Block* source = nullptr;
        if (!blocks_.empty() && chance(0.1)) {
            const Block& other = blocks_[pick()];
            if (other.bytes <= 2 * shared_.options.stride) source = &other;
        }
        if (source != nullptr) {
            block.bytes = source->bytes;
            block.stream = source->stream;
        }
        const PoolId pool = shared_.options.pools && chance(0.2) ? kIsolated : 0;
        try {
            block.address = shared_.allocator.malloc({.bytes = block.bytes, .stream = block.stream, .pool = pool});
        } catch (const OutOfMemory&) {
            ++out_of_memory;
            for (std::size_t i = blocks_.size() / 4 + 1; i > 0 && !blocks_.empty(); --i) release(pick());
            return;
        }
        ++allocations;
        const Bytes live = shared_.live += block.bytes;
        for (Bytes peak = shared_.peak; live > peak && !shared_.peak.compare_exchange_weak(peak, live);) {
        }
        if (source != nullptr) {
            block.pattern = source->pattern;
            shared_.device.copy(block.stream, block.address, source->address, block.bytes);
        } else {
            block.pattern = ++shared_.patterns;
            shared_.device.fill(block.stream, block.address, block.bytes, block.pattern, shared_.options.stride);
        }
        blocks_.push_back(block);
    }

    void check(const Block& block, Stream stream) {
        shared_.device.check(stream, block.address, block.bytes, block.pattern, shared_.options.stride);
    }

    // Another stream works with a block, after what the block's own stream has done so far; or its own stream writes
    // anew.
    void look_again() {
        Block& block = blocks_[pick()];
        const Stream other = stream();
        if (other != block.stream) {
            shared_.device.order_behind(other, block.stream);
            check(block, other);
            shared_.allocator.record_stream(block.address, other);
            block.shared = true;
            ++uses_by_others;
        } else if (!block.shared) {
            check(block, block.stream);
            block.pattern = ++shared_.patterns;
            shared_.device.fill(block.stream, block.address, block.bytes, block.pattern, shared_.options.stride);
        }
    }

    void release(std::size_t which) {
        const Block block = blocks_[which];
        blocks_[which] = blocks_.back();
        blocks_.pop_back();
        check(block, block.stream);
        shared_.live -= block.bytes;
        shared_.allocator.free(block.address);
        ++frees;
    }

    Shared& shared_;
    std::mt19937_64 random_;
    std::vector<Block> blocks_;
};

void check_options(const SoakOptions& options) {
    if (options.streams < 1) throw std::invalid_argument("a soak needs at least one stream");
    if (options.threads < 1) throw std::invalid_argument("a soak needs at least one thread");
    if (options.largest < 1 || options.largest > options.device.capacity)
        throw std::invalid_argument("the largest block must be above 0 and fit the card");
    if (options.stride < 8 || options.stride % 8 != 0)
        throw std::invalid_argument("the stride must be a multiple of 8");
}

// The programs in threads of their own; the first exception of any is passed on.
void run_in_threads(std::vector<Program>& programs, std::uint64_t operations) {
    std::vector<std::thread> threads;
    std::exception_ptr failure;
    std::mutex mutex;
    for (Program& program : programs)
        threads.emplace_back([&] {
            try {
                program.run(operations / programs.size());
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!failure) failure = std::current_exception();
            }
        });
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

SoakResult soak(const SoakOptions& options) {
    check_options(options);
    const auto begin = std::chrono::steady_clock::now();
    HostDevice device(options.device);
    std::optional<Watch> watch;
    if (options.validate) watch.emplace(device);
    Saboteur saboteur(watch ? watch->driver() : static_cast<Driver&>(device), options.sabotage);
    std::unique_ptr<Allocator> unwatched;
    auto made = make_allocator(saboteur, options.allocator, options.options);
    if (watch)
        watch->watch(std::move(made));
    else
        unwatched = std::move(made);
    Allocator& allocator = watch ? watch->allocator() : *unwatched;

    Shared shared{.options = options, .device = device, .allocator = allocator};
    shared.target = static_cast<Bytes>(options.fill_level * static_cast<double>(options.device.capacity));
    std::vector<Program> programs;
    for (unsigned i = 0; i < options.threads; ++i) programs.emplace_back(shared, options.seed * 1000 + i);
    if (options.threads == 1)
        programs.front().run(options.operations);
    else
        run_in_threads(programs, options.operations);

    SoakResult result;
    for (Program& program : programs) {
        program.release_all();
        result.allocations += program.allocations;
        result.frees += program.frees;
        result.out_of_memory += program.out_of_memory;
        result.uses_by_others += program.uses_by_others;
    }
    (void)device.synchronize();
    if (watch) watch->check_all();
    allocator.release_pool(kIsolated);
    allocator.empty_cache();
    result.report = device.report();
    result.views = allocator.views();
    result.waits = device.ledger().count(Call::stream_wait);
    result.peak_requested = shared.peak;
    result.peak_reserved = device.ledger().peak_reserved;
    result.left_reserved = device.ledger().reserved;
    result.left_mappings = device.mappings();
    result.left_handles = device.handles();
    result.device_problem = device.last_problem();
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

}  // namespace movie

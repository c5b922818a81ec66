#include "allocator/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace movie {

namespace {

// How many forks lie between the first process and this one.
std::atomic<std::uint64_t> generation{0};

}  // namespace

ForkGuard::ForkGuard() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { ++generation; });
    (void)registered;
    generation_ = generation.load();
}

bool ForkGuard::in_child() const { return generation.load(std::memory_order_relaxed) != generation_; }

}  // namespace movie

// What tests and tools in the same process ask of the phantom itself, through ctypes. None of these is counted.
#include <algorithm>
#include <cstring>

#include "phantom/device/call.h"

using namespace movie::phantom;

namespace {
template <class Body>
std::uint64_t ask(Body&& body) {
    Machine* machine = Machine::forked() ? nullptr : Machine::instance();
    if (machine == nullptr) return 0;
    const Lock lock(machine->mutex);
    return body(*machine);
}
}  // namespace

// The counters as JSON, as in the file that MOVIE_PHANTOM_COUNTERS names. Writes at most `size` bytes, with a zero at
// the end, and returns how many all of it takes.
PHANTOM_API std::size_t movie_phantom_counters(char* out, std::size_t size) {
    return ask([&](Machine& machine) -> std::uint64_t {
        const std::string text = machine.counters();
        if (size > 0) {
            const std::size_t length = std::min(size - 1, text.size());
            std::memcpy(out, text.data(), length);
            out[length] = '\0';
        }
        return text.size() + 1;
    });
}

PHANTOM_API std::uint64_t movie_phantom_launches() {
    return ask([](Machine& machine) { return machine.launches; });
}
PHANTOM_API std::uint64_t movie_phantom_violations() {
    return ask([](Machine& machine) { return machine.violations; });
}
// The virtual time, in ticks: pieces of work handed over, and what was waited for.
PHANTOM_API std::uint64_t movie_phantom_now() {
    return ask([](Machine& machine) { return machine.late.clock.now(); });
}
PHANTOM_API void movie_phantom_advance(std::uint64_t ticks) {
    ask([&](Machine& machine) {
        machine.late.clock.advance(ticks);
        machine.late.settle();
        return std::uint64_t{0};
    });
}
// Bytes of a device that allocations and handles hold now, and held at most since the last reset.
PHANTOM_API std::uint64_t movie_phantom_used(int device) {
    return ask([&](Machine& machine) { return machine.has(device) ? machine.memory.room(device).used : 0; });
}
PHANTOM_API std::uint64_t movie_phantom_peak(int device) {
    return ask([&](Machine& machine) { return machine.has(device) ? machine.memory.room(device).peak : 0; });
}
PHANTOM_API void movie_phantom_reset_peak(int device) {
    ask([&](Machine& machine) {
        if (machine.has(device)) machine.memory.room(device).peak = machine.memory.room(device).used;
        return std::uint64_t{0};
    });
}

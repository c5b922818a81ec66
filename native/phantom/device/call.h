// How a function of a CUDA library begins and ends: counted, under the machine's lock, made to fail on request, with
// broken rules turned into codes.
#pragma once

#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "phantom/device/call_site.h"
#include "phantom/device/codes.h"
#include "phantom/device/machine.h"
#include "phantom/device/report.h"
#include "phantom/device/stop.h"

// A function that the phantom offers in place of one of CUDA's.
#define PHANTOM_API extern "C" __attribute__((visibility("default")))

namespace movie::phantom {

// Words of the driver layer that functions use; its streams and events are numbers, ours are not.
using movie::Address;
using movie::Bytes;
using movie::Call;
using movie::Handle;
using movie::round_up;
using movie::Status;

using Lock = std::unique_lock<std::mutex>;

// Whether a call may be the first of a process, and makes a context.
enum class Needs : std::uint8_t { machine, context };

// Runs `body(machine, lock)` and returns its code. Each call of this template has a site of its own.
template <class Body>
int call(const char* name, Needs needs, Body&& body) {
    static CallSite site(name);
    if (Machine::forked()) return kNotInitialized;
    Machine* machine = Machine::instance();
    if (machine == nullptr) return kNoDevice;
    Lock lock(machine->mutex);
    if (!site.armed()) site.arm(machine->settings.faults);
    if (const int fault = site.enter(); fault != 0) return fault;
    if (machine->broken != kSuccess) return machine->broken;
    try {
        if (needs == Needs::context)
            if (const int code = machine->activate(Machine::current()); code != kSuccess) return code;
        machine->late.settle();
        const int code = std::forward<Body>(body)(*machine, lock);
        return code;
    } catch (const RuleViolation& broken) {
        machine->violation(std::string(name) + ": " + broken.what());
        return kInvalidValue;
    } catch (const std::exception& problem) {
        end_run(kSystemProblem, std::string(name) + ": " + problem.what());
    }
}

// The same for functions of the runtime, which remember the last error of the thread.
int& last_error();
template <class Body>
int runtime_call(const char* name, Needs needs, Body&& body) {
    const int code = call(name, needs, std::forward<Body>(body));
    if (code != kSuccess) last_error() = code;
    return code;
}

}  // namespace movie::phantom

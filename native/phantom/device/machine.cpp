#include "phantom/device/machine.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "phantom/device/call.h"

namespace movie::phantom {

namespace {

std::atomic<bool> is_child = false;
std::atomic<Machine*> the_machine = nullptr;
std::once_flag made;
thread_local int current_device = 0;
thread_local int thread_last_error = kSuccess;

void mark_child() {
    if (the_machine.load() != nullptr) is_child = true;
}

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') result += '\\';
        result += letter;
    }
    return result + "\"";
}

void spend(double seconds) {
    using Time = std::chrono::steady_clock;
    const auto end = Time::now() + std::chrono::duration<double>(seconds);
    while (Time::now() < end) {
    }
}

// "%p" in a path stands for the number of the process.
std::string for_this_process(std::string path) {
    if (const auto at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(getpid()));
    return path;
}

// Runs when the process ends in the usual way.
__attribute__((destructor)) void write_counters() {
    Machine* machine = the_machine.load();
    if (machine == nullptr || is_child || machine->settings.counters.empty()) return;
    const std::string text = machine->counters();
    const std::string path = for_this_process(machine->settings.counters);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        say("cannot write the counters to " + path);
    if (file >= 0) close(file);
}

}  // namespace

int& last_error() { return thread_last_error; }

Machine* Machine::instance() {
    std::call_once(made, [] {
        try {
            Settings settings = Settings::from_environment();
            if (settings.device.empty()) return;
            Card card = find_card(settings.device);
            if (settings.memory) card.memory = *settings.memory;
            pthread_atfork(nullptr, nullptr, mark_child);
            the_machine = new Machine(std::move(settings), std::move(card));
        } catch (const std::exception& problem) {
            end_run(kBadSettings, problem.what());
        }
    });
    return the_machine.load(std::memory_order_acquire);
}

bool Machine::forked() { return is_child.load(std::memory_order_relaxed); }

Machine::Machine(Settings asked, Card of)
    : settings(std::move(asked)),
      card(std::move(of)),
      costs(cost_table(settings.costs)),
      memory(settings.count, card.memory, settings.taken, card.granularity, settings.bytes),
      late(mutex, Clock(settings.lag, settings.seed), [this](const Task& task) { perform(task); }),
      graphs([this](std::function<void()> function) { late.call_soon(std::move(function)); }) {
    devices.resize(static_cast<std::size_t>(settings.count));
    for (int index = 0; index < settings.count; ++index) {
        device(index).index = index;
        device(index).legacy = std::make_unique<Stream>();
        device(index).legacy->device = index;
        device(index).legacy->legacy = true;
        device(index).legacy->id = next_stream_++;
        pools.push_back(std::make_unique<Pool>(memory, index));
    }
    if (settings.log.empty()) return;
    log_descriptor_ = settings.log == "stderr" ? STDERR_FILENO
                                               : open(for_this_process(settings.log).c_str(),
                                                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_descriptor_ < 0) throw std::invalid_argument("cannot write the log to " + settings.log);
}

int Machine::current() { return current_device; }
void Machine::make_current(int device) { current_device = device; }

int Machine::activate(int index) {
    Device& one = device(index);
    if (one.active) return kSuccess;
    Room& room = memory.room(index);
    if (card.context > room.free()) {
        say("the card is too small for a context: it has " + std::to_string(room.total) + " bytes, others hold " +
            std::to_string(room.taken) + ", and a context takes " + std::to_string(card.context));
        return kOutOfMemory;
    }
    room.context = card.context;
    one.active = true;
    if (!said_ && !settings.quiet)
        say("this " + card.name + " is a phantom: no such card is used, nothing is computed, and values read back " +
            (settings.bytes ? "are those copied to it or zeros" : "are zeros"));
    said_ = true;
    return kSuccess;
}

void Machine::charge(int index, Call call) {
    Ledger& ledger = device(index).ledger;
    const double before = ledger.seconds;
    ledger.charge(costs, call);
    if (settings.delays) spend(ledger.seconds - before);
}

void Machine::charge_handles(int index, Call call, std::uint64_t handles) {
    Ledger& ledger = device(index).ledger;
    const double before = ledger.seconds;
    ledger.charge_handles(costs, call, handles);
    if (settings.delays) spend(ledger.seconds - before);
}

void Machine::violation(const std::string& text) {
    ++violations;
    const std::string line = "a rule of the driver was broken by " + text;
    if (settings.abort_on_violation) end_run(kRuleBroken, line);
    say(line);
}

void Machine::log(const std::string& line) {
    if (log_descriptor_ < 0) return;
    const std::string text = line + "\n";
    (void)!write(log_descriptor_, text.data(), text.size());
}

std::string Machine::counters() const {
    std::ostringstream out;
    out << "{\"card\": " << quoted(card.name) << ", \"launches\": " << launches << ", \"violations\": " << violations
        << ", \"now\": " << late.clock.now() << ", \"pinned\": " << pinned.bytes()
        << ", \"costs\": " << quoted(costs.name) << ", \"devices\": [";
    for (const Device& one : devices) {
        const Room& room = memory.room(one.index);
        out << (one.index == 0 ? "" : ", ") << "{\"active\": " << (one.active ? "true" : "false")
            << ", \"total\": " << room.total << ", \"taken\": " << room.taken << ", \"context\": " << room.context
            << ", \"used\": " << room.used << ", \"peak\": " << room.peak
            << ", \"driver_seconds\": " << one.ledger.seconds << ", \"driver\": {";
        for (std::size_t at = 0; at < kCalls; ++at)
            out << (at == 0 ? "" : ", ") << quoted(name_of(static_cast<Call>(at))) << ": " << one.ledger.calls[at];
        out << "}}";
    }
    out << "], \"calls\": {";
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> calls;
    for (const CallSite* site : CallSite::all()) {
        calls[site->name()].first += site->calls();
        calls[site->name()].second += site->faulted();
    }
    const char* comma = "";
    std::uint64_t faults = 0;
    for (const auto& [name, counts] : calls) {
        faults += counts.second;
        if (counts.first == 0) continue;
        out << comma << quoted(name) << ": " << counts.first;
        comma = ", ";
    }
    out << "}, \"faults\": " << faults << "}\n";
    return out.str();
}

}  // namespace movie::phantom

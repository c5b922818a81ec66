// movie._core.torch: the addresses of the hooks for torch's pluggable allocator, and what stands behind them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "api/bindings.h"
#include "api/stacks.h"
#include "api/statistics.h"
#include "driver/cuda/support.h"
#include "torch/bridge_table.h"
#include "torch/devices.h"
#include "torch/hooks.h"
#include "torch/out_of_memory.h"

namespace nb = nanobind;

namespace movie {

namespace {

using torch_side::Devices;
using torch_side::Pools;
using torch_side::TorchPoolId;

template <class Thing>
std::uintptr_t address_of(Thing* thing) {
    return reinterpret_cast<std::uintptr_t>(thing);
}

nb::dict hooks() {
    nb::dict addresses;
    addresses["alloc"] = address_of(&torch_side::allocate);
    addresses["free"] = address_of(&torch_side::release);
    addresses["reset"] = address_of(&torch_side::empty_cache);
    addresses["memory_fraction"] = address_of(&torch_side::set_fraction);
    addresses["base_alloc"] = address_of(&torch_side::base_of);
    addresses["record_stream"] = address_of(&torch_side::record_stream);
    addresses["begin_allocate_to_pool"] = address_of(&torch_side::open_pool);
    addresses["end_allocate_to_pool"] = address_of(&torch_side::close_pool);
    addresses["release_pool"] = address_of(&torch_side::release_pool);
    return addresses;
}

Policy policy_named(const std::string& name) {
    if (name == "auto") return Policy::automatic;
    if (name == "lean") return Policy::lean;
    throw std::invalid_argument("unknown policy '" + name + "' (known: auto, lean)");
}

// What has no device yet has nothing to report.
const MovieAllocator* allocator_of(int device) {
    const Devices::Entry* const entry = Devices::get().find(device);
    return entry == nullptr ? nullptr : &entry->allocator;
}

const char* name_of(LaidBlock::State state) {
    switch (state) {
        case LaidBlock::State::live:
            return "active_allocated";
        case LaidBlock::State::pending:
            return "active_pending_free";
        default:
            return "inactive";
    }
}

nb::list layout(int device) {
    nb::list segments;
    const MovieAllocator* const allocator = allocator_of(device);
    if (allocator == nullptr) return segments;
    for (const LaidSegment& segment : allocator->layout()) {
        nb::list blocks;
        for (const LaidBlock& block : segment.blocks)
            blocks.append(
                nb::make_tuple(block.address, block.size, block.requested, name_of(block.state), block.context));
        segments.append(nb::make_tuple(segment.address, segment.size, segment.stream, Pools::get().id_of(segment.pool),
                                       segment.kind == LaidSegment::Kind::view, blocks));
    }
    return segments;
}

nb::list history(int device) {
    nb::list events;
    const MovieAllocator* const allocator = allocator_of(device);
    if (allocator == nullptr) return events;
    for (const HistoryEvent& event : allocator->history()) {
        const std::string_view name = movie::name_of(event.kind);
        events.append(nb::make_tuple(nb::str(name.data(), name.size()), event.address, event.size, event.stream,
                                     Pools::get().id_of(event.pool), event.context, event.time_us));
    }
    return events;
}

std::uint64_t stack_of_malloc(bool of_free) { return of_free ? 0 : current_stack(); }
std::uint64_t stack_of_both(bool) { return current_stack(); }

MovieAllocator::ContextSource source_named(const std::string& stacks) {
    if (stacks == "none") return nullptr;
    if (stacks == "alloc") return &stack_of_malloc;
    if (stacks == "all") return &stack_of_both;
    throw std::invalid_argument("unknown stacks '" + stacks + "' (known: none, alloc, all)");
}

}  // namespace

void bind_torch(nb::module_& m) {
    nb::module_ torch = m.def_submodule(
        "torch", "MOVie under torch: one allocator a device, made when it is first asked for. Sizes in bytes.");

    torch.def("hooks", &hooks, "The addresses of the functions that torch's pluggable allocator calls, by its names.");
    torch.def(
        "bridge_table", [] { return address_of(&torch_side::bridge_table()); },
        "The address of what the compiled bridge is given.");
    torch.def(
        "driver_version",
        [] {
            int version = 0;
            const cuda::Library& library = cuda::Library::get();
            if (library.driver_version(&version) != cuda::kSuccess) version = 0;
            return version;
        },
        "Of the CUDA that the driver offers, as 1000 x major + 10 x minor. Initialises nothing; raises "
        "CudaUnavailable.");
    torch.def(
        "inspect_devices",
        [] {
            std::vector<std::pair<std::string, std::string>> devices;
            for (const cuda::DeviceFacts& facts : cuda::inspect_devices())
                devices.emplace_back(facts.name, facts.problem);
            return devices;
        },
        "(name, problem) of each device; no problem: MOVie can use it. Initialises the driver; raises "
        "CudaUnavailable.");
    torch.def(
        "check",
        [](const std::string& policy, const std::map<std::string, std::string>& options) {
            (void)movie_config(policy_named(policy), options);
        },
        nb::arg("policy"), nb::arg("options"), "Raises ValueError for what cannot be configured.");
    torch.def(
        "configure",
        [](const std::string& policy, const std::map<std::string, std::string>& options, Bytes cap) {
            Devices::get().configure({.policy = policy_named(policy), .options = options, .cap = cap});
        },
        nb::arg("policy"), nb::arg("options"), nb::arg("cap"),
        "Of devices made from now on. Raises ValueError for what cannot be.");
    torch.def("find_torch_exception", &torch_side::find_torch_exception,
              "Whether torch's own out-of-memory exception can be thrown.");

    torch.def(
        "devices",
        [] {
            std::vector<int> ordinals;
            Devices::get().for_each([&](const Devices::Entry& entry) { ordinals.push_back(entry.device.ordinal()); });
            return ordinals;
        },
        "The devices that were allocated from.");
    torch.def(
        "statistics",
        [](int device) {
            const MovieAllocator* const allocator = allocator_of(device);
            return to_dict(allocator == nullptr ? Statistics{} : allocator->statistics());
        },
        nb::arg("device"), "Counters with the keys of torch.cuda.memory_stats().");
    torch.def(
        "views",
        [](int device) {
            const MovieAllocator* const allocator = allocator_of(device);
            return to_dict(allocator == nullptr ? ViewCounters{} : allocator->views());
        },
        nb::arg("device"), "Views created, edited, reused and evicted.");
    torch.def(
        "unusable",
        [](int device, Stream stream) {
            const MovieAllocator* const allocator = allocator_of(device);
            return to_dict(allocator == nullptr ? Unusable{} : allocator->unusable(stream, 0));
        },
        nb::arg("device"), nb::arg("stream") = 0, "Reserved bytes that a request cannot use, by cause.");
    torch.def(
        "account",
        [](int device) {
            const Devices::Entry* const entry = Devices::get().find(device);
            return entry == nullptr ? Ledger{} : entry->device.account();
        },
        nb::arg("device"), "Driver calls made and memory held, counted by the device.");
    torch.def(
        "last_problem",
        [](int device) {
            const Devices::Entry* const entry = Devices::get().find(device);
            return entry == nullptr ? std::string() : entry->device.last_problem();
        },
        nb::arg("device"), "The last driver call that failed, and how; empty: none did.");
    torch.def(
        "reset_peaks",
        [](int device) {
            if (auto* const entry = Devices::get().find(device)) entry->allocator.reset_peak_statistics();
        },
        nb::arg("device"));
    torch.def(
        "reset_accumulated",
        [](int device) {
            if (auto* const entry = Devices::get().find(device)) entry->allocator.reset_accumulated_statistics();
        },
        nb::arg("device"));
    torch.def("fraction", [](int device) { return Devices::get().fraction(device); }, nb::arg("device"));
    torch.def(
        "reclaim",
        [](int device, Bytes bytes) {
            auto* const entry = Devices::get().find(device);
            return entry == nullptr ? Bytes{0} : entry->allocator.reclaim(bytes);
        },
        nb::arg("device"), nb::arg("bytes"), nb::call_guard<nb::gil_scoped_release>(),
        "Gives back at least `bytes` if that much is idle; returns how much.");

    torch.def(
        "record_history",
        [](std::size_t most, const std::string& stacks, bool keep) {
            const auto source = source_named(stacks);
            nb::gil_scoped_release released;  // an allocator's lock may be held by a thread that wants Python's
            Devices::get().record_history(most, source, keep);
        },
        nb::arg("most"), nb::arg("stacks") = "none", nb::arg("keep") = false,
        "Keeps the last `most` events of each device, with the Python stacks of: none, alloc, all (frees too). Those "
        "kept "
        "before are dropped, unless `keep` is asked for and the number is the same.");
    torch.def(
        "observe_out_of_memory",
        [](nb::object observer) {
            // Kept for as long as the process lives, as torch does.
            PyObject* const kept = observer.release().ptr();
            torch_side::observe_out_of_memory([kept](int device, Bytes wanted, Bytes reserved, Bytes free) {
                const nb::gil_scoped_acquire acquired;
                nb::borrow(kept)(device, wanted, reserved, free);
            });
        },
        nb::arg("observer"),
        "Calls observer(device, bytes wanted, bytes reserved, bytes free on the card) before an out-of-memory is "
        "raised.");
    torch.def("history", &history, nb::arg("device"),
              "(kind, address, size, stream, pool, stack, time in microseconds) of each event, oldest first.");
    torch.def("layout", &layout, nb::arg("device"),
              "(address, size, stream, pool, whether it is a view, blocks) of each segment, blocks as (address, size, "
              "requested, state, stack).");
    torch.def("stack_frames", &stack_frames, nb::arg("number"),
              "(code object, line) of each frame of a stack, innermost first.");
}

}  // namespace movie

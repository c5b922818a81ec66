#include "driver/ledger.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace movie {

namespace {

constexpr std::array<std::string_view, kCalls> kNames = {
    "create", "release", "map",         "unmap",        "set_access",  "reserve",     "free",
    "malloc", "mfree",   "synchronize", "event_record", "stream_wait", "event_query", "event_synchronize"};

constexpr CostTable kPerCall{.name = "per-call", .per_page = false};
constexpr CostTable kPerPage{.name = "per-page", .per_page = true};

double microseconds(const CostTable& costs, Call call) {
    switch (call) {
        case Call::create:
            return costs.create;
        case Call::release:
            return costs.release;
        case Call::map:
            return costs.map;
        case Call::unmap:
            return costs.unmap;
        case Call::set_access:
            return costs.set_access;
        case Call::reserve:
            return costs.reserve;
        case Call::free_address:
            return costs.free_address;
        case Call::malloc:
            return costs.malloc;
        case Call::mfree:
            return costs.mfree;
        case Call::event_record:
            return costs.event;
        case Call::stream_wait:
            return costs.wait;
        case Call::synchronize:
        case Call::event_query:
        case Call::event_synchronize:
            return 0;  // what they cost is the waiting, counted as stalled rows
    }
    return 0;
}

}  // namespace

std::string_view name_of(Call call) { return kNames[static_cast<std::size_t>(call)]; }

Call call_named(std::string_view name) {
    const auto found = std::find(kNames.begin(), kNames.end(), name);
    if (found == kNames.end()) throw std::invalid_argument("unknown driver call: " + std::string(name));
    return static_cast<Call>(found - kNames.begin());
}

const CostTable& cost_table(std::string_view name) {
    if (name == kPerCall.name) return kPerCall;
    if (name == kPerPage.name) return kPerPage;
    throw std::invalid_argument("unknown cost table '" + std::string(name) + "' (known: per-call, per-page)");
}

const char* name_of(Status status) {
    switch (status) {
        case Status::ok:
            return "ok";
        case Status::out_of_memory:
            return "out of memory";
        case Status::out_of_addresses:
            return "out of addresses";
        case Status::not_ready:
            return "not ready";
        case Status::failed:
            return "failed";
        case Status::shutting_down:
            return "shutting down";
    }
    return "?";
}

void Ledger::charge(const CostTable& costs, Call call) {
    ++calls[static_cast<std::size_t>(call)];
    seconds += microseconds(costs, call) * 1e-6;
}

void Ledger::charge_handles(const CostTable& costs, Call call, std::uint64_t handles) {
    if (costs.per_page && handles > 1) seconds += microseconds(costs, call) * static_cast<double>(handles - 1) * 1e-6;
}

void Ledger::hold(Bytes bytes) {
    reserved += bytes;
    peak_reserved = std::max(peak_reserved, reserved);
}

}  // namespace movie

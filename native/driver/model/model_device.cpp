#include "driver/model/model_device.h"

#include <algorithm>
#include <utility>

namespace movie {

namespace {

// Of the addresses that go downwards.
constexpr Address kLowest = Address{1} << 40;

}  // namespace

ModelDevice::ModelDevice(const ModelOptions& options)
    : options_(options),
      costs_(cost_table(options.costs)),
      book_(options.granularity, options.address_space),
      clock_(options.lag, options.seed) {
    if (options.granularity == 0 || (options.granularity & (options.granularity - 1)) != 0)
        throw std::invalid_argument("the granularity must be a power of two");
    if (options.lag < kNeverCompletes) throw std::invalid_argument("the lag must be at least 0 rows, or -1 for never");
    if (options.downwards) ranges_.give_back(kLowest, options.address_space);
}

MemoryInfo ModelDevice::memory_info() const {
    return {.free = options_.capacity - std::min(used(), options_.capacity), .total = options_.capacity};
}

Status ModelDevice::admit(Call call) {
    if (shutting_down_) return Status::shutting_down;
    Status fate = Status::ok;
    auto& faults = faults_[static_cast<std::size_t>(call)];
    for (Fault& fault : faults)
        if (--fault.countdown == 0) fate = fault.status;
    std::erase_if(faults, [](const Fault& fault) { return fault.countdown == 0; });
    ledger_.charge(costs_, call);  // a call that fails is a call
    return fate;
}

void ModelDevice::inject(Call call, std::uint64_t k, Status status) {
    if (k == 0) throw std::invalid_argument("faults are counted from 1");
    faults_[static_cast<std::size_t>(call)].push_back({.countdown = k, .status = status});
}

void ModelDevice::forbid_while_capturing(const char* call) const {
    if (!capturing_.empty()) throw RuleViolation(std::string(call) + ": forbidden while a stream captures");
}

Outcome<Address> ModelDevice::reserve(Bytes size) {
    book_.check_size("reserve", size);
    if (const Status fate = admit(Call::reserve); fate != Status::ok) return {fate, 0};
    if (!options_.downwards) return book_.reserve(size);
    const auto address = ranges_.take(with_distance(size), std::max(kRangeDistance, options_.granularity));
    if (!address.ok()) return address;
    const Status status = book_.reserve_at(address.value, size);
    if (status != Status::ok) ranges_.give_back(address.value, with_distance(size));
    return {status, address.value};
}

Status ModelDevice::free_address(Address address, Bytes size) {
    book_.check_free_address(address, size);
    if (const Status fate = admit(Call::free_address); fate != Status::ok) return fate;
    book_.free_address(address, size);
    if (options_.downwards) ranges_.give_back(address, with_distance(size));
    return Status::ok;
}

Outcome<Handle> ModelDevice::create(Bytes size) {
    book_.check_size("create", size);
    if (const Status fate = admit(Call::create); fate != Status::ok) return {fate, 0};
    if (size > memory_info().free) return {Status::out_of_memory, 0};
    ledger_.hold(size);
    return {Status::ok, book_.create(size)};
}

Status ModelDevice::release(Handle handle) {
    book_.check_release(handle);
    if (const Status fate = admit(Call::release); fate != Status::ok) return fate;
    ledger_.give_back(book_.release(handle));
    return Status::ok;
}

Status ModelDevice::map(Address address, Bytes size, Handle handle) {
    book_.check_map(address, size, handle);
    if (const Status fate = admit(Call::map); fate != Status::ok) return fate;
    book_.map(address, size, handle);
    return Status::ok;
}

Status ModelDevice::unmap(Address address, Bytes size) {
    forbid_while_capturing("unmap");
    const std::uint64_t handles = book_.check_complete_mappings("unmap", address, size);
    if (const Status fate = admit(Call::unmap); fate != Status::ok) return fate;
    ledger_.charge_handles(costs_, Call::unmap, handles);
    ledger_.give_back(book_.unmap(address, size).returned);
    return Status::ok;
}

Status ModelDevice::set_access(Address address, Bytes size) {
    const std::uint64_t handles = book_.check_complete_mappings("set_access", address, size);
    if (const Status fate = admit(Call::set_access); fate != Status::ok) return fate;
    ledger_.charge_handles(costs_, Call::set_access, handles);
    book_.set_access(address, size);
    return Status::ok;
}

Outcome<Address> ModelDevice::malloc(Bytes size) {
    if (size == 0) throw RuleViolation("malloc(size=0)");
    if (const Status fate = admit(Call::malloc); fate != Status::ok) return {fate, 0};
    if (size > memory_info().free) return {Status::out_of_memory, 0};
    Address address = 0;
    if (!script_.empty()) {
        address = script_.back();
        script_.pop_back();
    } else {
        next_plain_ -= round_up(size, options_.granularity);  // as on real cards: aligned, descending
        address = next_plain_;
    }
    if (!plain_.emplace(address, size).second) throw RuleViolation("malloc: a scripted address is in use");
    ledger_.hold(size);
    return {Status::ok, address};
}

Status ModelDevice::mfree(Address address) {
    forbid_while_capturing("mfree");
    const auto found = plain_.find(address);
    if (found == plain_.end()) throw RuleViolation("mfree(address=" + std::to_string(address) + "): not an allocation");
    if (const Status fate = admit(Call::mfree); fate != Status::ok) return fate;
    clock_.drained();
    ledger_.give_back(found->second);
    plain_.erase(found);
    return Status::ok;
}

void ModelDevice::script_addresses(std::vector<Address> addresses) {
    script_ = std::move(addresses);
    std::reverse(script_.begin(), script_.end());
}

Outcome<Event> ModelDevice::event_record(Stream stream) {
    if (capturing_.contains(stream)) throw RuleViolation("event_record: forbidden on a capturing stream");
    if (const Status fate = admit(Call::event_record); fate != Status::ok) return {fate, 0};
    return {Status::ok, clock_.record(stream)};
}

Status ModelDevice::event_query(Event event) {
    forbid_while_capturing("event_query");
    clock_.check("event_query", event);
    if (const Status fate = admit(Call::event_query); fate != Status::ok) return fate;
    return clock_.complete(event) ? Status::ok : Status::not_ready;
}

Status ModelDevice::event_synchronize(Event event) {
    forbid_while_capturing("event_synchronize");
    clock_.check("event_synchronize", event);
    if (const Status fate = admit(Call::event_synchronize); fate != Status::ok) return fate;
    ledger_.stalled_rows += clock_.remaining(event);
    clock_.wait_on_host(event);
    return Status::ok;
}

void ModelDevice::event_destroy(Event event) {
    clock_.check("event_destroy", event);
    clock_.forget(event);
}

Status ModelDevice::stream_wait(Stream stream, Event event) {
    clock_.check("stream_wait", event);
    if (const Status fate = admit(Call::stream_wait); fate != Status::ok) return fate;
    ledger_.stalled_rows += clock_.remaining(event);
    clock_.wait_on_device(stream, event);
    return Status::ok;
}

Status ModelDevice::synchronize() {
    forbid_while_capturing("synchronize");
    if (const Status fate = admit(Call::synchronize); fate != Status::ok) return fate;
    clock_.finish_all();
    return Status::ok;
}

Status ModelDevice::external_take(Bytes size) {
    if (size > memory_info().free) return Status::out_of_memory;
    external_ += size;
    return Status::ok;
}

void ModelDevice::external_give(Bytes size) { external_ -= std::min(size, external_); }

}  // namespace movie

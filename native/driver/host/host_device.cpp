#include "driver/host/host_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "driver/host/patterns.h"

namespace movie {

namespace {

void* pointer(Address address) { return reinterpret_cast<void*>(address); }

// What the system lets a process have, less what this one has already and may come to need.
std::size_t areas_left() {
    constexpr std::size_t kUsual = 65530;
    constexpr std::size_t kForOthers = 1024;
    std::size_t most = kUsual;
    std::ifstream("/proc/sys/vm/max_map_count") >> most;
    std::ifstream maps("/proc/self/maps");
    const auto taken = static_cast<std::size_t>(
        std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
    return most - std::min(most, taken + kForOthers);
}

// Reserved addresses: nothing may be read or written there, and no memory stands behind them.
void* without_access(void* at, Bytes size, int flags) {
    return mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

std::string range_text(Address address, Bytes size) {
    char text[64];
    std::snprintf(text, sizeof text, "[0x%" PRIx64 ", +%" PRIu64 ")", address, size);
    return text;
}

void check_words(Address address, Bytes stride) {
    if (address % 8 != 0 || stride == 0 || stride % 8 != 0)
        throw std::invalid_argument("patterns need addresses and strides that are multiples of 8");
}

}  // namespace

HostDevice::HostDevice(const HostOptions& options)
    : options_(options),
      costs_(cost_table(options.costs)),
      most_areas_(options.most_areas != 0 ? options.most_areas : areas_left()),
      book_(options.granularity, options.address_space),
      streams_(options.streams) {
    const auto page = static_cast<Bytes>(sysconf(_SC_PAGESIZE));
    if (options.granularity < page || (options.granularity & (options.granularity - 1)) != 0)
        throw std::invalid_argument("the granularity must be a power of two, and at least the system's page size");
}

HostDevice::~HostDevice() {
    streams_.finish_all();  // work must not meet addresses that are gone
    for (const auto& [address, size] : book_.reserved()) munmap(pointer(address), size);
    for (const auto& [address, size] : plain_) munmap(pointer(address), size);
}

MemoryInfo HostDevice::memory_info() const {
    const Look lock(memory_);
    return {.free = options_.capacity - std::min(ledger_.reserved, options_.capacity), .total = options_.capacity};
}

void HostDevice::charge(Call call) {
    const Change lock(memory_);
    ledger_.charge(costs_, call);
}

Status HostDevice::fail(Status status, const char* call, int error) {
    problem_ = std::string(call) + ": " + std::generic_category().message(error);
    return status;
}

bool HostDevice::has_areas_for(std::size_t more, const char* call) {
    const std::size_t used = book_.areas() + plain_.size();
    if (used + more <= most_areas_) return true;
    problem_ = std::string(call) + ": " + std::to_string(used) + " of " + std::to_string(most_areas_) +
               " memory areas are in use. The system's limit is vm.max_map_count; raise it (sysctl -w "
               "vm.max_map_count=1048576), or use larger pages";
    return false;
}

// --- virtual addresses -----------------------------------------------------------------------------------------------

Outcome<Address> HostDevice::reserve(Bytes size) {
    const Change lock(memory_);
    book_.check_size("reserve", size);
    ledger_.charge(costs_, Call::reserve);
    if (!has_areas_for(1, "reserve")) return {Status::out_of_addresses, 0};
    // The system aligns to its own pages only: take more, give back what is not needed.
    const Bytes span = size + options_.granularity;
    void* const at = span < size ? MAP_FAILED : without_access(nullptr, span, 0);
    if (at == MAP_FAILED) return {fail(Status::out_of_addresses, "reserve", errno), 0};
    const auto begin = reinterpret_cast<Address>(at);
    const Address address = round_up(begin, options_.granularity);
    if (address > begin) munmap(at, address - begin);
    munmap(pointer(address + size), begin + span - (address + size));
    const Status status = book_.reserve_at(address, size);
    if (status != Status::ok) munmap(pointer(address), size);
    return {status, status == Status::ok ? address : 0};
}

Status HostDevice::free_address(Address address, Bytes size) {
    const Change lock(memory_);
    book_.check_free_address(address, size);
    ledger_.charge(costs_, Call::free_address);
    if (munmap(pointer(address), size) != 0) return fail(Status::failed, "free_address", errno);
    book_.free_address(address, size);
    return Status::ok;
}

// --- physical memory -------------------------------------------------------------------------------------------------

Outcome<Handle> HostDevice::create(Bytes size) {
    const Change lock(memory_);
    book_.check_size("create", size);
    ledger_.charge(costs_, Call::create);
    if (ledger_.reserved > options_.capacity || size > options_.capacity - ledger_.reserved)
        return {Status::out_of_memory, 0};
    const auto offset = file_.take(size);
    if (!offset.ok()) return {fail(offset.status, "create", errno), 0};
    ledger_.hold(size);
    const Handle handle = book_.create(size);
    pieces_.emplace(handle, Piece{.offset = offset.value, .size = size});
    return {Status::ok, handle};
}

void HostDevice::give_back(Handle handle) {
    const auto piece = pieces_.find(handle);
    file_.give_back(piece->second.offset, piece->second.size);
    pieces_.erase(piece);
}

Status HostDevice::release(Handle handle) {
    const Change lock(memory_);
    book_.check_release(handle);
    ledger_.charge(costs_, Call::release);
    ledger_.give_back(book_.release(handle));
    if (!book_.holds(handle)) give_back(handle);
    return Status::ok;
}

// --- mappings --------------------------------------------------------------------------------------------------------

Status HostDevice::map(Address address, Bytes size, Handle handle) {
    const Change lock(memory_);
    book_.check_map(address, size, handle);
    ledger_.charge(costs_, Call::map);
    if (!has_areas_for(book_.areas_of_map(address, size), "map")) return Status::failed;
    const auto offset = static_cast<off_t>(pieces_.at(handle).offset);
    if (mmap(pointer(address), size, PROT_NONE, MAP_SHARED | MAP_FIXED, file_.descriptor(), offset) == MAP_FAILED)
        return fail(Status::failed, "map", errno);
    // Where the system has huge pages to give, the first touch of a mapping costs one fault and not hundreds.
    (void)madvise(pointer(address), size, MADV_HUGEPAGE);
    book_.map(address, size, handle);
    return Status::ok;
}

Status HostDevice::unmap(Address address, Bytes size) {
    const Change lock(memory_);
    const std::uint64_t handles = book_.check_complete_mappings("unmap", address, size);
    ledger_.charge(costs_, Call::unmap);
    if (without_access(pointer(address), size, MAP_FIXED) == MAP_FAILED) return fail(Status::failed, "unmap", errno);
    ledger_.charge_handles(costs_, Call::unmap, handles);
    std::vector<Handle> touched;
    for (auto mapping = book_.mappings().find(address);
         mapping != book_.mappings().end() && mapping->first < address + size; ++mapping)
        touched.push_back(mapping->second.handle);
    ledger_.give_back(book_.unmap(address, size).returned);
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (const Handle handle : touched)
        if (!book_.holds(handle)) give_back(handle);
    return Status::ok;
}

Status HostDevice::set_access(Address address, Bytes size) {
    const Change lock(memory_);
    const std::uint64_t handles = book_.check_complete_mappings("set_access", address, size);
    ledger_.charge(costs_, Call::set_access);
    if (mprotect(pointer(address), size, PROT_READ | PROT_WRITE) != 0) return fail(Status::failed, "set_access", errno);
    ledger_.charge_handles(costs_, Call::set_access, handles);
    book_.set_access(address, size);
    return Status::ok;
}

// --- plain allocations -----------------------------------------------------------------------------------------------

Outcome<Address> HostDevice::malloc(Bytes size) {
    if (size == 0) throw RuleViolation("malloc(size=0)");
    const Change lock(memory_);
    ledger_.charge(costs_, Call::malloc);
    if (ledger_.reserved > options_.capacity || size > options_.capacity - ledger_.reserved)
        return {Status::out_of_memory, 0};
    if (!has_areas_for(1, "malloc")) return {Status::failed, 0};
    void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return {fail(Status::out_of_memory, "malloc", errno), 0};
    ledger_.hold(size);
    plain_.emplace(reinterpret_cast<Address>(at), size);
    return {Status::ok, reinterpret_cast<Address>(at)};
}

Status HostDevice::mfree(Address address) {
    {
        const Change lock(memory_);
        if (!plain_.contains(address))
            throw RuleViolation("mfree(address=" + std::to_string(address) + "): not an allocation");
        ledger_.charge(costs_, Call::mfree);
    }
    streams_.finish_all();
    const Change lock(memory_);
    const auto found = plain_.find(address);
    if (munmap(pointer(address), found->second) != 0) return fail(Status::failed, "mfree", errno);
    ledger_.give_back(found->second);
    plain_.erase(found);
    return Status::ok;
}

// --- order of work ---------------------------------------------------------------------------------------------------

Outcome<Event> HostDevice::event_record(Stream stream) {
    charge(Call::event_record);
    return {Status::ok, streams_.record(stream)};
}

Status HostDevice::event_query(Event event) {
    const bool complete = streams_.complete(event);
    charge(Call::event_query);
    return complete ? Status::ok : Status::not_ready;
}

Status HostDevice::event_synchronize(Event event) {
    const std::uint64_t ticks = streams_.remaining(event);
    streams_.wait_on_host(event);
    const Change lock(memory_);
    ledger_.charge(costs_, Call::event_synchronize);
    ledger_.stalled_rows += ticks;
    return Status::ok;
}

void HostDevice::event_destroy(Event event) { streams_.forget(event); }

Status HostDevice::stream_wait(Stream stream, Event event) {
    const std::uint64_t ticks = streams_.remaining(event);
    streams_.wait_on_device(stream, event);
    const Change lock(memory_);
    ledger_.charge(costs_, Call::stream_wait);
    ledger_.stalled_rows += ticks;
    return Status::ok;
}

Status HostDevice::synchronize() {
    charge(Call::synchronize);
    streams_.finish_all();
    return Status::ok;
}

// --- work of a program -----------------------------------------------------------------------------------------------

bool HostDevice::accessible(Address address, Bytes size) const {
    if (book_.accessible(address, size)) return true;
    return std::any_of(plain_.begin(), plain_.end(), [&](const auto& each) {
        return address >= each.first && address + size <= each.first + each.second;
    });
}

void HostDevice::note(const std::string& problem) {
    if (report_.first_problem.empty()) report_.first_problem = problem;
}

void HostDevice::queue(Stream stream, const char* what, Address address, Bytes size, std::function<void()> work) {
    streams_.queue(stream, [this, stream, what, address, size, run = std::move(work)] {
        const Look lock(memory_);
        if (accessible(address, size)) return run();
        const std::lock_guard report_lock(report_mutex_);
        ++report_.illegal_accesses;
        note(std::string(what) + " on stream " + std::to_string(stream) + ": " + range_text(address, size) +
             " is not mapped with access");
    });
}

void HostDevice::fill(Stream stream, Address address, Bytes size, std::uint64_t pattern, Bytes stride) {
    check_words(address, stride);
    queue(stream, "fill", address, size, [=] { write_pattern(address, size, pattern, stride); });
}

void HostDevice::check(Stream stream, Address address, Bytes size, std::uint64_t pattern, Bytes stride) {
    check_words(address, stride);
    queue(stream, "check", address, size, [=, this] {
        const auto mismatch = find_mismatch(address, size, pattern, stride);
        const std::lock_guard lock(report_mutex_);
        ++report_.checks;
        report_.bytes_checked += size;
        if (!mismatch) return;
        ++report_.mismatches;
        note("stream " + std::to_string(stream) + ": " + range_text(address, size) + " was overwritten at offset " +
             std::to_string(mismatch->offset));
    });
}

void HostDevice::copy(Stream stream, Address to, Address from, Bytes size) {
    queue(stream, "copy from", from, size, [=, this] {
        if (accessible(to, size)) {
            std::memmove(pointer(to), pointer(from), size);
            return;
        }
        const std::lock_guard lock(report_mutex_);
        ++report_.illegal_accesses;
        note("copy to on stream " + std::to_string(stream) + ": " + range_text(to, size) +
             " is not mapped with access");
    });
}

void HostDevice::order_behind(Stream stream, Stream other) {
    const Event event = streams_.record(other);
    streams_.wait_on_device(stream, event);
    streams_.forget(event);
}

HostReport HostDevice::report() const {
    const std::lock_guard lock(report_mutex_);
    return report_;
}

std::size_t HostDevice::areas() const {
    const Look lock(memory_);
    return book_.areas() + plain_.size();
}

std::string HostDevice::last_problem() const {
    const Look lock(memory_);
    return problem_;
}

std::size_t HostDevice::mappings() const {
    const Look lock(memory_);
    return book_.mappings().size();
}

std::size_t HostDevice::handles() const {
    const Look lock(memory_);
    return book_.handles();
}

std::size_t HostDevice::reservations() const {
    const Look lock(memory_);
    return book_.reservations();
}

}  // namespace movie

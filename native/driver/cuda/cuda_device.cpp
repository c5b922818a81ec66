#include "driver/cuda/cuda_device.h"

#include <algorithm>

#include "driver/cuda/support.h"

namespace movie {

namespace {

using cuda::kSuccess;

Status status_of(cuda::Result result) {
    switch (result) {
        case kSuccess:
            return Status::ok;
        case cuda::kOutOfMemory:
            return Status::out_of_memory;
        case cuda::kNotReady:
            return Status::not_ready;
        case cuda::kDeinitialized:
        case cuda::kContextIsDestroyed:
            return Status::shutting_down;
        default:
            return Status::failed;
    }
}

cuda::DriverStream stream_of(Stream stream) { return reinterpret_cast<cuda::DriverStream>(stream); }
cuda::DriverEvent event_of(Event event) { return reinterpret_cast<cuda::DriverEvent>(event); }

bool offers(const cuda::Library& library, cuda::Device device, int attribute) {
    int value = 0;
    return library.device_attribute(&value, attribute, device) == kSuccess && value != 0;
}

}  // namespace

CudaDevice::CudaDevice(int ordinal)
    : cuda_(cuda::Library::get()), ordinal_(ordinal), primary_(ordinal), costs_(cost_table("per-call")) {
    require_virtual_memory(cuda_, primary_.device(), ordinal);
    properties_.location.id = primary_.device();
    // What other processes, network cards and nodes need of memory is settled when it is created.
    if (offers(cuda_, primary_.device(), cuda::kPosixFileDescriptor))
        properties_.handle_types |= cuda::kHandlePosixFileDescriptor;
    if (offers(cuda_, primary_.device(), cuda::kFabric)) properties_.handle_types |= cuda::kHandleFabric;
    properties_.gpu_direct_rdma = offers(cuda_, primary_.device(), cuda::kGpuDirectRdma) ? 1 : 0;

    const cuda::Entered entered(primary_);
    std::size_t granularity = 0;
    const cuda::Result result = cuda_.granularity(&granularity, &properties_, cuda::kMinimumGranularity);
    if (result != kSuccess)
        throw cuda::Unavailable("device " + std::to_string(ordinal) +
                                " does not say how it maps memory: " + cuda_.describe(result));
    granularity_ = granularity;
}

Status CudaDevice::booked(Call call, const char* name, cuda::Result result) {
    ledger_.charge(costs_, call);
    if (result != kSuccess && result != cuda::kNotReady) problem_ = std::string(name) + ": " + cuda_.describe(result);
    return status_of(result);
}

MemoryInfo CudaDevice::memory_info() const {
    const cuda::Entered entered(primary_);
    std::size_t free = 0;
    std::size_t total = 0;
    // Where even this fails the card is lost: it has no room.
    if (cuda_.memory_info(&free, &total) != kSuccess) return {};
    return {.free = free, .total = total};
}

// --- virtual addresses -----------------------------------------------------------------------------------------------

Outcome<Address> CudaDevice::reserve(Bytes size) {
    const std::lock_guard lock(mutex_);
    const cuda::Entered entered(primary_);
    const cuda::RelaxedCapture relaxed;
    const Bytes whole = with_distance(size);
    cuda::DevicePointer address = 0;
    const cuda::Result result = cuda_.reserve(&address, whole, kRangeDistance, 0, 0);
    Status status = booked(Call::reserve, "cuMemAddressReserve", result);
    if (status == Status::out_of_memory) status = Status::out_of_addresses;
    if (status == Status::ok) reserved_.emplace(address, whole);
    return {status, address};
}

Status CudaDevice::free_address(Address address, Bytes size) {
    const std::lock_guard lock(mutex_);
    const cuda::Entered entered(primary_);
    const auto found = reserved_.find(address);
    const Bytes whole = found == reserved_.end() ? size : found->second;
    const Status status = booked(Call::free_address, "cuMemAddressFree", cuda_.free_address(address, whole));
    if (status == Status::ok && found != reserved_.end()) reserved_.erase(found);
    return status;
}

// --- physical memory -------------------------------------------------------------------------------------------------

Outcome<Handle> CudaDevice::create(Bytes size) {
    const std::lock_guard lock(mutex_);
    const cuda::Entered entered(primary_);
    const cuda::RelaxedCapture relaxed;
    cuda::MemoryHandle handle = 0;
    cuda::Result result = cuda_.create(&handle, size, &properties_, 0);
    // Many machines have cards that could share memory between nodes and no service that permits it.
    if ((result == cuda::kNotPermitted || result == cuda::kNotSupported) &&
        (properties_.handle_types & cuda::kHandleFabric) != 0) {
        ledger_.charge(costs_, Call::create);
        properties_.handle_types &= ~cuda::kHandleFabric;
        result = cuda_.create(&handle, size, &properties_, 0);
    }
    const Status status = booked(Call::create, "cuMemCreate", result);
    if (status == Status::ok) {
        handles_.emplace(handle, size);
        ledger_.hold(size);
    }
    return {status, handle};
}

Status CudaDevice::release(Handle handle) {
    const std::lock_guard lock(mutex_);
    const cuda::Entered entered(primary_);
    const Status status = booked(Call::release, "cuMemRelease", cuda_.release(handle));
    if (status != Status::ok) return status;
    // The allocator releases what is mapped nowhere, so that the memory returns to the card now.
    if (const auto found = handles_.find(handle); found != handles_.end()) {
        ledger_.give_back(found->second);
        handles_.erase(found);
    }
    return status;
}

// --- mappings --------------------------------------------------------------------------------------------------------

Status CudaDevice::map(Address address, Bytes size, Handle handle) {
    const std::lock_guard lock(mutex_);
    const cuda::Entered entered(primary_);
    const cuda::RelaxedCapture relaxed;
    const Status status = booked(Call::map, "cuMemMap", cuda_.map(address, size, 0, handle, 0));
    if (status == Status::ok) mappings_.emplace(address, size);
    return status;
}

Status CudaDevice::unmap(Address address, Bytes size) {
    const std::lock_guard lock(mutex_);
    const cuda::Entered entered(primary_);
    const Status status = booked(Call::unmap, "cuMemUnmap", cuda_.unmap(address, size));
    if (status == Status::ok) mappings_.erase(mappings_.lower_bound(address), mappings_.lower_bound(address + size));
    return status;
}

std::vector<cuda::AccessDescription> CudaDevice::everyone() const {
    std::vector<cuda::AccessDescription> access(1);
    access[0].location.id = primary_.device();
    for (const int peer : peers_) access.push_back({.location = {.id = peer}});
    return access;
}

Status CudaDevice::set_access(Address address, Bytes size) {
    const std::lock_guard lock(mutex_);
    const cuda::Entered entered(primary_);
    const cuda::RelaxedCapture relaxed;
    const auto access = everyone();
    return booked(Call::set_access, "cuMemSetAccess", cuda_.set_access(address, size, access.data(), access.size()));
}

Status CudaDevice::add_peer(const CudaDevice& other) {
    const std::lock_guard lock(mutex_);
    const cuda::Entered entered(primary_);
    const cuda::Device peer = other.primary_.device();
    int reachable = 0;
    if (peer == primary_.device() || std::find(peers_.begin(), peers_.end(), peer) != peers_.end() ||
        cuda_.can_access_peer(&reachable, peer, primary_.device()) != kSuccess || reachable == 0)
        return Status::ok;
    const cuda::RelaxedCapture relaxed;
    const cuda::AccessDescription access{.location = {.id = peer}};
    for (auto first = mappings_.begin(); first != mappings_.end();) {
        auto last = first;
        Address end = first->first;
        for (; last != mappings_.end() && last->first == end; ++last) end += last->second;
        const cuda::Result result = cuda_.set_access(first->first, end - first->first, &access, 1);
        if (const Status status = booked(Call::set_access, "cuMemSetAccess", result); status != Status::ok)
            return status;
        first = last;
    }
    peers_.push_back(peer);
    return Status::ok;
}

// --- plain allocations -----------------------------------------------------------------------------------------------

Outcome<Address> CudaDevice::malloc(Bytes size) {
    const std::lock_guard lock(mutex_);
    const cuda::Entered entered(primary_);
    const cuda::RelaxedCapture relaxed;
    cuda::DevicePointer address = 0;
    const Status status = booked(Call::malloc, "cuMemAlloc", cuda_.malloc(&address, size));
    if (status == Status::ok) {
        plain_.emplace(address, size);
        ledger_.hold(size);
    }
    return {status, address};
}

Status CudaDevice::mfree(Address address) {
    const std::lock_guard lock(mutex_);
    const cuda::Entered entered(primary_);
    const Status status = booked(Call::mfree, "cuMemFree", cuda_.mfree(address));
    if (status != Status::ok) return status;
    if (const auto found = plain_.find(address); found != plain_.end()) {
        ledger_.give_back(found->second);
        plain_.erase(found);
    }
    return status;
}

// --- order of work ---------------------------------------------------------------------------------------------------

Outcome<Event> CudaDevice::event_record(Stream stream) {
    const std::lock_guard lock(mutex_);
    const cuda::Entered entered(primary_);
    cuda::DriverEvent event = nullptr;
    if (!spare_events_.empty()) {
        event = spare_events_.back();
        spare_events_.pop_back();
    } else if (const cuda::Result result = cuda_.event_create(&event, cuda::kEventWithoutTiming); result != kSuccess) {
        return {booked(Call::event_record, "cuEventCreate", result), 0};
    }
    const Status status = booked(Call::event_record, "cuEventRecord", cuda_.event_record(event, stream_of(stream)));
    if (status != Status::ok) {
        spare_events_.push_back(event);
        return {status, 0};
    }
    return {status, reinterpret_cast<Event>(event)};
}

Status CudaDevice::event_query(Event event) {
    const std::lock_guard lock(mutex_);
    return booked(Call::event_query, "cuEventQuery", cuda_.event_query(event_of(event)));
}

// Without the lock: other threads go on while this one waits.
Status CudaDevice::event_synchronize(Event event) {
    const cuda::Result result = cuda_.event_synchronize(event_of(event));
    const std::lock_guard lock(mutex_);
    return booked(Call::event_synchronize, "cuEventSynchronize", result);
}

void CudaDevice::event_destroy(Event event) {
    const std::lock_guard lock(mutex_);
    spare_events_.push_back(event_of(event));
}

Status CudaDevice::stream_wait(Stream stream, Event event) {
    const std::lock_guard lock(mutex_);
    const cuda::Entered entered(primary_);
    return booked(Call::stream_wait, "cuStreamWaitEvent", cuda_.stream_wait(stream_of(stream), event_of(event), 0));
}

Status CudaDevice::synchronize() {
    const cuda::Entered entered(primary_);
    const cuda::Result result = cuda_.synchronize_context();
    const std::lock_guard lock(mutex_);
    return booked(Call::synchronize, "cuCtxSynchronize", result);
}

Ledger CudaDevice::account() const {
    const std::lock_guard lock(mutex_);
    return ledger_;
}

std::string CudaDevice::last_problem() const {
    const std::lock_guard lock(mutex_);
    return problem_;
}

}  // namespace movie

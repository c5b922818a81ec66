#include "torch/hooks.h"

#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "torch/devices.h"
#include "torch/out_of_memory.h"

namespace movie::torch_side {

namespace {

Stream stream_of(void* stream) { return reinterpret_cast<Stream>(stream); }
Address address_of(void* address) { return reinterpret_cast<Address>(address); }

struct Observers {
    std::mutex mutex;
    std::vector<OutOfMemoryObserver> all;

    static Observers& get() {
        static auto* const observers = new Observers();
        return *observers;
    }
};

void tell_observers(int device, Bytes wanted) {
    std::vector<OutOfMemoryObserver> observers;
    {
        const std::lock_guard lock(Observers::get().mutex);
        observers = Observers::get().all;
    }
    const Devices::Entry* const entry = Devices::get().find(device);
    if (observers.empty() || entry == nullptr) return;
    const Bytes reserved = entry->device.account().reserved;
    const Bytes free = entry->device.memory_info().free;
    for (const auto& observer : observers) observer(device, wanted, reserved, free);
}

}  // namespace

void* allocate(std::ptrdiff_t size, int device, void* stream) {
    if (size <= 0) return nullptr;
    const Stream on = stream_of(stream);
    const Request request{
        .bytes = static_cast<Bytes>(size),
        .stream = on,
        .pool = Pools::get().pool_for(device, on),
    };
    try {
        return reinterpret_cast<void*>(Devices::get().at(device).allocator.malloc(request));
    } catch (const OutOfMemory& error) {
        tell_observers(device, request.bytes);
        std::string report = "CUDA out of memory (device " + std::to_string(device) + "). " + error.what();
        const std::string problem = Devices::get().at(device).device.last_problem();
        if (!problem.empty()) report += " The last driver call that failed: " + problem + ".";
        throw_out_of_memory(report);
    }
}

void release(void* address, std::size_t, int device, void*) {
    Devices::Entry* const entry = Devices::get().find(device);
    if (entry == nullptr || address == nullptr) return;
    try {
        entry->allocator.free(address_of(address));
    } catch (const std::invalid_argument&) {  // not ours: torch calls from destructors, nothing may leave here
    }
}

int device_of(void* address) {
    int device = -1;
    Devices::get().for_each([&](const Devices::Entry& entry) {
        if (entry.allocator.block_at(address_of(address))) device = entry.device.ordinal();
    });
    return device;
}

void release_anywhere(void* address) {
    // Nearly all processes use one device, and asking whose a block is costs as much again as to free it.
    const Devices::Entry* const only = Devices::get().only();
    release(address, 0, only != nullptr ? only->device.ordinal() : device_of(address), nullptr);
}

void empty_cache() {
    Devices::get().for_each([](Devices::Entry& entry) { entry.allocator.empty_cache(); });
}

void set_fraction(double fraction, int device) { Devices::get().set_fraction(device, fraction); }

void* base_of(void* address, std::size_t* size) {
    Devices::get().for_each([&](Devices::Entry& entry) {
        const auto block = entry.allocator.block_at(address_of(address));
        if (block && size != nullptr) *size = block->size;
    });
    return address;
}

void record_stream(void* address, void* stream) {
    Devices::get().for_each(
        [&](Devices::Entry& entry) { entry.allocator.record_stream(address_of(address), stream_of(stream)); });
}

void open_pool(int device, TorchPoolId id, StreamFilter filter) {
    Pools::get().open(device, id, std::move(filter));
    Devices::get().begin_capture();
}

void close_pool(int device, TorchPoolId id) {
    if (Pools::get().close(device, id)) Devices::get().end_capture();
}

void observe_out_of_memory(OutOfMemoryObserver observer) {
    const std::lock_guard lock(Observers::get().mutex);
    Observers::get().all.push_back(std::move(observer));
}

void release_pool(int device, TorchPoolId id) {
    const PoolId number = Pools::get().number_of(device, id);
    Devices::Entry* const entry = Devices::get().find(device);
    if (Pools::get().release(device, id) && entry != nullptr) entry->allocator.release_pool(number);
}

}  // namespace movie::torch_side

#include "torch/bridge_table.h"

#include <algorithm>
#include <stdexcept>

#include "torch/devices.h"
#include "torch/hooks.h"

namespace movie::torch_side {

namespace {

// What has no device yet has nothing to report.
template <class Result, class Ask>
Result ask(int device, Result otherwise, Ask question) {
    Devices::Entry* const entry = Devices::get().find(device);
    return entry == nullptr ? std::move(otherwise) : question(*entry);
}

std::size_t most_available(int device) {
    // A device that has not been used yet is made: the answer decides how cuDNN works from now on.
    Devices::Entry& entry = Devices::get().at(device);
    const Statistics now = entry.allocator.statistics();
    const auto idle = now.reserved_bytes[PoolKind::all].current - now.active_bytes[PoolKind::all].current;
    return entry.device.memory_info().free + static_cast<Bytes>(std::max<std::int64_t>(idle, 0));
}

void lend_pool(int device, TorchPoolId id, bool lendable) {
    const PoolId number = Pools::get().number_of(device, id);
    if (number != 0) Devices::get().at(device).allocator.set_pool_lendable(number, lendable);
}

std::shared_ptr<const void> moment(int device, TorchPoolId id) {
    const PoolId number = Pools::get().number_of(device, id);
    if (number == 0) throw std::runtime_error("MOVie: there is no such pool, or nothing uses it any more");
    return std::make_shared<const PoolMoment>(Devices::get().at(device).allocator.moment(number));
}

void rewind(int device, const void* to, std::vector<void*>& freed, std::vector<void*>& live) {
    const auto rewound = Devices::get().at(device).allocator.rewind(*static_cast<const PoolMoment*>(to));
    for (const Address address : rewound.freed) freed.push_back(reinterpret_cast<void*>(address));
    for (const Address address : rewound.live) live.push_back(reinterpret_cast<void*>(address));
}

bool lives_exactly(int device, TorchPoolId id, const std::unordered_set<void*>& blocks) {
    std::unordered_set<Address> addresses;
    for (void* const block : blocks) addresses.insert(reinterpret_cast<Address>(block));
    return Devices::get().at(device).allocator.lives_exactly(Pools::get().number_of(device, id), addresses);
}

}  // namespace

const BridgeTable& bridge_table() {
    static const BridgeTable table{
        .allocate = &allocate,
        .release = &release_anywhere,
        .empty_cache = &empty_cache,
        .set_fraction = &set_fraction,
        .fraction = [](int device) { return Devices::get().fraction(device); },
        .base_of = &base_of,
        .device_of = &device_of,
        .record_stream = &record_stream,
        .route = [](int device, TorchPoolId id,
                    StreamFilter filter) { Pools::get().open(device, id, std::move(filter)); },
        .stop_routing = [](int device, TorchPoolId id) { (void)Pools::get().close(device, id); },
        .use_pool = [](int device, TorchPoolId id) { Pools::get().use(device, id); },
        .release_pool = &release_pool,
        .pool_uses = [](int device, TorchPoolId id) { return Pools::get().uses(device, id); },
        .lend_pool = &lend_pool,
        .begin_capture = [] { Devices::get().begin_capture(); },
        .end_capture = [] { Devices::get().end_capture(); },
        .moment = &moment,
        .rewind = &rewind,
        .lives_exactly = &lives_exactly,
        .statistics =
            [](int device) {
                return ask(device, Statistics{}, [](Devices::Entry& entry) { return entry.allocator.statistics(); });
            },
        .reset_peaks =
            [](int device) {
                if (auto* const entry = Devices::get().find(device)) entry->allocator.reset_peak_statistics();
            },
        .reset_accumulated =
            [](int device) {
                if (auto* const entry = Devices::get().find(device)) entry->allocator.reset_accumulated_statistics();
            },
        .most_available = &most_available,
        .layout =
            [](int device) {
                return ask(device, Layout{}, [](Devices::Entry& entry) { return entry.allocator.layout(); });
            },
        .pool_id = [](std::uint64_t number) { return Pools::get().id_of(number); },
        .observe_out_of_memory = &observe_out_of_memory,
    };
    return table;
}

}  // namespace movie::torch_side

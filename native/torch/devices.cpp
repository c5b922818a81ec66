#include "torch/devices.h"

#include <algorithm>
#include <stdexcept>

namespace movie::torch_side {

Devices& Devices::get() {
    static auto* const devices = new Devices();
    return *devices;
}

void Devices::configure(const Settings& settings) {
    const std::lock_guard lock(mutex_);
    config_ = movie_config(settings.policy, settings.options);
    settings_ = settings;
}

Devices::Entry& Devices::at(int ordinal) {
    if (Entry* const entry = find(ordinal)) return *entry;
    return make(ordinal);
}

Devices::Entry& Devices::make(int ordinal) {
    if (ordinal < 0 || ordinal >= kMost) throw std::invalid_argument("there is no device " + std::to_string(ordinal));
    const std::lock_guard lock(mutex_);
    auto& slot = entries_[static_cast<std::size_t>(ordinal)];
    if (Entry* const entry = slot.load(std::memory_order_acquire)) return *entry;
    auto* const entry = new Entry(ordinal, config_);
    for (int i = 0; i < captures_; ++i) entry->allocator.begin_capture();
    if (history_ > 0) entry->allocator.record_history(history_, source_);
    // Torch lets kernels of one device read another's memory wherever the cards can; that takes a permission by range.
    for_each([entry](Entry& other) {
        (void)entry->device.add_peer(other.device);
        (void)other.device.add_peer(entry->device);
    });
    int before = 0;
    for_each([&before](const Entry&) { ++before; });
    only_.store(before == 0 ? entry : nullptr, std::memory_order_release);
    slot.store(entry, std::memory_order_release);
    apply_cap(*entry);
    return *entry;
}

void Devices::begin_capture() {
    const std::lock_guard lock(mutex_);
    ++captures_;
    for_each([](Entry& entry) { entry.allocator.begin_capture(); });
}

void Devices::end_capture() {
    const std::lock_guard lock(mutex_);
    --captures_;
    for_each([](Entry& entry) { entry.allocator.end_capture(); });
}

void Devices::set_fraction(int ordinal, double fraction) {
    const std::lock_guard lock(mutex_);
    fractions_[ordinal] = fraction;
    if (Entry* const entry = find(ordinal)) apply_cap(*entry);
}

void Devices::apply_cap(Entry& entry) {
    Bytes cap = settings_.cap;
    const auto found = fractions_.find(entry.device.ordinal());
    if (found != fractions_.end() && found->second < 1) {
        // At least a byte: no cap at all is something else.
        const auto total = static_cast<double>(entry.device.memory_info().total);
        const auto share = std::max<Bytes>(static_cast<Bytes>(found->second * total), 1);
        cap = cap == 0 ? share : std::min(cap, share);
    }
    entry.allocator.set_memory_cap(cap);
}

double Devices::fraction(int ordinal) const {
    const std::lock_guard lock(mutex_);
    const auto found = fractions_.find(ordinal);
    return found == fractions_.end() ? 1.0 : found->second;
}

void Devices::record_history(std::size_t most, MovieAllocator::ContextSource source, bool keep) {
    const std::lock_guard lock(mutex_);
    history_ = most;
    source_ = source;
    for_each([&](Entry& entry) { entry.allocator.record_history(most, source, keep); });
}

}  // namespace movie::torch_side

#include "torch/pools.h"

#include <algorithm>

namespace movie::torch_side {

Pools& Pools::get() {
    static auto* const pools = new Pools();  // never destroyed, as the devices
    return *pools;
}

Pools::Known& Pools::one_use_more(int device, TorchPoolId id) {
    Known& known = known_[{device, id}];
    if (known.number == 0) {
        known.number = next_++;
        ids_.emplace(known.number, id);
    }
    ++known.uses;
    return known;
}

void Pools::use(int device, TorchPoolId id) {
    const std::lock_guard lock(mutex_);
    one_use_more(device, id);
}

int Pools::uses(int device, TorchPoolId id) const {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find({device, id});
    return found == known_.end() ? 0 : found->second.uses;
}

void Pools::open(int device, TorchPoolId id, StreamFilter filter) {
    const std::lock_guard lock(mutex_);
    const Known& known = one_use_more(device, id);
    routes_.push_front({.device = device, .id = id, .pool = known.number, .filter = std::move(filter)});
    ++open_;
}

bool Pools::close(int device, TorchPoolId id) {
    const std::lock_guard lock(mutex_);
    const auto route = std::find_if(routes_.begin(), routes_.end(),
                                    [&](const Route& each) { return each.device == device && each.id == id; });
    if (route == routes_.end()) return false;
    routes_.erase(route);
    --open_;
    return true;
}

bool Pools::release(int device, TorchPoolId id) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find({device, id});
    if (found == known_.end() || --found->second.uses > 0) return false;
    ids_.erase(found->second.number);
    known_.erase(found);
    return true;
}

PoolId Pools::routed(int device, Stream stream) const {
    const std::lock_guard lock(mutex_);
    for (const Route& route : routes_)
        if (route.device == device && route.filter(reinterpret_cast<void*>(stream))) return route.pool;
    return 0;
}

PoolId Pools::number_of(int device, TorchPoolId id) const {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find({device, id});
    return found == known_.end() ? 0 : found->second.number;
}

TorchPoolId Pools::id_of(PoolId number) const {
    const std::lock_guard lock(mutex_);
    const auto found = ids_.find(number);
    return found == ids_.end() ? TorchPoolId{0, 0} : found->second;
}

}  // namespace movie::torch_side

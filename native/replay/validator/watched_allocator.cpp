#include "replay/validator/watched_allocator.h"

namespace movie {

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace

void WatchedAllocator::end_call(const char* call) {
    if (validator_.fault()) throw ValidationError(*validator_.fault());
    if (validator_.watching()) validator_.end_call(call, *allocator_);
}

Address WatchedAllocator::malloc(const Request& request) {
    const Lock lock(validator_.mutex());
    const Bytes held = validator_.held();
    Address address = 0;
    try {
        address = allocator_->malloc(request);
    } catch (const RuleViolation&) {
        throw;  // a bug that has a name already
    } catch (...) {
        if (validator_.watching()) validator_.allocation_failed(held, *allocator_);
        end_call("malloc");
        throw;
    }
    if (validator_.watching()) validator_.allocated(address, request);
    end_call("malloc");
    return address;
}

void WatchedAllocator::free(Address address) {
    const Lock lock(validator_.mutex());
    const bool watching = validator_.watching();
    const bool known = watching && validator_.before_free(address);
    try {
        allocator_->free(address);
    } catch (const RuleViolation&) {
        throw;
    } catch (...) {
        if (known && validator_.watching()) validator_.free_failed(address);
        end_call("free");
        throw;
    }
    if (watching && !known && validator_.watching()) validator_.unknown_freed(address);
    end_call("free");
}

void WatchedAllocator::record_stream(Address address, Stream stream) {
    const Lock lock(validator_.mutex());
    if (validator_.watching()) validator_.recorded(address, stream);
    allocator_->record_stream(address, stream);
    end_call("record_stream");
}

void WatchedAllocator::empty_cache() {
    const Lock lock(validator_.mutex());
    allocator_->empty_cache();
    end_call("empty_cache");
}

Bytes WatchedAllocator::reclaim(Bytes bytes) {
    const Lock lock(validator_.mutex());
    const Bytes held = validator_.held();
    const Bytes given = allocator_->reclaim(bytes);
    if (validator_.watching()) validator_.reclaimed(held, given);
    end_call("reclaim");
    return given;
}

void WatchedAllocator::release_pool(PoolId pool) {
    const Lock lock(validator_.mutex());
    if (validator_.watching()) validator_.released_pool(pool);
    allocator_->release_pool(pool);
    end_call("release_pool");
}

void WatchedAllocator::set_pool_lendable(PoolId pool, bool lendable) {
    const Lock lock(validator_.mutex());
    if (validator_.watching()) validator_.set_lendable(pool, lendable);
    allocator_->set_pool_lendable(pool, lendable);
    end_call("set_pool_lendable");
}

void WatchedAllocator::set_memory_cap(Bytes bytes) {
    const Lock lock(validator_.mutex());
    allocator_->set_memory_cap(bytes);
    end_call("set_memory_cap");
}

}  // namespace movie

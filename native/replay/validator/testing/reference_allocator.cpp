#include "replay/validator/testing/reference_allocator.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

namespace movie::testing {

namespace {

PoolKind kind_of(Bytes requested) { return requested <= kMiB ? PoolKind::small : PoolKind::large; }

// Undoing must succeed: an injected fault passes, and a driver that shuts down wants nothing any more.
template <class Call>
void insist(Call&& call) {
    for (Status status = call(); status != Status::ok && status != Status::shutting_down;) status = call();
}

}  // namespace

bool ReferenceAllocator::may_serve(const Span& span, const Request& request) const {
    if (size_of(span) != mapped_size(request.bytes) || span.pinned) return false;
    if (span.pool == request.pool) return true;
    return shares(span.pool, request.pool);
}

bool ReferenceAllocator::order_behind(const Span& span, Stream stream) {
    return std::all_of(span.fence.begin(), span.fence.end(), [&](const auto& entry) {
        return entry.first == stream || driver_.stream_wait(stream, entry.second) == Status::ok;
    });
}

bool ReferenceAllocator::record_fence(Span& span) {
    std::set<Stream> streams = span.others;
    streams.insert(span.stream);
    for (const Stream stream : streams) {
        const auto event = driver_.event_record(stream);
        if (event.status == Status::shutting_down) return true;
        if (!event.ok()) {
            for (const auto& entry : span.fence) driver_.event_destroy(entry.second);
            span.fence.clear();
            return false;
        }
        span.fence.emplace_back(stream, event.value);
    }
    return true;
}

bool ReferenceAllocator::drain(Span& span) {
    while (!span.fence.empty()) {
        const Event event = span.fence.back().second;
        if (driver_.event_synchronize(event) != Status::ok) return false;
        driver_.event_destroy(event);
        span.fence.pop_back();
    }
    return true;
}

// Pre: the host saw all uses complete. Post: the bytes that went back, and no pages left; or 0, and all as before.
Bytes ReferenceAllocator::give_back(Span& span) {
    if (!span.pages.empty() && driver_.unmap(span.address, size_of(span)) != Status::ok) return 0;
    const Bytes size = size_of(span);
    for (const Handle page : span.pages) insist([&] { return driver_.release(page); });
    insist([&] { return driver_.free_address(span.address, size); });
    span.pages.clear();
    count_reserved(-static_cast<std::int64_t>(size));
    return size;
}

void ReferenceAllocator::abandon(Span& span) {
    for (const Handle page : span.pages) insist([&] { return driver_.release(page); });
    span.pages.clear();
}

bool ReferenceAllocator::map_pages(Span& span) {
    const Bytes page = driver_.granularity();
    for (std::size_t i = 0; i < span.pages.size(); ++i) {
        if (driver_.map(span.address + i * page, page, span.pages[i]) == Status::ok) continue;
        if (i > 0) insist([&] { return driver_.unmap(span.address, i * page); });
        return false;
    }
    if (driver_.set_access(span.address, size_of(span)) == Status::ok) return true;
    insist([&] { return driver_.unmap(span.address, size_of(span)); });
    return false;
}

void ReferenceAllocator::count_reserved(std::int64_t bytes) {
    reserved_ += static_cast<Bytes>(bytes);
    if (bytes > 0)
        statistics_.reserved_bytes.increase(PoolKind::large, bytes);
    else
        statistics_.reserved_bytes.decrease(PoolKind::large, -bytes);
}

// A new range with new pages for `requested` bytes. False: some driver call failed, and nothing is left of it.
bool ReferenceAllocator::build(Span& span) {
    const Bytes size = mapped_size(span.requested);
    if (cap_ != 0 && reserved_ + size > cap_) return false;
    const auto range = driver_.reserve(size);
    if (!range.ok()) return false;
    span.address = range.value;
    while (size_of(span) < size) {
        const auto page = driver_.create(driver_.granularity());
        if (!page.ok()) break;
        span.pages.push_back(page.value);
    }
    if (size_of(span) < size || !map_pages(span)) {
        abandon(span);
        insist([&] { return driver_.free_address(span.address, size); });
        return false;
    }
    count_reserved(static_cast<std::int64_t>(size));
    return true;
}

Bytes ReferenceAllocator::release_idle(Bytes wanted) {
    Bytes given = 0;
    for (auto span = idle_.begin(); span != idle_.end() && given < wanted;) {
        if (keeps_idle(*span) || !drain(*span)) {
            ++span;
            continue;
        }
        given += give_back(*span);
        span = span->pages.empty() ? idle_.erase(span) : std::next(span);
    }
    return given;
}

void ReferenceAllocator::count_block(const Span& span, int sign) {
    const PoolKind kind = kind_of(span.requested);
    const auto count = [&](StatByKind& stat, Bytes amount) {
        if (sign > 0)
            stat.increase(kind, static_cast<std::int64_t>(amount));
        else
            stat.decrease(kind, static_cast<std::int64_t>(amount));
    };
    count(statistics_.allocation, 1);
    count(statistics_.active, 1);
    count(statistics_.allocated_bytes, round_up(span.requested, 512));
    count(statistics_.active_bytes, round_up(span.requested, 512));
    count(statistics_.requested_bytes, span.requested);
}

Address ReferenceAllocator::serve(Span&& span, const Request& request) {
    for (const auto& entry : span.fence) driver_.event_destroy(entry.second);
    span.fence.clear();
    span.others.clear();
    span.stream = request.stream;
    span.pool = request.pool;
    span.requested = request.bytes;
    count_block(span, +1);
    const Address address = span.address;
    live_[address] = std::move(span);
    return address;
}

Address ReferenceAllocator::malloc(const Request& request) {
    for (auto span = idle_.begin(); span != idle_.end(); ++span) {
        if (!may_serve(*span, request) || !order_behind(*span, request.stream)) continue;
        Span taken = std::move(*span);
        idle_.erase(span);
        return serve(std::move(taken), request);
    }
    Span span{.requested = request.bytes};
    if (!build(span)) {
        ++statistics_.num_alloc_retries;
        (void)release_idle(~Bytes{0});
        if (!build(span)) {
            ++statistics_.num_ooms;
            throw OutOfMemory(request, "out of memory: " + std::to_string(request.bytes) + " bytes do not fit");
        }
    }
    return serve(std::move(span), request);
}

void ReferenceAllocator::free(Address address) {
    const auto found = live_.find(address);
    if (found == live_.end()) throw std::invalid_argument("free: not a live block");
    Span& span = found->second;
    if (!capturing_ && !record_fence(span)) throw std::runtime_error("free: the driver records no event");
    count_block(span, -1);
    (capturing_ ? deferred_ : idle_).push_back(std::move(span));
    live_.erase(found);
}

void ReferenceAllocator::record_stream(Address address, Stream stream) {
    if (const auto found = live_.find(address); found != live_.end()) found->second.others.insert(stream);
}

void ReferenceAllocator::set_capturing(bool capturing) {
    capturing_ = capturing;
    if (capturing) return;
    for (Span& span : deferred_)
        if (!record_fence(span)) throw std::runtime_error("end of capture: the driver records no event");
    idle_.splice(idle_.end(), deferred_);
}

void ReferenceAllocator::set_pool_lendable(PoolId pool, bool lendable) {
    if (lendable)
        lendable_.insert(pool);
    else
        lendable_.erase(pool);
}

Unusable ReferenceAllocator::unusable(Stream stream, PoolId pool) const {
    Unusable result;
    for (const auto& [address, span] : live_) result.rounding += size_of(span) - span.requested;
    for (const Span& span : deferred_) result.stream += size_of(span);
    for (const Span& span : idle_) {
        const bool fenced =
            std::any_of(span.fence.begin(), span.fence.end(), [&](const auto& entry) { return entry.first != stream; });
        (!shares(span.pool, pool) ? result.pool : fenced ? result.stream : result.soft) += size_of(span);
    }
    return result;
}

}  // namespace movie::testing

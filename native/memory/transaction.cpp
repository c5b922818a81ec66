#include "memory/transaction.h"

#include <algorithm>

namespace movie {

Status take(Driver& driver, const UndoStep& step) {
    switch (step.kind) {
        case UndoStep::Kind::free_address:
            return driver.free_address(step.address, step.size);
        case UndoStep::Kind::release:
            return driver.release(step.handle);
        case UndoStep::Kind::unmap:
            return driver.unmap(step.address, step.size);
        case UndoStep::Kind::map:
            return driver.map(step.address, step.size, step.handle);
        case UndoStep::Kind::set_access:
            return driver.set_access(step.address, step.size);
    }
    return Status::failed;
}

bool Retreat::operator()(const UndoStep& step) {
    switch (step.kind) {
        case UndoStep::Kind::map:
            whole_ = whole_ && still_mapped_.empty();
            [[fallthrough]];
        case UndoStep::Kind::free_address:
            if (!still_mapped_.empty()) return false;
            break;
        case UndoStep::Kind::release:
            if (std::find(still_mapped_.begin(), still_mapped_.end(), step.handle) != still_mapped_.end()) return false;
            break;
        case UndoStep::Kind::set_access:
            if (!whole_) return false;
            break;
        case UndoStep::Kind::unmap:
            break;
    }
    if (take(driver_, step) == Status::ok) return true;
    if (step.kind == UndoStep::Kind::unmap) skip(step);
    if (step.kind == UndoStep::Kind::map) whole_ = false;
    return false;
}

void Debris::clear(Driver& driver) {
    Retreat retreat(driver);
    std::erase_if(steps_, [&](const UndoStep& step) { return retreat(step); });
}

bool Debris::blocks_addresses() const {
    return std::any_of(steps_.begin(), steps_.end(),
                       [](const UndoStep& step) { return step.kind != UndoStep::Kind::release; });
}

Debris::Held Debris::held() const {
    Held held;
    for (const UndoStep& step : steps_) {
        if (step.kind != UndoStep::Kind::release) continue;
        held.bytes += step.size;
        ++held.pages;
    }
    return held;
}

Outcome<Address> Transaction::reserve(Bytes size) {
    const auto range = driver_.reserve(size);
    if (range.ok()) undo_.push_back({.kind = UndoStep::Kind::free_address, .address = range.value, .size = size});
    return range;
}

Outcome<Handle> Transaction::create(Bytes size) {
    const auto handle = driver_.create(size);
    if (handle.ok()) undo_.push_back({.kind = UndoStep::Kind::release, .size = size, .handle = handle.value});
    return handle;
}

Status Transaction::map(Address address, Bytes size, Handle handle) {
    const Status status = driver_.map(address, size, handle);
    if (status == Status::ok)
        undo_.push_back({.kind = UndoStep::Kind::unmap, .address = address, .size = size, .handle = handle});
    return status;
}

Status Transaction::unmap(Address address, const std::vector<Mapped>& mapped) {
    Bytes size = 0;
    for (const Mapped& each : mapped) size += each.size;
    const Status status = driver_.unmap(address, size);
    if (status != Status::ok) return status;
    // The way back is from the last step to the first: every page is mapped, then all get access.
    undo_.push_back({.kind = UndoStep::Kind::set_access, .address = address, .size = size});
    for (const Mapped& each : mapped) {
        undo_.push_back({.kind = UndoStep::Kind::map, .address = address, .size = each.size, .handle = each.handle});
        address += each.size;
    }
    return status;
}

Transaction::~Transaction() {
    Retreat retreat(driver_);
    for (auto step = undo_.rbegin(); step != undo_.rend(); ++step) {
        const bool postpone = step->kind == UndoStep::Kind::unmap && !may_unmap_;
        if (postpone) retreat.skip(*step);
        if (postpone || !retreat(*step)) debris_.add(*step);
    }
}

}  // namespace movie

#include "replay/validator/watched_driver.h"

namespace movie {

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace

bool WatchedDriver::succeeded(Status status) {
    if (status == Status::shutting_down) validator_.shutting_down();
    return status == Status::ok && validator_.watching();
}

Outcome<Address> WatchedDriver::reserve(Bytes size) {
    const Lock lock(validator_.mutex());
    const auto result = device_.reserve(size);
    if (succeeded(result.status)) validator_.reserved(result.value, size);
    return result;
}

Status WatchedDriver::free_address(Address address, Bytes size) {
    const Lock lock(validator_.mutex());
    const Status status = device_.free_address(address, size);
    if (succeeded(status)) validator_.freed_address(address);
    return status;
}

Outcome<Handle> WatchedDriver::create(Bytes size) {
    const Lock lock(validator_.mutex());
    const auto result = device_.create(size);
    if (succeeded(result.status)) validator_.created(result.value, size);
    return result;
}

Status WatchedDriver::release(Handle handle) {
    const Lock lock(validator_.mutex());
    if (validator_.watching()) validator_.before_release(handle);
    const Status status = device_.release(handle);
    if (succeeded(status))
        validator_.released(handle);
    else if (validator_.watching())
        validator_.refused();
    return status;
}

Status WatchedDriver::map(Address address, Bytes size, Handle handle) {
    const Lock lock(validator_.mutex());
    if (validator_.watching()) validator_.before_map(address, size, handle);
    const Status status = device_.map(address, size, handle);
    if (succeeded(status)) validator_.mapped(address, size, handle);
    return status;
}

Status WatchedDriver::unmap(Address address, Bytes size) {
    const Lock lock(validator_.mutex());
    if (validator_.watching()) validator_.before_unmap(address, size);
    const Status status = device_.unmap(address, size);
    if (succeeded(status))
        validator_.unmapped(address, size);
    else if (validator_.watching())
        validator_.refused();
    return status;
}

Status WatchedDriver::set_access(Address address, Bytes size) {
    const Lock lock(validator_.mutex());
    const Status status = device_.set_access(address, size);
    if (succeeded(status)) validator_.accessible(address, size);
    return status;
}

Outcome<Address> WatchedDriver::malloc(Bytes size) {
    const Lock lock(validator_.mutex());
    const auto result = device_.malloc(size);
    if (succeeded(result.status)) validator_.allocated_plain(result.value, size);
    return result;
}

Status WatchedDriver::mfree(Address address) {
    const Lock lock(validator_.mutex());
    if (validator_.watching()) validator_.before_mfree(address);
    const Status status = device_.mfree(address);
    if (succeeded(status)) validator_.freed_plain(address);
    return status;
}

Outcome<Event> WatchedDriver::event_record(Stream stream) {
    const Lock lock(validator_.mutex());
    if (validator_.watching()) validator_.before_record(stream);
    const auto result = device_.event_record(stream);
    if (succeeded(result.status)) validator_.order().record(result.value, stream);
    return result;
}

Status WatchedDriver::event_query(Event event) {
    const Lock lock(validator_.mutex());
    if (validator_.watching()) validator_.before_waiting("event_query");
    const Status status = device_.event_query(event);
    if (succeeded(status)) validator_.order().seen_by_host(event);
    return status;
}

Status WatchedDriver::event_synchronize(Event event) {
    const Lock lock(validator_.mutex());
    if (validator_.watching()) validator_.before_waiting("event_synchronize");
    const Status status = device_.event_synchronize(event);
    if (succeeded(status)) validator_.order().seen_by_host(event);
    return status;
}

void WatchedDriver::event_destroy(Event event) {
    const Lock lock(validator_.mutex());
    device_.event_destroy(event);
    validator_.order().forget(event);
}

Status WatchedDriver::stream_wait(Stream stream, Event event) {
    const Lock lock(validator_.mutex());
    const Status status = device_.stream_wait(stream, event);
    if (succeeded(status)) validator_.order().wait(stream, event);
    return status;
}

Status WatchedDriver::synchronize() {
    const Lock lock(validator_.mutex());
    if (validator_.watching()) validator_.before_waiting("synchronize");
    const Status status = device_.synchronize();
    if (succeeded(status)) validator_.order().all_seen_by_host();
    return status;
}

}  // namespace movie

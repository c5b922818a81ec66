// Streams of the machine: the order of their work, and when it is done.
#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include "phantom/device/codes.h"
#include "phantom/device/machine.h"

namespace movie::phantom {

namespace {

std::string hex(Address address) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    return text;
}

}  // namespace

Stream* Machine::stream(void* handle) {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    if (number <= 1) return device(current()).legacy.get();
    if (number == 2) {
        thread_local std::unordered_map<int, Stream*> own;
        Stream*& mine = own[current()];
        if (mine == nullptr) mine = create_stream(0, 0);
        return mine;
    }
    auto* stream = static_cast<Stream*>(handle);
    return streams_.contains(stream) ? stream : nullptr;
}

Stream* Machine::create_stream(unsigned flags, int priority) {
    auto* stream = new Stream;
    stream->device = current();
    stream->id = next_stream_++;
    stream->flags = flags;
    stream->priority = priority;
    streams_.insert(stream);
    return stream;
}

void Machine::destroy_stream(Stream* stream) {
    if (stream->capture) {
        stream->capture->invalid = true;
        stream->capture->streams.erase(stream);
    }
    streams_.erase(stream);
    delete stream;
}

std::uint64_t Machine::not_before(const Stream& stream) const {
    const Device& one = devices[static_cast<std::size_t>(stream.device)];
    if (stream.legacy) return one.blocking_due;
    return stream.blocking() ? one.legacy->line.last_due : 0;
}

Place Machine::enqueue(Stream& stream) {
    const Place place = late.clock.work(stream.line, not_before(stream));
    Device& one = device(stream.device);
    one.latest_due = std::max(one.latest_due, place.due);
    if (stream.blocking()) one.blocking_due = std::max(one.blocking_due, place.due);
    return place;
}

Place Machine::tail(Stream& stream) { return late.clock.behind(std::max(stream.line.last_due, not_before(stream))); }

void Machine::order_behind(Stream& stream, Place place) {
    stream.line.last_due = std::max(stream.line.last_due, place.due);
    Device& one = device(stream.device);
    one.latest_due = std::max(one.latest_due, place.due);
    if (stream.blocking()) one.blocking_due = std::max(one.blocking_due, place.due);
}

int Machine::launch(Stream& stream, std::uint64_t pieces) {
    if (stream.device != current()) return kInvalidHandle;
    if (const int code = check_enqueue(stream); code != kSuccess) return code;
    for (std::uint64_t piece = 0; piece < pieces; ++piece) {
        if (stream.capture) {
            add_node(stream, NodeKind::kernel);
        } else {
            (void)enqueue(stream);
            ++launches;
        }
    }
    return kSuccess;
}

void Machine::submit(Stream& stream, Task task) {
    task.device = stream.device;
    late.add(enqueue(stream), std::move(task));
}

int Machine::work(Stream& stream, const char* what, std::vector<Touch> touches, std::function<void()> effect) {
    if (const int code = check_enqueue(stream); code != kSuccess) return code;
    Task task{.what = what, .device = 0, .touches = std::move(touches), .effect = std::move(effect)};
    if (stream.capture)
        add_node(stream, NodeKind::memory)->run = [this, task](Stream& later) { submit(later, task); };
    else
        submit(stream, std::move(task));
    return kSuccess;
}

int Machine::host_function(Stream& stream, std::function<void()> function) {
    if (const int code = check_enqueue(stream); code != kSuccess) return code;
    Task task{
        .what = "host function", .device = 0, .touches = {}, .effect = std::move(function), .host_function = true};
    if (stream.capture)
        add_node(stream, NodeKind::host)->run = [this, task](Stream& later) { submit(later, task); };
    else
        submit(stream, std::move(task));
    return kSuccess;
}

void Machine::perform(const Task& task) {
    for (const Touch& touch : task.touches) {
        if (touch.host) {
            if (pinned.holds(reinterpret_cast<const void*>(touch.begin), touch.size)) continue;
            violation(std::string(task.what) + ": host memory at " + hex(touch.begin) + ", " +
                      std::to_string(touch.size) + " bytes, was given back before the card got to the work on it");
            return;
        }
        const int by = touch.device >= 0 ? touch.device : task.device;
        if (memory.accessible(touch.begin, touch.size, by)) continue;
        violation(std::string(task.what) + ": memory at " + hex(touch.begin) + ", " + std::to_string(touch.size) +
                  " bytes, is not accessible to device " + std::to_string(by) +
                  " any more when the card gets to the work on it");
        broken = kIllegalAddress;
        return;
    }
    task.effect();
}

void Machine::wait_until(Place place, std::unique_lock<std::mutex>& lock) {
    late.wait_until(place, lock);
    for (const auto& pool : pools)
        if (pool->reserved.now > pool->release_threshold)
            pool->trim(pool->release_threshold, [this](Place one) { return late.reached(one); });
}

void Machine::wait_for_all(int index, std::unique_lock<std::mutex>& lock) {
    wait_until(late.clock.behind(device(index).latest_due), lock);
}

// --- events ----------------------------------------------------------------------------------------------------------

Event* Machine::create_event(unsigned flags) {
    auto* event = new Event;
    event->device = current();
    event->flags = flags;
    events_.insert(event);
    return event;
}

void Machine::destroy_event(Event* event) {
    events_.erase(event);
    delete event;
}

Event* Machine::event(void* handle) const {
    auto* event = static_cast<Event*>(handle);
    return events_.contains(event) ? event : nullptr;
}

}  // namespace movie::phantom

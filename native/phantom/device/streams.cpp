// Streams of the machine: the order of their work, and when it is done.
#include <algorithm>
#include <thread>

#include "phantom/device/codes.h"
#include "phantom/device/machine.h"

namespace movie::phantom {

namespace {

// A program that asks this often whether something is done, and hands over no work meanwhile, is waiting for it.
constexpr std::uint64_t kPollsThatWait = 200;

std::string hex(Address address) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    return text;
}

bool overlap(const Touch& touch, Address begin, Bytes size, bool host) {
    return touch.host == host && touch.begin < begin + size && begin < touch.begin + touch.size;
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
    const Place place = clock.work(stream.line, not_before(stream));
    Device& one = device(stream.device);
    one.latest_due = std::max(one.latest_due, place.due);
    if (stream.blocking()) one.blocking_due = std::max(one.blocking_due, place.due);
    return place;
}

Place Machine::tail(Stream& stream) { return clock.behind(std::max(stream.line.last_due, not_before(stream))); }

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

void Machine::submit(Stream& stream, Late late) {
    late.device = stream.device;
    late_.emplace(enqueue(stream), std::move(late));
    settle();
}

int Machine::work(Stream& stream, const char* what, std::vector<Touch> touches, std::function<void()> effect) {
    if (const int code = check_enqueue(stream); code != kSuccess) return code;
    Late late{.what = what, .device = 0, .touches = std::move(touches), .effect = std::move(effect)};
    if (stream.capture)
        add_node(stream, NodeKind::memory)->run = [this, late](Stream& later) { submit(later, late); };
    else
        submit(stream, std::move(late));
    return kSuccess;
}

int Machine::host_function(Stream& stream, std::function<void()> function) {
    if (const int code = check_enqueue(stream); code != kSuccess) return code;
    Late late{
        .what = "host function", .device = 0, .touches = {}, .effect = std::move(function), .host_function = true};
    if (stream.capture)
        add_node(stream, NodeKind::host)->run = [this, late](Stream& later) { submit(later, late); };
    else
        submit(stream, std::move(late));
    return kSuccess;
}

// --- time ------------------------------------------------------------------------------------------------------------

void Machine::settle() {
    while (!host_busy_ && !late_.empty() && late_.begin()->first.due <= clock.now()) {
        const auto first = late_.begin();
        if (first->second.host_function) {
            // It stays at the head of the order until it has returned, so that nothing behind it counts as done.
            host_busy_ = true;
            host_running_ = std::move(first->second.effect);
            need_host_thread();
            return;
        }
        const Late late = std::move(first->second);
        late_.erase(first);
        run(late);
    }
}

void Machine::host_only(std::function<void()> function) {
    host_loose_.push_back(std::move(function));
    need_host_thread();
}

void Machine::need_host_thread() {
    if (!has_host_thread_) std::thread([this] { serve_host_functions(); }).detach();
    has_host_thread_ = true;
    host_work_.notify_one();
}

void Machine::serve_host_functions() {
    std::unique_lock lock(mutex);
    for (;;) {
        host_work_.wait(lock, [this] { return host_busy_ || !host_loose_.empty(); });
        const bool in_order = host_busy_;
        std::function<void()> function;
        if (in_order) {
            function = std::move(host_running_);
        } else {
            function = std::move(host_loose_.front());
            host_loose_.pop_front();
        }
        lock.unlock();
        function();
        lock.lock();
        if (!in_order) continue;
        late_.erase(late_.begin());
        host_busy_ = false;
        settle();
        host_done_.notify_all();
    }
}

void Machine::run(const Late& late) {
    for (const Touch& touch : late.touches) {
        if (touch.host) {
            if (pinned.holds(reinterpret_cast<const void*>(touch.begin), touch.size)) continue;
            violation(std::string(late.what) + ": host memory at " + hex(touch.begin) + ", " +
                      std::to_string(touch.size) + " bytes, was given back before the card got to the work on it");
            return;
        }
        const int by = touch.device >= 0 ? touch.device : late.device;
        if (memory.accessible(touch.begin, touch.size, by)) continue;
        violation(std::string(late.what) + ": memory at " + hex(touch.begin) + ", " + std::to_string(touch.size) +
                  " bytes, is not accessible to device " + std::to_string(by) +
                  " any more when the card gets to the work on it");
        broken = kIllegalAddress;
        return;
    }
    late.effect();
}

bool Machine::reached(Place place) const {
    return place.due <= clock.now() && (late_.empty() || place < late_.begin()->first);
}

void Machine::wait_until(Place place, std::unique_lock<std::mutex>& lock) {
    clock.pass_until(place.due);
    settle();
    host_done_.wait(lock, [&] { return reached(place); });
    for (const auto& pool : pools)
        if (pool->reserved.now > pool->release_threshold)
            pool->trim(pool->release_threshold, [this](Place one) { return reached(one); });
}

void Machine::wait_for_all(int index, std::unique_lock<std::mutex>& lock) {
    wait_until(clock.behind(device(index).latest_due), lock);
}

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

const char* Machine::pending_touch(Address begin, Bytes size, bool host) const {
    for (const auto& [place, late] : late_)
        for (const Touch& touch : late.touches)
            if (overlap(touch, begin, size, host)) return late.what;
    return nullptr;
}

bool Machine::poll(Place place, std::uint64_t& polls, std::uint64_t& polled_at) {
    if (reached(place)) return true;
    if (polled_at != clock.now()) {
        polled_at = clock.now();
        polls = 0;
    }
    if (++polls < kPollsThatWait) return false;
    clock.pass_until(place.due);
    settle();
    return reached(place);
}

}  // namespace movie::phantom

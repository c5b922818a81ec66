#include "phantom/device/late_work.h"

#include <thread>
#include <utility>

namespace movie::phantom {

namespace {

// A program that asks this often whether something is done, and hands over no work meanwhile, is waiting for it.
constexpr std::uint64_t kPollsThatWait = 200;

bool overlap(const Touch& touch, Address begin, Bytes size, bool host) {
    return touch.host == host && touch.begin < begin + size && begin < touch.begin + touch.size;
}

}  // namespace

void LateWork::add(Place place, Task task) {
    tasks_.emplace(place, std::move(task));
    settle();
}

void LateWork::settle() {
    while (!host_busy_ && !tasks_.empty() && tasks_.begin()->first.due <= clock.now()) {
        const auto first = tasks_.begin();
        if (first->second.host_function) {
            // It stays at the head of the order until it has returned, so that nothing behind it counts as done.
            host_busy_ = true;
            host_running_ = std::move(first->second.effect);
            need_host_thread();
            return;
        }
        const Task task = std::move(first->second);
        tasks_.erase(first);
        perform_(task);
    }
}

bool LateWork::reached(Place place) const {
    return place.due <= clock.now() && (tasks_.empty() || place < tasks_.begin()->first);
}

void LateWork::wait_until(Place place, std::unique_lock<std::mutex>& lock) {
    clock.pass_until(place.due);
    settle();
    host_done_.wait(lock, [&] { return reached(place); });
}

bool LateWork::poll(Place place, std::uint64_t& polls, std::uint64_t& polled_at) {
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

const char* LateWork::touching(Address begin, Bytes size, bool host) const {
    for (const auto& [place, task] : tasks_)
        for (const Touch& touch : task.touches)
            if (overlap(touch, begin, size, host)) return task.what;
    return nullptr;
}

void LateWork::call_soon(std::function<void()> function) {
    host_loose_.push_back(std::move(function));
    need_host_thread();
}

void LateWork::need_host_thread() {
    if (!has_host_thread_) std::thread([this] { serve_host_functions(); }).detach();
    has_host_thread_ = true;
    host_work_.notify_one();
}

void LateWork::serve_host_functions() {
    std::unique_lock lock(mutex_);
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
        tasks_.erase(tasks_.begin());
        host_busy_ = false;
        settle();
        host_done_.notify_all();
    }
}

}  // namespace movie::phantom

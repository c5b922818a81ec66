// Work that was handed over and is not done yet, in the order in which the card will do it.
//
// All of it is guarded by the machine's lock. Functions of the program run without, in a thread of the phantom's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "driver/types.h"
#include "phantom/device/clock.h"

namespace movie::phantom {

// A stretch of memory that a piece of work touches.
struct Touch {
    Address begin = 0;
    Bytes size = 0;
    bool host = false;
    int device = -1;  // the device that must be able to; -1: the stream's
};

struct Task {
    const char* what = "";
    int device = 0;
    std::vector<Touch> touches;
    std::function<void()> effect;
    bool host_function = false;  // the effect is a function of the program
};

class LateWork {
  public:
    // `perform` does a task that is no host function, when the card gets there.
    LateWork(std::mutex& mutex, Clock its_clock, std::function<void(const Task&)> perform)
        : clock(std::move(its_clock)), mutex_(mutex), perform_(std::move(perform)) {}

    void add(Place place, Task task);
    // Everything that is due is done. Behind a host function that has not returned nothing is.
    void settle();
    [[nodiscard]] bool reached(Place place) const;
    // The program waits. `lock` is let go of while host functions run.
    void wait_until(Place place, std::unique_lock<std::mutex>& lock);
    // Whether the place has been reached, for a program that asks: one that keeps asking sees time pass. `polls` and
    // `polled_at` are its earlier questions about the same.
    bool poll(Place place, std::uint64_t& polls, std::uint64_t& polled_at);
    // The name of a task that touches the range, null if none does.
    [[nodiscard]] const char* touching(Address begin, Bytes size, bool host) const;
    // Calls a function of the program soon, in no order with work.
    void call_soon(std::function<void()> function);

    Clock clock;

  private:
    void need_host_thread();
    void serve_host_functions();

    std::mutex& mutex_;
    std::function<void(const Task&)> perform_;
    std::map<Place, Task> tasks_;
    // The host function at the head of the tasks is running, or about to.
    bool host_busy_ = false;
    std::function<void()> host_running_;
    std::deque<std::function<void()>> host_loose_;
    std::condition_variable host_work_, host_done_;
    bool has_host_thread_ = false;
};

}  // namespace movie::phantom

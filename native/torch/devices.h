// The devices of this process that PyTorch allocates from: each with its allocator, made when it is first asked for, so
// that a process may still fork before it uses a card. Lives until the process ends and is never destroyed: torch frees
// blocks while the interpreter and the driver shut down.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "allocator/configured.h"
#include "allocator/movie_allocator.h"
#include "driver/cuda/cuda_device.h"

namespace movie::torch_side {

struct Settings {
    Policy policy = Policy::automatic;
    std::map<std::string, std::string> options;  // of movie_config()
    Bytes cap = 0;                               // bytes that each device may reserve; 0: no cap
};

class Devices {
  public:
    static constexpr int kMost = 64;  // ordinals are below it, as torch's are

    struct Entry {
        CudaDevice device;
        MovieAllocator allocator;
        Entry(int ordinal, const MovieConfig& config) : device(ordinal), allocator(device, config) {}
    };

    static Devices& get();

    // Before the first device is made. Throws std::invalid_argument for values that cannot be.
    void configure(const Settings& settings);
    // Makes the device if it is the first time. Throws cuda::Unavailable.
    Entry& at(int ordinal);
    // The device if it was made, else null.
    [[nodiscard]] Entry* find(int ordinal) const {
        if (ordinal < 0 || ordinal >= kMost) return nullptr;
        return entries_[static_cast<std::size_t>(ordinal)].load(std::memory_order_acquire);
    }
    // The device, if there is just one so far.
    [[nodiscard]] Entry* only() const { return only_.load(std::memory_order_acquire); }
    template <class Visit>
    void for_each(Visit visit) const {
        for (const auto& slot : entries_)
            if (Entry* const entry = slot.load(std::memory_order_acquire)) visit(*entry);
    }

    // A capture concerns all devices of a process, those made while it goes on too.
    void begin_capture();
    void end_capture();
    // A share of the card's memory that the device may reserve; 1 and more: all of it.
    void set_fraction(int ordinal, double fraction);
    // As last set; 1 where it was not.
    [[nodiscard]] double fraction(int ordinal) const;
    // For devices made already and later ones.
    void record_history(std::size_t most, MovieAllocator::ContextSource source, bool keep);

  private:
    Devices() = default;
    Entry& make(int ordinal);
    void apply_cap(Entry& entry);

    mutable std::mutex mutex_;  // guards everything below; entries are only added
    Settings settings_;
    MovieConfig config_;
    std::array<std::atomic<Entry*>, kMost> entries_{};
    std::atomic<Entry*> only_{nullptr};
    std::map<int, double> fractions_;
    int captures_ = 0;
    std::size_t history_ = 0;
    MovieAllocator::ContextSource source_ = nullptr;
};

}  // namespace movie::torch_side

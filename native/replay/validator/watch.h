// A validator and its two faces, put together: build an allocator on driver(), hand it over, and call it through this.
#pragma once

#include <memory>

#include "replay/validator/validator.h"
#include "replay/validator/watched_allocator.h"
#include "replay/validator/watched_driver.h"

namespace movie {

class Watch {
  public:
    explicit Watch(Driver& device, std::uint64_t every = 64) : validator_(device, every), driver_(device, validator_) {}

    Driver& driver() { return driver_; }
    // Takes an allocator that was built on driver() and has done nothing yet. One allocator a watch.
    Allocator& watch(std::unique_ptr<Allocator> allocator) {
        watched_ = std::make_unique<WatchedAllocator>(std::move(allocator), validator_);
        return *watched_;
    }
    // Pre: watch() was called.
    Allocator& allocator() { return *watched_; }
    // Compares all sums; call it at the end of a run.
    void check_all() { validator_.check_all(*watched_); }
    Validator& validator() { return validator_; }

  private:
    Validator validator_;
    WatchedDriver driver_;
    std::unique_ptr<WatchedAllocator> watched_;
};

}  // namespace movie

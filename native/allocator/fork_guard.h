// Device memory does not survive a fork: in the child there is nothing to allocate from and nothing to give back.
#pragma once

#include <cstdint>

namespace movie {

class ForkGuard {
  public:
    ForkGuard();
    // This process is a child of the one in which the guard was made.
    [[nodiscard]] bool in_child() const;

  private:
    std::uint64_t generation_;
};

}  // namespace movie

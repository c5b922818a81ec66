// Every function that a program can call, counted, and made to fail when the settings ask for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phantom/device/settings.h"

namespace movie::phantom {

class CallSite {
  public:
    // Joins the list of all sites. `name` lives as long as the program.
    explicit CallSite(const char* name);

    // Another call. Returns the code that it is to fail with, 0 for none. Pre: under the machine's lock.
    int enter() {
        ++calls_;
        return faults_.empty() ? 0 : injected();
    }
    // What faults of the settings concern this function. Pre: under the machine's lock, before the first enter().
    void arm(const std::vector<Fault>& faults);
    [[nodiscard]] bool armed() const { return armed_; }
    [[nodiscard]] const char* name() const { return name_; }
    [[nodiscard]] std::uint64_t calls() const { return calls_; }
    [[nodiscard]] std::uint64_t faulted() const { return faulted_; }

    static std::vector<CallSite*> all();

  private:
    int injected();

    const char* name_;
    std::uint64_t calls_ = 0, faulted_ = 0;
    bool armed_ = false;
    std::vector<Fault> faults_;
};

}  // namespace movie::phantom

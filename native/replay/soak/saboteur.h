// A driver that lies, to show that a test with real bytes notices.
#pragma once

#include "driver/forwarding_driver.h"

namespace movie {

struct Sabotage {
    std::uint64_t drop_wait = 0;    // this stream_wait (1 = the first) is answered with ok and not done
    std::uint64_t every_wait = 0;   // so is each one whose number this divides
    std::uint64_t early_query = 0;  // from this event_query on, all work is said to be done
};

class Saboteur final : public ForwardingDriver {
  public:
    Saboteur(Driver& device, const Sabotage& sabotage) : ForwardingDriver(device), sabotage_(sabotage) {}

    Status event_query(Event event) override {
        const Status status = device_.event_query(event);
        return sabotage_.early_query != 0 && ++queries_ >= sabotage_.early_query ? Status::ok : status;
    }
    Status stream_wait(Stream stream, Event event) override {
        ++waits_;
        if (waits_ == sabotage_.drop_wait || (sabotage_.every_wait != 0 && waits_ % sabotage_.every_wait == 0))
            return Status::ok;
        return device_.stream_wait(stream, event);
    }

  private:
    Sabotage sabotage_;
    std::uint64_t queries_ = 0, waits_ = 0;
};

}  // namespace movie

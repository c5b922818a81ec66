// Several driver calls that happen together or not at all.
#pragma once

#include <vector>

#include "driver/driver.h"

namespace movie {

// How to take one step back.
struct UndoStep {
    enum class Kind : std::uint8_t { free_address, release, unmap, map, set_access } kind = Kind::unmap;
    Address address = 0;
    Bytes size = 0;
    Handle handle = 0;
};

// Steps back that the driver refused (a fault within a fault) or that may not be taken now (a thread captures). Until
// they succeed they hold addresses or memory, nothing else.
class Debris {
  public:
    void add(const UndoStep& step) { steps_.push_back(step); }
    // Tries again, in the order in which the steps have to be taken.
    void clear(Driver& driver);
    // Something may still be mapped where its owner thinks nothing is: no address may be used anew until that is
    // cleared.
    [[nodiscard]] bool blocks_addresses() const;
    [[nodiscard]] bool empty() const { return steps_.empty(); }
    // Physical memory that waits to be released.
    struct Held {
        Bytes bytes = 0;
        std::uint64_t pages = 0;
    };
    [[nodiscard]] Held held() const;

  private:
    std::vector<UndoStep> steps_;
};

Status take(Driver& driver, const UndoStep& step);

// Takes steps back, the latest first. A step that depends on one that was refused is not tried: while something is
// mapped that should not be, no range is freed, no older mapping put back, and its handle not released.
class Retreat {
  public:
    explicit Retreat(Driver& driver) : driver_(driver) {}
    // False: not taken.
    bool operator()(const UndoStep& step);
    // An unmap that is not even tried.
    void skip(const UndoStep& unmap) { still_mapped_.push_back(unmap.handle); }

  private:
    Driver& driver_;
    std::vector<Handle> still_mapped_;
    bool whole_ = true;  // every older mapping is back: it may be made accessible
};

struct Mapped {
    Handle handle = 0;
    Bytes size = 0;
};

class Transaction {
  public:
    // `may_unmap` false: while a thread captures, steps back that unmap are left to the debris.
    Transaction(Driver& driver, Debris& debris, bool may_unmap = true)
        : driver_(driver), debris_(debris), may_unmap_(may_unmap) {}
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction();

    Outcome<Address> reserve(Bytes size);
    Outcome<Handle> create(Bytes size);
    Status map(Address address, Bytes size, Handle handle);
    Status set_access(Address address, Bytes size) { return driver_.set_access(address, size); }
    // Unmaps in one call what is mapped from the address on, one after the other.
    Status unmap(Address address, const std::vector<Mapped>& mapped);

    void commit() { undo_.clear(); }

  private:
    Driver& driver_;
    Debris& debris_;
    bool may_unmap_;
    std::vector<UndoStep> undo_;
};

}  // namespace movie

// What a device must offer to the layers above, in about a dozen calls. Who offers it: `model` (books only), and later
// `host`, `cuda` and `hip`. Preconditions are the caller's duty: an implementation may answer a broken one with
// RuleViolation. A call that does not return Status::ok has changed nothing.
#pragma once

#include "driver/ledger.h"
#include "driver/types.h"

namespace movie {

struct MemoryInfo {
    Bytes free = 0;
    Bytes total = 0;
};

class Driver {
  public:
    virtual ~Driver() = default;

    // The smallest unit of physical memory and of mapping: a power of two, constant for the device (2 MiB on NVIDIA).
    [[nodiscard]] virtual Bytes granularity() const = 0;
    // Physical memory of the card as the driver sees it, other owners included.
    [[nodiscard]] virtual MemoryInfo memory_info() const = 0;

    // --- virtual addresses -------------------------------------------------------------------------------------------
    // Pre: size > 0, a multiple of the granularity. Post: [value, value + size) is ours, unmapped, value a multiple of
    // the granularity, and touches no other reservation.
    virtual Outcome<Address> reserve(Bytes size) = 0;
    // Pre: exactly a range that reserve() returned, nothing mapped in it.
    virtual Status free_address(Address address, Bytes size) = 0;

    // --- physical memory ---------------------------------------------------------------------------------------------
    // Pre: size > 0, a multiple of the granularity. Post: `size` bytes of the card are ours, mapped nowhere.
    virtual Outcome<Handle> create(Bytes size) = 0;
    // Pre: a handle of create() not yet released; it may still be mapped. Post: the memory returns to the card with
    // its last mapping.
    virtual Status release(Handle handle) = 0;

    // --- mappings ----------------------------------------------------------------------------------------------------
    // Maps the whole of `handle` (`size` = its size, offset 0) at `address`. Pre: both multiples of the granularity,
    // the range inside one reservation and unmapped. Post: mapped, without access. One handle may be mapped many times.
    virtual Status map(Address address, Bytes size, Handle handle) = 0;
    // Pre: the range consists of one or more complete, adjacent mappings; no work of the device touches it any more
    // (the driver does not wait); no thread captures. Post: unmapped.
    virtual Status unmap(Address address, Bytes size) = 0;
    // Pre: the range consists of complete, adjacent mappings. Post: the device (and every peer) may read and write it.
    virtual Status set_access(Address address, Bytes size) = 0;

    // --- plain allocations, for the baselines ------------------------------------------------------------------------
    virtual Outcome<Address> malloc(Bytes size) = 0;
    // Pre: an address of malloc(). Waits for the device. No thread captures.
    virtual Status mfree(Address address) = 0;

    // --- order of work -----------------------------------------------------------------------------------------------
    // An event behind all work of `stream` so far. Pre: the stream does not capture.
    virtual Outcome<Event> event_record(Stream stream) = 0;
    // ok: all work before the event has finished; not_ready: not yet. Never waits. Pre: no thread captures.
    virtual Status event_query(Event event) = 0;
    // The host waits for the event. Pre: no thread captures.
    virtual Status event_synchronize(Event event) = 0;
    virtual void event_destroy(Event event) = 0;
    // Later work of `stream` starts only when the event is complete; the host does not wait.
    virtual Status stream_wait(Stream stream, Event event) = 0;
    // The host waits for all work of the device. Pre: no thread captures.
    virtual Status synchronize() = 0;

    // Calls made, physical bytes held now and at most, modelled seconds: counted here, not by whoever calls.
    [[nodiscard]] virtual const Ledger& ledger() const = 0;
};

}  // namespace movie

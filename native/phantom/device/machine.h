// The phantom's cards as one process sees them. Every function of the CUDA libraries is a few lines over this.
//
// One lock guards it all; functions hold it while they run (call.h). Only host functions of streams run without.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "driver/ledger.h"
#include "phantom/device/card.h"
#include "phantom/device/graphs.h"
#include "phantom/device/late_work.h"
#include "phantom/device/memory.h"
#include "phantom/device/pinned.h"
#include "phantom/device/pool.h"
#include "phantom/device/settings.h"
#include "phantom/device/stream.h"

namespace movie::phantom {

struct Device {
    int index = 0;
    bool active = false;  // has a context
    unsigned context_flags = 0;
    std::unique_ptr<Stream> legacy;
    std::uint64_t blocking_due = 0;  // when all work of blocking streams so far is done
    std::uint64_t latest_due = 0;    // when all work so far is done
    Ledger ledger;
};

class Machine {
  public:
    // The phantom of this process, made at the first call; null where the settings name no card. It is never destroyed:
    // threads may call until the very end. Settings that cannot be stop the run with a line that says what is wrong.
    static Machine* instance();
    // Whether this is a child of the process that used the card, which cannot use it (as with a real card).
    static bool forked();

    std::mutex mutex;
    const Settings settings;
    const Card card;
    const CostTable& costs;
    std::vector<Device> devices;
    Memory memory;
    Pinned pinned;
    std::vector<std::unique_ptr<Pool>> pools;  // of each device
    LateWork late;
    Graphs graphs;
    int broken = 0;  // after an illegal access every call fails with this

    // --- devices -----------------------------------------------------------------------------------------------------
    // The current device of the calling thread.
    static int current();
    static void make_current(int device);
    [[nodiscard]] bool has(int device) const { return device >= 0 && device < static_cast<int>(devices.size()); }
    Device& device(int index) { return devices[static_cast<std::size_t>(index)]; }
    // The current device's context exists from now on. A code if the card is too small for it.
    int activate(int device);

    // --- streams -----------------------------------------------------------------------------------------------------
    // `handle` as a program has it: null and 1 are the legacy stream of the current device, 2 the thread's own.
    // Null for a handle that is none.
    Stream* stream(void* handle);
    Stream* create_stream(unsigned flags, int priority);
    void destroy_stream(Stream* stream);
    // A place behind all work of the stream so far.
    Place tail(Stream& stream);
    // Later work of the stream comes after the place.
    void order_behind(Stream& stream, Place place);
    // Work whose effects nobody can see.
    int launch(Stream& stream, std::uint64_t pieces = 1);
    // Work with effects, which happen when the card gets there, if the memory is accessible then; `what` names it. In a
    // capture it becomes a node.
    int work(Stream& stream, const char* what, std::vector<Touch> touches, std::function<void()> effect);
    // A function of the program, called by a thread of the phantom's when the card gets there.
    int host_function(Stream& stream, std::function<void()> function);

    // The program waits. `lock` is let go of while host functions run.
    void wait_until(Place place, std::unique_lock<std::mutex>& lock);
    void wait_for_all(int device, std::unique_lock<std::mutex>& lock);

    // --- events ------------------------------------------------------------------------------------------------------
    Event* create_event(unsigned flags);
    void destroy_event(Event* event);
    [[nodiscard]] Event* event(void* handle) const;  // null for a handle that is none

    // --- captures ----------------------------------------------------------------------------------------------------
    std::vector<std::shared_ptr<Capture>> captures;  // under way
    // Each returns a code. `into`: a graph of the program's that the capture adds to, behind `behind`; else a new one.
    int begin_capture(Stream& stream, CaptureMode mode, Graph* into, std::vector<Node*> behind);
    int end_capture(Stream& stream, Graph*& graph);
    int record(Event& event, Stream& stream);
    int wait_event(Stream& stream, Event& event);
    void invalidate(Capture& capture) { capture.invalid = true; }
    // A code if calls that are unsafe during a capture are not allowed to this thread now; such a call breaks the
    // captures that forbid it.
    int forbid_unsafe();
    // The same for calls about the whole device, which no capture on it allows.
    int forbid_while_capturing(int device);
    // A code if the stream, or a capture by way of it, does not allow new work.
    int check_enqueue(Stream& stream);
    static CaptureMode& thread_mode();

    int launch_graph(GraphExec& exec, Stream& stream);

    // --- accounts ----------------------------------------------------------------------------------------------------
    std::uint64_t launches = 0, violations = 0;
    void charge(int device, Call call);
    void charge_handles(int device, Call call, std::uint64_t handles);
    // A rule was broken: says it, and ends the run if the settings ask for that.
    void violation(const std::string& text);
    void log(const std::string& line);
    [[nodiscard]] std::string counters() const;

  private:
    Machine(Settings asked, Card of);
    // When work of the stream may begin at the earliest, for what the legacy stream asks of blocking ones.
    [[nodiscard]] std::uint64_t not_before(const Stream& stream) const;
    Place enqueue(Stream& stream);
    void submit(Stream& stream, Task task);
    // Does a task if the memory that it touches is still there.
    void perform(const Task& task);
    Node* add_node(Stream& stream, NodeKind kind);
    void leave_capture(Capture& capture);

    std::unordered_set<Stream*> streams_;
    std::unordered_set<Event*> events_;
    std::uint64_t next_stream_ = 1;
    std::uint64_t next_capture_ = 1;
    int log_descriptor_ = -1;
    bool said_ = false;  // that the card is a phantom
};

}  // namespace movie::phantom

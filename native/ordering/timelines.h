// The order of work of each stream, known through events: what the host has seen pass, and what each stream's own order
// implies about the others because it waited for them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "driver/driver.h"
#include "ordering/fence.h"

namespace movie {

class Timelines {
  public:
    explicit Timelines(Driver& driver) : driver_(driver) {}

    TimelineId of(Stream stream);
    [[nodiscard]] Stream stream_of(TimelineId id) const { return lines_[id].stream; }
    [[nodiscard]] std::size_t size() const { return lines_.size(); }

    // The place that all work queued on the stream so far lies in: the mark of memory that is freed now.
    [[nodiscard]] Mark now(TimelineId id);
    // The host has seen all work before the mark finished.
    [[nodiscard]] bool passed(Mark mark) const { return lines_[mark.timeline].passed >= mark.epoch; }
    [[nodiscard]] bool passed(const Fence& fence) const {
        return fence.all_of([this](Mark mark) { return passed(mark); });
    }
    // Work queued on `id` from now on comes after the mark anyway: by its own order, or because it waited.
    [[nodiscard]] bool implied(TimelineId id, Mark mark) const {
        return mark.timeline == id || passed(mark) || known(lines_[id].known, mark.timeline) >= mark.epoch;
    }
    [[nodiscard]] bool implied(TimelineId id, const Fence& fence) const {
        return fence.all_of([this, id](Mark mark) { return implied(id, mark); });
    }
    // How long a wait for the mark is likely to last, in allocator operations: what waits of that stream usually take,
    // less what has gone by. 0 = passed.
    [[nodiscard]] std::uint32_t likely_wait(Mark mark) const;

    // Closes the open epoch with an event. Not on a capturing stream.
    Status record(TimelineId id);
    // Makes later work of `id` wait, on the device, for what the fence holds and its order does not imply.
    Status wait_on_device(TimelineId id, const Fence& fence);
    // Records what is needed to see the fence pass later.
    void ask_for(const Fence& fence);
    // The host waits for the mark.
    Status wait_on_host(Mark mark);

    // Asks for the completion of recorded events, oldest first, for each the less often the longer it has taken
    // already; true if any epoch passed. Never waits. `seen` is told of each event that turned out complete, by its
    // stream and epoch: the which event of the stream it is, from 1.
    bool collect(const std::function<void(Stream, Epoch)>& seen = {});
    [[nodiscard]] bool outstanding() const { return !outstanding_.empty(); }
    // The open fence mark that was recorded first, of all timelines.
    [[nodiscard]] std::optional<Mark> oldest_outstanding() const;
    // An allocator operation goes by: the unit of likely_wait(). While streams want each other's memory, epochs that
    // something was freed in do not stay open for long: who comes for that memory later finds an event that stands for
    // little else, and has often passed.
    void tick();
    // A stream looks for memory of others.
    void want() { wanted_at_ = ticks_; }

    // While any thread captures no event may be queried.
    void set_capturing(bool capturing) { capturing_ = capturing; }
    [[nodiscard]] bool capturing() const { return capturing_; }

  private:
    using Knowledge = std::vector<Epoch>;  // by timeline: the last epoch known to come before
    struct Recorded {
        Epoch epoch = 0;
        Event event = 0;
        std::uint64_t at = 0;  // in ticks
        Knowledge known;       // what the stream's order implied then
    };
    struct Line {
        Stream stream = 0;
        Epoch open = 1;
        Epoch passed = 0;
        bool marked = false;          // something was freed in the open epoch
        std::uint64_t marked_at = 0;  // the first of it, in ticks
        bool listed = false;          // in marked_
        Knowledge known;
        std::deque<Recorded> events;  // not yet seen complete, in order
        std::uint64_t ask_at = 0;     // when the first of them is worth a question again, in ticks
        double usual_wait = 1000;     // running mean of ticks from record to completion
    };

    static Epoch known(const Knowledge& knowledge, TimelineId id) { return id < knowledge.size() ? knowledge[id] : 0; }
    static void learn(Knowledge& knowledge, TimelineId id, Epoch epoch);
    void pass(Line& line);  // its oldest event
    void drop_idle();
    void close_old_epochs();
    [[nodiscard]] bool is_old(const Line& line) const;
    // Whether its first event is known to have passed.
    bool front_passed(Line& line);
    const Recorded* covering(Mark mark) const;

    Driver& driver_;
    std::vector<Line> lines_;
    std::unordered_map<Stream, TimelineId> ids_;
    std::vector<TimelineId> outstanding_;  // lines with recorded events
    std::vector<TimelineId> marked_;       // lines with marks in their open epoch, and some that had
    std::uint64_t ticks_ = 0;
    std::uint64_t wanted_at_ = 0;  // 0: never
    bool capturing_ = false;
};

}  // namespace movie

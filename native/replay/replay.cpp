#include "replay/replay.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <stdexcept>
#include <unordered_map>

#include "baselines/bound.h"
#include "replay/check_trace.h"
#include "replay/floor.h"
#include "replay/validator/watch.h"

namespace movie {
namespace {

constexpr std::size_t kProgressStep = 4096;
constexpr std::int64_t kNeverRow = std::numeric_limits<std::int64_t>::max();

// Processor time of this thread, so that other work on the machine does not count.
double thread_nanoseconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Whether the row's work makes the device's clock tick: one tick an allocation, one a free.
bool ticks(const TraceView& trace, Action action) {
    if (action == Action::alloc) return true;
    return action == (trace.completions_recorded ? Action::free_completed : Action::free_requested);
}

// Streams that no program has, each standing for whatever a freed block waits for until a known tick.
class AnonymousStreams {
  public:
    Stream take(std::int64_t now, std::int64_t until) {
        Stream stream = 0;
        if (!busy_.empty() && busy_.top().first <= now) {  // all its work has passed
            stream = busy_.top().second;
            busy_.pop();
        } else {
            stream = --last_;
        }
        busy_.emplace(until, stream);
        return stream;
    }

  private:
    using Busy = std::pair<std::int64_t, Stream>;
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
    Stream last_ = 0;
};

// The columns through one allocator. It speaks to a Driver and an Allocator, whoever may be watching behind them, and
// to the device only about what happens around the allocator: time and other owners.
class Loop {
  public:
    Loop(const TraceView& trace, const ReplayOptions& options, ModelDevice& device, Allocator& allocator)
        : trace_(trace),
          options_(options),
          device_(device),
          ledger_(device.ledger()),
          allocator_(allocator),
          blocks_(static_cast<std::size_t>(trace.ids)) {}

    ReplayResult run() {
        plan_completions();
        plan_lengths();
        const Floor floor = floor_of(trace_);
        const std::size_t rows = trace_.rows();
        const std::size_t last_quarter = rows - rows / 4;
        ViewCounters views_before;
        double delay_before = 0;

        bool going = allocate_start();
        const double begin = thread_nanoseconds();
        if (floor.row < 0) result_.seconds_to_first_peak = ledger_.seconds;
        for (std::size_t row = 0; row < rows && going; ++row) {
            if (row == last_quarter) {
                result_.before_last_quarter = ledger_;
                views_before = allocator_.views();
                delay_before = device_.clock().delay();
            }
            if (row % kProgressStep == 0 && options_.progress && !options_.progress(row)) {
                stop(row, "stopped");
                break;
            }
            going = serve(row);
            if (static_cast<std::int64_t>(row) == floor.row) result_.seconds_to_first_peak = ledger_.seconds;
            if (options_.samples > 0) sample(row);
        }
        const double nanoseconds = thread_nanoseconds() - begin;

        result_.completed = result_.failure.empty();
        result_.host_ns_per_event = events_ == 0 ? 0 : nanoseconds / static_cast<double>(events_);
        result_.peak_requested = floor_.peak();
        result_.peak_reserved = ledger_.peak_reserved;
        result_.end_reserved = ledger_.reserved;
        result_.ledger = ledger_;
        result_.stalled_rows = ledger_.stalled_rows;
        result_.delayed_rows = device_.clock().delay();
        result_.retries = static_cast<std::uint64_t>(allocator_.statistics().num_alloc_retries);
        result_.views = allocator_.views();
        if (going && rows > 0) {
            result_.seconds_last_quarter = ledger_.seconds - result_.before_last_quarter.seconds;
            result_.delayed_rows_last_quarter = result_.delayed_rows - delay_before;
            result_.views_last_quarter = {.created = result_.views.created - views_before.created,
                                          .edited = result_.views.edited - views_before.edited,
                                          .reused = result_.views.reused - views_before.reused,
                                          .evicted = result_.views.evicted - views_before.evicted};
        }
        return std::move(result_);
    }

  private:
    struct Block {
        Address address = 0;  // 0: not alive
        Bytes bytes = 0;
        Stream stream = 0;
        PoolId pool = 0;
        std::int64_t completes = 0;  // 0: freed in one go; else the tick at which the freed block may be used again
    };

    Block& block_of(std::size_t row) { return blocks_[static_cast<std::size_t>(trace_.id[row])]; }

    // For frees that a recording shows in two separate steps: the tick of the second.
    void plan_completions() {
        if (!trace_.completions_recorded) return;
        for (std::size_t id = 0; id < trace_.start_pending.size(); ++id)
            if (trace_.start_pending[id]) blocks_[id].completes = kNeverRow;
        std::int64_t tick = 0;
        for (std::size_t row = 0; row < trace_.rows(); ++row) {
            const auto action = static_cast<Action>(trace_.action[row]);
            if (ticks(trace_, action)) ++tick;
            if (action == Action::free_requested && !completes_at_once(row)) block_of(row).completes = kNeverRow;
            if (action == Action::free_completed && block_of(row).completes != 0) block_of(row).completes = tick;
        }
    }

    // How long the work of a row is, on the stream that has most rows and on all others.
    void plan_lengths() {
        std::unordered_map<Stream, std::uint64_t> rows;
        std::vector<Stream> stream_of(blocks_.size());
        for (std::size_t id = 0; id < trace_.start_stream.size(); ++id) stream_of[id] = trace_.start_stream[id];
        std::uint64_t all = 0;
        for (std::size_t row = 0; row < trace_.rows(); ++row) {
            const auto action = static_cast<Action>(trace_.action[row]);
            if (!ticks(trace_, action)) continue;
            Stream& stream = stream_of[static_cast<std::size_t>(trace_.id[row])];
            if (action == Action::alloc) stream = trace_.stream[row];
            const std::uint64_t count = ++rows[stream];
            ++all;
            if (count > result_.main_rows) {
                result_.main_rows = count;
                main_ = stream;
            }
        }
        const std::uint64_t others = all - result_.main_rows;
        if (others > 0) others_length_ = static_cast<double>(result_.main_rows) / static_cast<double>(others);
    }

    // What the device does in a row.
    void work(const Block& block) { device_.clock().busy(block.stream, block.stream == main_ ? 1 : others_length_); }

    // Whether the next row, marks aside, completes the free.
    [[nodiscard]] bool completes_at_once(std::size_t row) const {
        for (std::size_t next = row + 1; next < trace_.rows(); ++next) {
            const auto action = static_cast<Action>(trace_.action[next]);
            if (action == Action::mark || action == Action::snapshot) continue;
            return action == Action::free_completed && trace_.id[next] == trace_.id[row];
        }
        return false;
    }

    bool allocate_start() {
        for (std::size_t id = 0; id < trace_.start_bytes.size(); ++id) {
            blocks_[id].bytes = static_cast<Bytes>(trace_.start_bytes[id]);
            blocks_[id].stream = trace_.start_stream[id];
            blocks_[id].pool = static_cast<PoolId>(trace_.start_pool[id]);
            if (!allocate(blocks_[id])) {
                stop(0, "in the start state: " + result_.failure);
                return false;
            }
        }
        for (std::size_t id = 0; id < trace_.start_pending.size(); ++id)
            if (trace_.start_pending[id]) release(blocks_[id]);
        return true;
    }

    // One row; false ends the replay.
    bool serve(std::size_t row) {
        switch (static_cast<Action>(trace_.action[row])) {
            case Action::alloc: {
                Block& block = block_of(row);
                block.bytes = static_cast<Bytes>(trace_.bytes[row]);
                block.stream = trace_.stream[row];
                block.pool = static_cast<PoolId>(trace_.pool[row]);
                device_.clock().advance(block.stream);
                ++events_;
                if (!allocate(block)) {
                    stop(row, result_.failure);
                    return false;
                }
                work(block);
                return true;
            }
            case Action::free_requested: {
                Block& block = block_of(row);
                if (!trace_.completions_recorded) {
                    device_.clock().advance(block.stream);
                    work(block);
                }
                release(block);
                return true;
            }
            case Action::free_completed: {
                if (trace_.completions_recorded) {
                    device_.clock().advance(block_of(row).stream);
                    work(block_of(row));
                }
                return true;
            }
            case Action::use: {
                const Block& block = block_of(row);
                device_.clock().work(trace_.stream[row]);
                if (block.address != 0) allocator_.record_stream(block.address, trace_.stream[row]);
                return true;
            }
            case Action::sync:
                device_.clock().finish_by_program();
                return true;
            case Action::empty_cache:
                allocator_.empty_cache();
                result_.reserved_after_empty_cache.push_back(static_cast<std::int64_t>(ledger_.reserved));
                result_.live_after_empty_cache.push_back(static_cast<std::int64_t>(floor_.live()));
                return true;
            case Action::external:
                return serve_other_owner(row);
            case Action::external_free:
                device_.external_give(static_cast<Bytes>(trace_.bytes[row]));
                return true;
            case Action::release_pool:
                floor_.release_pool(static_cast<PoolId>(trace_.pool[row]));
                allocator_.release_pool(static_cast<PoolId>(trace_.pool[row]));
                return true;
            case Action::seen:
                if (options_.as_seen) device_.clock().complete(trace_.stream[row], trace_.bytes[row]);
                return true;
            case Action::mark:
            case Action::oom:
            case Action::segment_alloc:
            case Action::segment_free:
            case Action::segment_map:
            case Action::segment_unmap:
            case Action::snapshot:
                return true;  // what the recorded allocator did
        }
        return true;
    }

    bool allocate(Block& block) {
        try {
            block.address = allocator_.malloc({.bytes = block.bytes, .stream = block.stream, .pool = block.pool});
        } catch (const OutOfMemory& error) {
            result_.failure = error.what();
            return false;
        }
        floor_.add(block.bytes, block.pool);
        if (ledger_.peak_reserved > seen_peak_) {
            seen_peak_ = ledger_.peak_reserved;
            result_.unusable_at_peak = allocator_.unusable(block.stream, block.pool);
        }
        return true;
    }

    void release(Block& block) {
        ++events_;
        if (block.completes != 0) wait_anonymously(block);
        floor_.remove(block.bytes, block.pool);
        allocator_.free(block.address);
        block.address = 0;
    }

    // Somebody, the recording does not say who, uses the block until the tick at which it was seen to be free.
    void wait_anonymously(const Block& block) {
        const Stream stream = anonymous_.take(device_.clock().now(), block.completes);
        device_.clock().plan(stream, block.completes);
        allocator_.record_stream(block.address, stream);
    }

    bool serve_other_owner(std::size_t row) {
        const auto bytes = static_cast<Bytes>(trace_.bytes[row]);
        const Bytes free = device_.memory_info().free;
        if (options_.reclaim && free < bytes) allocator_.reclaim(bytes - free);
        result_.reserved_at_external.push_back(static_cast<std::int64_t>(ledger_.reserved));
        if (device_.external_take(bytes) == Status::ok) return true;
        stop(row, "another owner needs " + std::to_string(bytes) + " bytes of the card and " +
                      std::to_string(device_.memory_info().free) + " are free");
        return false;
    }

    void stop(std::size_t row, std::string failure) {
        result_.failed_at = static_cast<std::int64_t>(row);
        result_.failure = std::move(failure);
    }

    // The highest values since the last sample, so that no peak is lost between two.
    void sample(std::size_t row) {
        highest_.requested = std::max(highest_.requested, static_cast<std::int64_t>(floor_.floor()));
        highest_.reserved = std::max(highest_.reserved, static_cast<std::int64_t>(ledger_.reserved));
        const std::size_t step = std::max<std::size_t>(1, trace_.rows() / static_cast<std::size_t>(options_.samples));
        if (row % step != step - 1 && row + 1 != trace_.rows()) return;
        highest_.row = static_cast<std::int64_t>(row);
        result_.timeline.push_back(highest_);
        highest_ = {};
    }

    const TraceView& trace_;
    const ReplayOptions& options_;
    ModelDevice& device_;
    const Ledger& ledger_;
    Allocator& allocator_;
    std::vector<Block> blocks_;
    AnonymousStreams anonymous_;
    Stream main_ = 0;  // which has most rows
    double others_length_ = 1;
    FloorCounter floor_;
    TimelineSample highest_;
    Bytes seen_peak_ = 0;
    std::uint64_t events_ = 0;
    ReplayResult result_;
};

}  // namespace

ReplayResult replay(const TraceView& trace, const AllocatorMaker& make_allocator, const ReplayOptions& options) {
    check_trace(trace);
    ModelDevice device(options.device);
    std::optional<Watch> watch;
    std::unique_ptr<Allocator> unwatched;
    if (options.validate)
        watch.emplace(device).watch(make_allocator(watch->driver()));
    else
        unwatched = make_allocator(device);
    Allocator& allocator = watch ? watch->allocator() : *unwatched;
    for (const PoolId pool : options.lendable) allocator.set_pool_lendable(pool, true);
    ReplayResult result = Loop(trace, options, device, allocator).run();
    if (watch) watch->check_all();
    return result;
}

}  // namespace movie

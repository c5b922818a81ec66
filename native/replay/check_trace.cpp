#include "replay/check_trace.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace movie {
namespace {

enum class Life : std::uint8_t { unborn, live, requested, ended };

[[noreturn]] void refuse(std::size_t row, const std::string& what) {
    throw std::invalid_argument("row " + std::to_string(row) + ": " + what);
}

}  // namespace

void check_trace(const TraceView& trace) {
    const std::size_t rows = trace.rows();
    const std::size_t start = trace.start_bytes.size();
    if (trace.id.size() != rows || trace.bytes.size() != rows || trace.stream.size() != rows ||
        trace.pool.size() != rows || (!trace.address.empty() && trace.address.size() != rows))
        throw std::invalid_argument("the columns differ in length");
    if (trace.start_stream.size() != start || trace.start_pool.size() != start || trace.start_pending.size() != start)
        throw std::invalid_argument("the columns of the start state differ in length");
    if (trace.ids < static_cast<std::int64_t>(start) || trace.ids > static_cast<std::int64_t>(start + rows))
        throw std::invalid_argument("ids: not the number of blocks");
    for (std::size_t i = 0; i < start; ++i)
        if (trace.start_bytes[i] <= 0 || trace.start_pool[i] < 0)
            throw std::invalid_argument("start block " + std::to_string(i) + ": bytes and pool must be positive");

    std::vector<Life> life(static_cast<std::size_t>(trace.ids), Life::unborn);
    for (std::size_t i = 0; i < start; ++i) life[i] = trace.start_pending[i] ? Life::requested : Life::live;
    for (std::size_t row = 0; row < rows; ++row) {
        const std::int64_t id = trace.id[row];
        const auto block = [&]() -> Life& {
            if (id < 0 || id >= trace.ids) refuse(row, "block " + std::to_string(id) + " does not exist");
            return life[static_cast<std::size_t>(id)];
        };
        if (trace.action[row] > static_cast<std::uint8_t>(Action::seen)) refuse(row, "an unknown action");
        switch (static_cast<Action>(trace.action[row])) {
            case Action::alloc:
                if (block() != Life::unborn) refuse(row, "block " + std::to_string(id) + " is allocated twice");
                if (trace.bytes[row] <= 0)
                    refuse(row, "an allocation of " + std::to_string(trace.bytes[row]) + " bytes");
                if (trace.pool[row] < 0) refuse(row, "a pool below 0");
                block() = Life::live;
                break;
            case Action::free_requested:
                if (block() != Life::live) refuse(row, "block " + std::to_string(id) + " is freed but not alive");
                block() = Life::requested;
                break;
            case Action::free_completed:
                if (block() != Life::requested)
                    refuse(row, "block " + std::to_string(id) + " ends, but nobody asked for that");
                block() = Life::ended;
                break;
            case Action::external:
            case Action::external_free:
                if (trace.bytes[row] <= 0) refuse(row, "another owner's bytes must be positive");
                break;
            case Action::release_pool:
                if (trace.pool[row] <= 0) refuse(row, "only pools above 0 can be released");
                break;
            case Action::use:
                block();
                break;
            default:
                break;
        }
    }
}

}  // namespace movie

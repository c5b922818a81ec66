#include "phantom/device/copies.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "phantom/device/codes.h"

namespace movie::phantom {

namespace {

Address number(const void* pointer) { return reinterpret_cast<Address>(pointer); }

void move_rows(const Block& to, const Block& from) {
    for (std::size_t row = 0; row < to.height; ++row)
        std::memmove(static_cast<char*>(to.pointer) + row * to.pitch,
                     static_cast<const char*>(from.pointer) + row * from.pitch, to.width);
}

void zero_rows(const Block& to) {
    if (to.width * to.height > kMostZeros) return;
    for (std::size_t row = 0; row < to.height; ++row)
        std::memset(static_cast<char*>(to.pointer) + row * to.pitch, 0, to.width);
}

// Whether the driver knows the device memory that a program names. It says so when the work is handed over; that it is
// still there is seen when the card gets to it.
// Copies between cards need no peer access for plain allocations: `by` is who touches.
bool known(const Machine& machine, const Side& side, int device, int& by) {
    const auto whole = machine.memory.find(number(side.block.pointer));
    if (!whole || (side.owner >= 0 && whole->device != side.owner)) return false;
    by = side.owner >= 0 || !whole->mapped_handle ? whole->device : device;
    return machine.memory.accessible(number(side.block.pointer), side.block.span(), by);
}

}  // namespace

int copy_block(Machine& machine, std::unique_lock<std::mutex>& lock, Stream& stream, const char* what, const Side& to,
               const Side& from, bool wait) {
    if (const int code = machine.check_enqueue(stream); code != kSuccess) return code;
    const std::size_t bytes = to.block.span();
    if (bytes == 0) return kSuccess;
    int to_by = -1, from_by = -1;
    for (const Side* side : {&to, &from})
        if (side->device && !known(machine, *side, stream.device, side == &to ? to_by : from_by)) {
            machine.violation(std::string(what) + ": " + (side == &to ? "the target" : "the source") +
                              " is no device memory that the card may touch");
            return kInvalidValue;
        }
    const bool pageable_to = !to.device && !machine.pinned.holds(to.block.pointer, bytes);
    const bool pageable_from = !from.device && !machine.pinned.holds(from.block.pointer, from.block.span());
    // A capture cannot wait for memory that is not pinned, nor hold the bytes that it has now.
    if (stream.capture && (wait || pageable_to)) {
        machine.invalidate(*stream.capture);
        return kCaptureUnsupported;
    }
    std::vector<Touch> touches;
    if (!pageable_to) touches.push_back({number(to.block.pointer), bytes, !to.device, to_by});
    if (!pageable_from && from.block.span() > 0)
        touches.push_back({number(from.block.pointer), from.block.span(), !from.device, from_by});

    std::function<void()> effect;
    if (!to.device && !from.device) {
        effect = [to, from] { move_rows(to.block, from.block); };
    } else if (!machine.memory.bytes()) {
        effect = [to] {
            if (!to.device) zero_rows(to.block);
        };
    } else if (pageable_from) {
        // The bytes are the program's again as soon as the call returns: the driver keeps a copy.
        auto staged = std::make_shared<std::vector<char>>(from.block.span());
        std::memcpy(staged->data(), from.block.pointer, staged->size());
        Block copy = from.block;
        copy.pointer = staged->data();
        effect = [to, copy, staged] { move_rows(to.block, copy); };
    } else {
        effect = [to, from] { move_rows(to.block, from.block); };
    }
    if (const int code = machine.work(stream, what, std::move(touches), std::move(effect)); code != kSuccess)
        return code;
    if (wait || pageable_to) machine.wait_until(machine.tail(stream), lock);
    return machine.broken;
}

int set_block(Machine& machine, Stream& stream, const char* what, const Block& to, std::uint32_t value, unsigned unit) {
    if (const int code = machine.check_enqueue(stream); code != kSuccess) return code;
    const std::size_t bytes = to.span();
    if (bytes == 0) return kSuccess;
    if (!machine.memory.accessible(number(to.pointer), bytes, stream.device)) {
        machine.violation(std::string(what) + ": the target is no device memory that the card may touch");
        return kInvalidValue;
    }
    std::function<void()> effect = [] {};
    if (machine.memory.bytes())
        effect = [to, value, unit] {
            for (std::size_t row = 0; row < to.height; ++row) {
                char* at = static_cast<char*>(to.pointer) + row * to.pitch;
                if (unit == 1)
                    std::memset(at, static_cast<int>(value), to.width);
                else
                    for (std::size_t done = 0; done < to.width; done += unit) std::memcpy(at + done, &value, unit);
            }
        };
    return machine.work(stream, what, {{number(to.pointer), bytes, false, -1}}, std::move(effect));
}

}  // namespace movie::phantom

// Streams, events, and what a capture makes of them.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_set>
#include <vector>

#include "phantom/device/clock.h"
#include "phantom/device/graph.h"

namespace movie::phantom {

enum class CaptureMode : int { global = 0, thread_local_ = 1, relaxed = 2 };

struct Capture {
    std::uint64_t id = 0;
    CaptureMode mode = CaptureMode::global;
    std::thread::id thread;
    Stream* origin = nullptr;
    Graph* graph = nullptr;
    bool owns_graph = true;  // else it belongs to the program: cudaStreamBeginCaptureToGraph
    bool invalid = false;
    std::unordered_set<Stream*> streams;
};

struct Stream {
    int device = 0;
    std::uint64_t id = 0;
    unsigned flags = 0;  // 1: non-blocking
    int priority = 0;
    bool legacy = false;
    Line line;
    std::shared_ptr<Capture> capture;
    std::vector<Node*> tail;                 // in a capture: what the next node depends on
    std::uint64_t polls = 0, polled_at = 0;  // questions without an answer since work was last handed over

    [[nodiscard]] bool blocking() const { return (flags & 1) == 0; }
};

struct Event {
    int device = 0;
    unsigned flags = 0;  // 2: no timing, 4: interprocess
    bool recorded = false;
    Place place;
    std::uint64_t polls = 0, polled_at = 0;  // questions without an answer since work was last handed over
    std::shared_ptr<Capture> capture;        // recorded in a capture
    std::vector<Node*> tail;
};

}  // namespace movie::phantom

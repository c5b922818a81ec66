// Captures of the machine: how they spread over streams, what breaks them, and the launch of what comes of them.
#include <algorithm>

#include "phantom/device/codes.h"
#include "phantom/device/machine.h"

namespace movie::phantom {

namespace {

thread_local CaptureMode mode_of_thread = CaptureMode::global;

void add_each(std::vector<Node*>& to, const std::vector<Node*>& nodes) {
    for (Node* node : nodes)
        if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
}

// All nodes that `from` depends on, and itself.
std::unordered_set<const Node*> ancestors(const std::vector<Node*>& from) {
    std::unordered_set<const Node*> seen;
    std::vector<const Node*> open(from.begin(), from.end());
    while (!open.empty()) {
        const Node* node = open.back();
        open.pop_back();
        if (!seen.insert(node).second) continue;
        open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
    }
    return seen;
}

}  // namespace

CaptureMode& Machine::thread_mode() { return mode_of_thread; }

int Machine::forbid_unsafe() {
    if (mode_of_thread == CaptureMode::relaxed) return kSuccess;
    int code = kSuccess;
    for (const auto& capture : captures) {
        const bool own = capture->thread == std::this_thread::get_id() && capture->mode != CaptureMode::relaxed;
        const bool others = mode_of_thread == CaptureMode::global && capture->mode == CaptureMode::global;
        if (!own && !others) continue;
        capture->invalid = true;
        code = kCaptureUnsupported;
    }
    return code;
}

int Machine::forbid_while_capturing(int index) {
    int code = kSuccess;
    for (const auto& capture : captures) {
        if (capture->origin == nullptr || capture->origin->device != index) continue;
        capture->invalid = true;
        code = kCaptureUnsupported;
    }
    return code;
}

int Machine::check_enqueue(Stream& stream) {
    if (stream.capture) return stream.capture->invalid ? kCaptureInvalidated : kSuccess;
    if (!stream.legacy) return kSuccess;
    int code = kSuccess;
    for (const auto& capture : captures) {
        const bool depends = std::any_of(capture->streams.begin(), capture->streams.end(), [&](const Stream* one) {
            return one->device == stream.device && one->blocking();
        });
        if (!depends) continue;
        capture->invalid = true;
        code = kCaptureImplicit;
    }
    return code;
}

Node* Machine::add_node(Stream& stream, NodeKind kind) {
    Node* node = stream.capture->graph->add(kind, stream.tail);
    stream.tail.assign(1, node);
    return node;
}

int Machine::begin_capture(Stream& stream, CaptureMode mode, Graph* into, std::vector<Node*> behind) {
    if (stream.legacy) return kCaptureUnsupported;
    if (stream.capture) return kIllegalState;
    auto capture = std::make_shared<Capture>();
    capture->id = next_capture_++;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = &stream;
    capture->owns_graph = into == nullptr;
    capture->graph = into == nullptr ? graphs.create() : into;
    capture->streams.insert(&stream);
    stream.capture = capture;
    stream.tail = std::move(behind);
    captures.push_back(std::move(capture));
    return kSuccess;
}

void Machine::leave_capture(Capture& capture) {
    for (Stream* stream : capture.streams)
        if (stream->capture.get() == &capture) {
            stream->tail.clear();
            stream->capture.reset();
        }
    std::erase_if(captures, [&](const auto& one) { return one.get() == &capture; });
}

int Machine::end_capture(Stream& stream, Graph*& graph) {
    graph = nullptr;
    if (!stream.capture) return kIllegalState;
    const std::shared_ptr<Capture> capture = stream.capture;
    if (capture->origin != &stream) {
        capture->invalid = true;
        return kCaptureUnmatched;
    }
    if (capture->mode != CaptureMode::relaxed && capture->thread != std::this_thread::get_id()) {
        capture->invalid = true;
        return kCaptureWrongThread;
    }
    int code = capture->invalid ? kCaptureInvalidated : kSuccess;
    if (code == kSuccess && capture->streams.size() > 1) {
        const auto joined = ancestors(stream.tail);
        for (const Stream* other : capture->streams)
            for (const Node* node : other->tail)
                if (!joined.contains(node)) code = kCaptureUnjoined;
    }
    leave_capture(*capture);
    if (code == kSuccess)
        graph = capture->graph;
    else if (capture->owns_graph)
        graphs.destroy(capture->graph);
    return code;
}

int Machine::record(Event& event, Stream& stream) {
    if (const int code = check_enqueue(stream); code != kSuccess) return code;
    event.recorded = true;
    event.polls = 0;
    event.capture = stream.capture;
    if (stream.capture)
        event.tail = stream.tail;
    else
        event.place = tail(stream);
    return kSuccess;
}

int Machine::wait_event(Stream& stream, Event& event) {
    if (!event.recorded) return kSuccess;
    if (event.capture) {
        const auto live = std::find(captures.begin(), captures.end(), event.capture);
        if (live == captures.end()) return kCapturedEvent;  // what it stood for is in a graph now
        if (stream.legacy) {
            event.capture->invalid = true;
            return kCaptureUnsupported;
        }
        if (stream.capture && stream.capture != event.capture) {
            stream.capture->invalid = event.capture->invalid = true;
            return kCaptureMerge;
        }
        if (event.capture->invalid) return kCaptureInvalidated;
        if (!stream.capture) {
            stream.capture = event.capture;
            event.capture->streams.insert(&stream);
            stream.tail = event.tail;
        } else {
            add_each(stream.tail, event.tail);
        }
        return kSuccess;
    }
    if (stream.capture) {
        stream.capture->invalid = true;
        return kCaptureIsolation;
    }
    if (const int code = check_enqueue(stream); code != kSuccess) return code;
    order_behind(stream, event.place);
    return kSuccess;
}

int Machine::launch_graph(GraphExec& exec, Stream& stream) {
    if (const int code = check_enqueue(stream); code != kSuccess) return code;
    if (stream.capture) {
        Node* node = add_node(stream, NodeKind::child);
        for (const GraphExec::Step& step : exec.steps)
            if (step.run || step.kind == NodeKind::kernel) {
                Node* part = stream.capture->graph->add(step.kind, {node});
                part->run = step.run;
                stream.tail.assign(1, part);
            }
        return kSuccess;
    }
    for (const GraphExec::Step& step : exec.steps) {
        if (step.run)
            step.run(stream);
        else if (step.kind == NodeKind::kernel)
            (void)launch(stream);
    }
    return kSuccess;
}

}  // namespace movie::phantom

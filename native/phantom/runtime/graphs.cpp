// Captures and graphs of the runtime.
#include <algorithm>

#include "phantom/device/call.h"
#include "phantom/runtime/abi.h"

using namespace movie::phantom;

namespace {

template <class Body>
int with_stream(const char* name, void* handle, Body&& body) {
    return runtime_call(name, Needs::context, [&](Machine& machine, Lock&) -> int {
        Stream* stream = machine.stream(handle);
        if (stream == nullptr) return kInvalidHandle;
        return body(machine, *stream);
    });
}

template <class Body>
int with_graph(const char* name, void* handle, Body&& body) {
    return runtime_call(name, Needs::context, [&](Machine& machine, Lock&) -> int {
        auto* graph = static_cast<Graph*>(handle);
        if (!machine.graphs.knows(graph)) return kInvalidValue;
        return body(machine, *graph);
    });
}

std::vector<Node*> nodes_of(void* const* nodes, std::size_t count) {
    std::vector<Node*> result;
    for (std::size_t at = 0; at < count; ++at) result.push_back(static_cast<Node*>(nodes[at]));
    return result;
}

// Copies handles out as CUDA does: null asks for the number; what is missing is filled with null.
template <class Range>
void hand_out(const Range& nodes, void** out, std::size_t* count) {
    if (out != nullptr)
        for (std::size_t at = 0; at < *count; ++at) out[at] = at < nodes.size() ? &*nodes[at] : nullptr;
    *count = out == nullptr ? nodes.size() : std::min(*count, nodes.size());
}

int status(const Stream& stream) { return !stream.capture ? 0 : stream.capture->invalid ? 2 : 1; }

// A question about the legacy stream is not answered while a blocking stream captures.
int implicit(Machine& machine, Stream& stream) { return stream.legacy ? machine.check_enqueue(stream) : kSuccess; }

int capture_info(void* handle, int* state, unsigned long long* id, void** graph, void* const** dependencies,
                 const void** edges, std::size_t* count) {
    return with_stream("cudaStreamGetCaptureInfo", handle, [&](Machine& machine, Stream& stream) -> int {
        if (const int code = implicit(machine, stream); code != kSuccess) return code;
        *state = status(stream);
        if (edges != nullptr) *edges = nullptr;
        if (*state != 1) return kSuccess;
        if (id != nullptr) *id = stream.capture->id;
        if (graph != nullptr) *graph = stream.capture->graph;
        if (dependencies != nullptr) *dependencies = reinterpret_cast<void* const*>(stream.tail.data());
        if (count != nullptr) *count = stream.tail.size();
        return kSuccess;
    });
}

int update_dependencies(void* handle, void** nodes, std::size_t count, unsigned flags) {
    return with_stream("cudaStreamUpdateCaptureDependencies", handle, [&](Machine&, Stream& stream) -> int {
        if (!stream.capture) return kIllegalState;
        if (stream.capture->invalid) return kCaptureInvalidated;
        const std::vector<Node*> given = nodes_of(nodes, count);
        if (flags == 1) stream.tail.clear();  // set, else add
        for (Node* node : given)
            if (std::find(stream.tail.begin(), stream.tail.end(), node) == stream.tail.end())
                stream.tail.push_back(node);
        return kSuccess;
    });
}

}  // namespace

PHANTOM_API int cudaStreamBeginCapture(void* handle, int mode) {
    return with_stream("cudaStreamBeginCapture", handle, [&](Machine& machine, Stream& stream) -> int {
        if (mode < 0 || mode > 2) return kInvalidValue;
        return machine.begin_capture(stream, static_cast<CaptureMode>(mode), nullptr, {});
    });
}

PHANTOM_API int cudaStreamBeginCaptureToGraph(void* handle, void* graph, void* const* nodes, const void*,
                                              std::size_t count, int mode) {
    return with_stream("cudaStreamBeginCaptureToGraph", handle, [&](Machine& machine, Stream& stream) -> int {
        if (mode < 0 || mode > 2 || !machine.graphs.knows(static_cast<Graph*>(graph))) return kInvalidValue;
        return machine.begin_capture(stream, static_cast<CaptureMode>(mode), static_cast<Graph*>(graph),
                                     nodes_of(nodes, count));
    });
}

PHANTOM_API int cudaStreamEndCapture(void* handle, void** out) {
    return with_stream("cudaStreamEndCapture", handle, [&](Machine& machine, Stream& stream) {
        Graph* graph = nullptr;
        const int code = machine.end_capture(stream, graph);
        if (out != nullptr) *out = graph;
        return code;
    });
}

PHANTOM_API int cudaStreamIsCapturing(void* handle, int* out) {
    return with_stream("cudaStreamIsCapturing", handle, [&](Machine& machine, Stream& stream) -> int {
        if (const int code = implicit(machine, stream); code != kSuccess) return code;
        *out = status(stream);
        return kSuccess;
    });
}

PHANTOM_API int cudaStreamGetCaptureInfo_v2(void* stream, int* state, unsigned long long* id, void** graph,
                                            void* const** dependencies, std::size_t* count) {
    return capture_info(stream, state, id, graph, dependencies, nullptr, count);
}
PHANTOM_API int cudaStreamGetCaptureInfo_v3(void* stream, int* state, unsigned long long* id, void** graph,
                                            void* const** dependencies, const void** edges, std::size_t* count) {
    return capture_info(stream, state, id, graph, dependencies, edges, count);
}
// CUDA 13. In CUDA 12 only _v2 and _v3 are called.
PHANTOM_API int cudaStreamGetCaptureInfo(void* stream, int* state, unsigned long long* id, void** graph,
                                         void* const** dependencies, const void** edges, std::size_t* count) {
    return capture_info(stream, state, id, graph, dependencies, edges, count);
}

// CUDA 13: (stream, nodes, edges, count, flags). CUDA 12: (stream, nodes, count, flags).
PHANTOM_API int cudaStreamUpdateCaptureDependencies(void* stream, void** nodes, std::uintptr_t third,
                                                    std::size_t fourth, unsigned fifth) {
    return runtime::major_version() < 13 ? update_dependencies(stream, nodes, third, static_cast<unsigned>(fourth))
                                         : update_dependencies(stream, nodes, fourth, fifth);
}
PHANTOM_API int cudaStreamUpdateCaptureDependencies_v2(void* stream, void** nodes, const void*, std::size_t count,
                                                       unsigned flags) {
    return update_dependencies(stream, nodes, count, flags);
}

PHANTOM_API int cudaThreadExchangeStreamCaptureMode(int* mode) {
    return runtime_call("cudaThreadExchangeStreamCaptureMode", Needs::machine, [&](Machine&, Lock&) {
        if (*mode < 0 || *mode > 2) return kInvalidValue;
        const int before = static_cast<int>(Machine::thread_mode());
        Machine::thread_mode() = static_cast<CaptureMode>(*mode);
        *mode = before;
        return kSuccess;
    });
}

// --- graphs ----------------------------------------------------------------------------------------------------------

PHANTOM_API int cudaGraphCreate(void** out, unsigned) {
    return runtime_call("cudaGraphCreate", Needs::context, [&](Machine& machine, Lock&) {
        *out = machine.graphs.create();
        return kSuccess;
    });
}

PHANTOM_API int cudaGraphDestroy(void* handle) {
    return with_graph("cudaGraphDestroy", handle, [](Machine& machine, Graph& graph) {
        if (!machine.graphs.contains(&graph)) return kInvalidValue;  // a body, which goes with its node
        machine.graphs.destroy(&graph);
        return kSuccess;
    });
}

PHANTOM_API int cudaGraphClone(void** out, void* handle) {
    return with_graph("cudaGraphClone", handle, [&](Machine& machine, Graph& graph) {
        *out = machine.graphs.clone(graph);
        return kSuccess;
    });
}

PHANTOM_API int cudaGraphGetNodes(void* handle, void** out, std::size_t* count) {
    return with_graph("cudaGraphGetNodes", handle, [&](Machine&, Graph& graph) {
        hand_out(graph.nodes, out, count);
        return kSuccess;
    });
}

PHANTOM_API int cudaGraphGetRootNodes(void* handle, void** out, std::size_t* count) {
    return with_graph("cudaGraphGetRootNodes", handle, [&](Machine&, Graph& graph) {
        std::vector<Node*> roots;
        for (const auto& node : graph.nodes)
            if (node->dependencies.empty()) roots.push_back(node.get());
        hand_out(roots, out, count);
        return kSuccess;
    });
}

namespace {
int node_dependencies(void* handle, void** out, std::size_t* count) {
    return runtime_call("cudaGraphNodeGetDependencies", Needs::context, [&](Machine&, Lock&) {
        if (handle == nullptr) return kInvalidValue;
        hand_out(static_cast<Node*>(handle)->dependencies, out, count);
        return kSuccess;
    });
}
}  // namespace

// CUDA 13: (node, nodes, edges, count). CUDA 12: (node, nodes, count).
PHANTOM_API int cudaGraphNodeGetDependencies(void* node, void** out, void* third, std::size_t* fourth) {
    return node_dependencies(node, out, runtime::major_version() < 13 ? static_cast<std::size_t*>(third) : fourth);
}
PHANTOM_API int cudaGraphNodeGetDependencies_v2(void* node, void** out, void*, std::size_t* count) {
    return node_dependencies(node, out, count);
}

PHANTOM_API int cudaGraphNodeGetType(void* handle, int* type) {
    return runtime_call("cudaGraphNodeGetType", Needs::context, [&](Machine&, Lock&) {
        if (handle == nullptr) return kInvalidValue;
        switch (static_cast<Node*>(handle)->kind) {
            case NodeKind::kernel:
                *type = 0;
                break;
            case NodeKind::memory:
                *type = 1;
                break;
            case NodeKind::host:
                *type = 3;
                break;
            case NodeKind::child:
                *type = 4;
                break;
            case NodeKind::conditional:
                *type = 13;
                break;
            default:
                *type = 5;
        }
        return kSuccess;
    });
}

PHANTOM_API int cudaGraphInstantiateWithFlags(void** out, void* handle, unsigned long long) {
    return with_graph("cudaGraphInstantiate", handle, [&](Machine& machine, Graph& graph) {
        *out = machine.graphs.instantiate(graph);
        return kSuccess;
    });
}
PHANTOM_API int cudaGraphInstantiate(void** out, void* graph, unsigned long long flags) {
    return cudaGraphInstantiateWithFlags(out, graph, flags);
}

namespace {
template <class Body>
int with_exec(const char* name, void* handle, Body&& body) {
    return runtime_call(name, Needs::context, [&](Machine& machine, Lock&) -> int {
        auto* exec = static_cast<GraphExec*>(handle);
        if (!machine.graphs.contains(exec)) return kInvalidValue;
        return body(machine, *exec);
    });
}
}  // namespace

PHANTOM_API int cudaGraphExecDestroy(void* handle) {
    return with_exec("cudaGraphExecDestroy", handle, [](Machine& machine, GraphExec& exec) {
        machine.graphs.destroy(&exec);
        return kSuccess;
    });
}

PHANTOM_API int cudaGraphUpload(void* handle, void*) {
    return with_exec("cudaGraphUpload", handle, [](Machine&, GraphExec&) { return kSuccess; });
}

PHANTOM_API int cudaGraphLaunch(void* handle, void* stream_handle) {
    return with_exec("cudaGraphLaunch", handle, [&](Machine& machine, GraphExec& exec) -> int {
        Stream* stream = machine.stream(stream_handle);
        if (stream == nullptr) return kInvalidHandle;
        return machine.launch_graph(exec, *stream);
    });
}

// --- objects whose life a graph prolongs -----------------------------------------------------------------------------

PHANTOM_API int cudaUserObjectCreate(void** out, void* value, void (*destroy)(void*), unsigned references, unsigned) {
    return runtime_call("cudaUserObjectCreate", Needs::context, [&](Machine&, Lock&) {
        if (out == nullptr || destroy == nullptr || references == 0) return kInvalidValue;
        *out = new UserObject{.value = value, .destroy = destroy, .references = references};
        return kSuccess;
    });
}

PHANTOM_API int cudaUserObjectRetain(void* handle, unsigned count) {
    return runtime_call("cudaUserObjectRetain", Needs::context, [&](Machine& machine, Lock&) {
        machine.graphs.hold(static_cast<UserObject*>(handle), count);
        return kSuccess;
    });
}

PHANTOM_API int cudaUserObjectRelease(void* handle, unsigned count) {
    return runtime_call("cudaUserObjectRelease", Needs::context, [&](Machine& machine, Lock&) {
        machine.graphs.let_go(static_cast<UserObject*>(handle), count);
        return kSuccess;
    });
}

PHANTOM_API int cudaGraphRetainUserObject(void* handle, void* object_handle, unsigned count, unsigned flags) {
    return with_graph("cudaGraphRetainUserObject", handle, [&](Machine& machine, Graph& graph) {
        auto* object = static_cast<UserObject*>(object_handle);
        if (flags != 1) machine.graphs.hold(object, count);  // 1: the caller's references move to the graph
        graph.holds.emplace_back(object, count);
        return kSuccess;
    });
}

// --- nodes that a program adds ---------------------------------------------------------------------------------------

namespace {

// Of cudaGraphNodeParams, what follows the type and three reserved words, for a conditional node.
struct ConditionalParams {
    int type, reserved[3];
    unsigned long long handle;
    int kind;       // 0 if, 1 while, 2 switch
    unsigned size;  // bodies
    void** graphs;  // written: the bodies
};

constexpr int kKernelType = 0, kEmptyType = 5, kConditionalType = 13;

int add_node(void** out, void* graph_handle, void* const* dependencies, std::size_t count, void* params) {
    return runtime_call("cudaGraphAddNode", Needs::context, [&](Machine& machine, Lock&) -> int {
        auto* graph = static_cast<Graph*>(graph_handle);
        if (out == nullptr || params == nullptr || !machine.graphs.knows(graph)) return kInvalidValue;
        auto& given = *static_cast<ConditionalParams*>(params);
        switch (given.type) {
            case kKernelType:
                *out = graph->add(NodeKind::kernel, nodes_of(dependencies, count));
                return kSuccess;
            case kEmptyType:
                *out = graph->add(NodeKind::empty, nodes_of(dependencies, count));
                return kSuccess;
            case kConditionalType: {
                // The condition is computed on a card. Without one, each body runs once a launch.
                Node* node = graph->add(NodeKind::conditional, nodes_of(dependencies, count));
                auto* bodies = new void*[given.size];  // lives with the node, as far as the program can tell: for ever
                for (unsigned at = 0; at < given.size; ++at) bodies[at] = machine.graphs.create_body(*node);
                given.graphs = bodies;
                *out = node;
                return kSuccess;
            }
            default:
                stop("cudaGraphAddNode", ("a node of type " + std::to_string(given.type)).c_str());
        }
    });
}

}  // namespace

// CUDA 13: (node, graph, dependencies, edges, count, params). CUDA 12: (node, graph, dependencies, count, params).
PHANTOM_API int cudaGraphAddNode(void** out, void* graph, void* const* dependencies, std::uintptr_t fourth, void* fifth,
                                 void* sixth) {
    return runtime::major_version() < 13
               ? add_node(out, graph, dependencies, fourth, fifth)
               : add_node(out, graph, dependencies, reinterpret_cast<std::size_t>(fifth), sixth);
}
PHANTOM_API int cudaGraphAddNode_v2(void** out, void* graph, void* const* dependencies, const void*, std::size_t count,
                                    void* params) {
    return add_node(out, graph, dependencies, count, params);
}

PHANTOM_API int cudaGraphAddEmptyNode(void** out, void* handle, void* const* dependencies, std::size_t count) {
    return with_graph("cudaGraphAddEmptyNode", handle, [&](Machine&, Graph& graph) {
        *out = graph.add(NodeKind::empty, nodes_of(dependencies, count));
        return kSuccess;
    });
}

PHANTOM_API int cudaGraphConditionalHandleCreate(unsigned long long* out, void* graph_handle, unsigned, unsigned) {
    return runtime_call("cudaGraphConditionalHandleCreate", Needs::context, [&](Machine& machine, Lock&) {
        if (!machine.graphs.knows(static_cast<Graph*>(graph_handle))) return kInvalidValue;
        static unsigned long long next = 1;
        *out = next++;
        return kSuccess;
    });
}

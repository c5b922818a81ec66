#include "phantom/device/graphs.h"

#include <algorithm>

namespace movie::phantom {

namespace {

void copy_steps(const Graph& graph, std::vector<GraphExec::Step>& steps) {
    // Nodes are in the order in which they were captured, or added behind what they depend on.
    for (const auto& node : graph.nodes) {
        steps.push_back({node->kind, node->run});
        for (const auto& body : node->bodies) copy_steps(*body, steps);
    }
}

}  // namespace

Graph* Graphs::create() {
    auto graph = std::make_unique<Graph>();
    Graph* handle = graph.get();
    graphs_.emplace(handle, std::move(graph));
    return handle;
}

Graph* Graphs::create_body(Node& node) {
    node.bodies.push_back(std::make_unique<Graph>());
    bodies_.insert(node.bodies.back().get());
    return node.bodies.back().get();
}

Graph* Graphs::clone(const Graph& graph) {
    Graph* copy = create();
    std::unordered_map<const Node*, Node*> copies;
    for (const auto& node : graph.nodes) {
        std::vector<Node*> dependencies;
        for (const Node* one : node->dependencies) dependencies.push_back(copies.at(one));
        Node* twin = copy->add(node->kind, std::move(dependencies));
        twin->run = node->run;
        copies.emplace(node.get(), twin);
    }
    copy->holds = graph.holds;
    for (const auto& [object, count] : copy->holds) hold(object, count);
    return copy;
}

void Graphs::destroy(const Graph* graph) {
    for (const auto& [object, count] : graph->holds) let_go(object, count);
    for (const auto& node : graph->nodes)
        for (const auto& body : node->bodies) bodies_.erase(body.get());
    graphs_.erase(graph);
}

GraphExec* Graphs::instantiate(const Graph& graph) {
    auto exec = std::make_unique<GraphExec>();
    copy_steps(graph, exec->steps);
    exec->holds = graph.holds;
    for (const auto& [object, count] : exec->holds) hold(object, count);
    GraphExec* handle = exec.get();
    execs_.emplace(handle, std::move(exec));
    return handle;
}

void Graphs::destroy(const GraphExec* exec) {
    for (const auto& [object, count] : exec->holds) let_go(object, count);
    execs_.erase(exec);
}

void Graphs::let_go(UserObject* object, std::uint64_t count) {
    object->references -= std::min(count, object->references);
    if (object->references > 0) return;
    call_soon_([object] {
        object->destroy(object->value);
        delete object;
    });
}

}  // namespace movie::phantom

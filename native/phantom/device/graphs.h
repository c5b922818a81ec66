// All graphs of the program, and what they keep alive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "phantom/device/graph.h"

namespace movie::phantom {

class Graphs {
  public:
    // `call_soon` calls a function of the program without the machine's lock.
    explicit Graphs(std::function<void(std::function<void()>)> call_soon) : call_soon_(std::move(call_soon)) {}

    // Whether it is one of the program's graphs, which may be destroyed.
    [[nodiscard]] bool contains(const Graph* graph) const { return graphs_.contains(graph); }
    // Whether there is such a graph: the program's, or the body of one of its nodes.
    [[nodiscard]] bool knows(const Graph* graph) const { return contains(graph) || bodies_.contains(graph); }
    [[nodiscard]] bool contains(const GraphExec* exec) const { return execs_.contains(exec); }

    Graph* create();
    Graph* clone(const Graph& graph);
    // The body of a conditional node.
    Graph* create_body(Node& node);
    void destroy(const Graph* graph);
    GraphExec* instantiate(const Graph& graph);
    void destroy(const GraphExec* exec);

    void hold(UserObject* object, std::uint64_t count) { object->references += count; }
    void let_go(UserObject* object, std::uint64_t count);

  private:
    std::function<void(std::function<void()>)> call_soon_;
    std::unordered_map<const Graph*, std::unique_ptr<Graph>> graphs_;
    std::unordered_map<const GraphExec*, std::unique_ptr<GraphExec>> execs_;
    std::unordered_set<const Graph*> bodies_;
};

}  // namespace movie::phantom

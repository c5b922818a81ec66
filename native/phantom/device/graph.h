// CUDA graphs: nodes with what they depend on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace movie::phantom {

struct Stream;
struct Graph;

enum class NodeKind : std::uint8_t { kernel, memory, host, empty, wait_event, record_event, child, conditional };

struct Node {
    NodeKind kind = NodeKind::kernel;
    std::vector<Node*> dependencies;
    // What a launch of the graph does in its stream; empty: one launch.
    std::function<void(Stream&)> run;
    Graph* graph = nullptr;
    std::vector<std::unique_ptr<Graph>> bodies;  // of a conditional or child node
};

// Destroyed by the program when a graph that holds a reference, and everybody else, has let go.
struct UserObject {
    void* value = nullptr;
    void (*destroy)(void*) = nullptr;
    std::uint64_t references = 0;
};

struct Graph {
    std::vector<std::unique_ptr<Node>> nodes;
    std::vector<std::pair<UserObject*, std::uint64_t>> holds;

    Node* add(NodeKind kind, std::vector<Node*> dependencies) {
        nodes.push_back(std::make_unique<Node>());
        Node* node = nodes.back().get();
        node->kind = kind;
        node->dependencies = std::move(dependencies);
        node->graph = this;
        return node;
    }
};

// What a graph was when it was instantiated.
struct GraphExec {
    struct Step {
        NodeKind kind;
        std::function<void(Stream&)> run;
    };
    std::vector<Step> steps;
    std::vector<std::pair<UserObject*, std::uint64_t>> holds;
};

}  // namespace movie::phantom

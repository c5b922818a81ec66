// cuDNN's graph interface knows one kind of object: a descriptor, which is a bag of attributes that is filled,
// finalized, and then read. The numbers of types and attributes are those of cudnn_graph.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "phantom/libraries/cudnn/handle.h"

namespace movie::phantom::cudnn {

enum class Kind : int {
    engine = 2,
    engine_config = 3,
    heuristic = 4,
    plan = 5,
    convolution_forward = 10,
    convolution_filter = 11,
    convolution_data = 12,
    graph = 15,
    variant_pack = 16,
    tensor = 17,
};

enum class ElementType : int {
    handle = 0,
    boolean = 2,
    int64 = 3,
    double_floating = 5,
    pointer = 6,
    descriptor = 15,
    int32 = 23,
    character = 24,
    fraction = 26,
};

// Bytes of one element; enumerations are 4 bytes long.
std::size_t size_of(ElementType type);

enum class Name : int {
    heuristic_mode = 200,
    heuristic_graph = 201,
    heuristic_results = 202,
    config_engine = 300,
    config_intermediates = 301,
    config_knobs = 302,
    config_workspace = 303,
    config_shared_memory = 304,
    plan_config = 401,
    plan_workspace = 402,
    plan_text = 405,
    forward_w = 703,
    forward_x = 704,
    forward_y = 705,
    data_w = 709,
    data_dx = 710,
    data_dy = 711,
    filter_dw = 715,
    filter_x = 716,
    filter_dy = 717,
    graph_operations = 801,
    graph_engines = 802,
    tensor_type = 901,
    tensor_dimensions = 902,
    tensor_strides = 903,
    pack_workspace = 1003,
    engine_graph = 1300,
    engine_index = 1301,
    engine_knobs = 1302,
    engine_numerics = 1303,
    engine_layouts = 1304,
    engine_behaviour = 1305,
};

struct Descriptor;
using Shared = std::shared_ptr<Descriptor>;

struct Attribute {
    ElementType type{};
    std::vector<std::byte> values;
    std::vector<Shared> descriptors;  // in place of values, for elements that are descriptors
};

struct Descriptor {
    Kind kind{};
    bool finalized = false;
    std::map<Name, Attribute> attributes;

    [[nodiscard]] const Attribute* find(Name name) const;
    // The first descriptor of an attribute, or null.
    [[nodiscard]] const Descriptor* part(Name name) const;
    [[nodiscard]] std::vector<std::int64_t> numbers(Name name) const;
    [[nodiscard]] std::int64_t number(Name name, std::int64_t otherwise) const;
};

}  // namespace movie::phantom::cudnn

#include "phantom/libraries/cudnn/backend/engines.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace movie::phantom::cudnn {

namespace {

constexpr std::int64_t kFallbackMode = 2;      // CUDNN_HEUR_MODE_FALLBACK
constexpr std::int64_t kAccumulatorBytes = 4;  // partial sums are single precision

struct Tensor {
    std::int64_t elements = 0;
    std::int64_t bytes = 0;
    bool channels_last = false;
};

Tensor tensor_of(const Descriptor* operation, Name name) {
    const auto* descriptor = operation->part(name);
    if (!descriptor) return {};
    const auto dimensions = descriptor->numbers(Name::tensor_dimensions);
    const auto strides = descriptor->numbers(Name::tensor_strides);
    if (dimensions.size() < 3 || strides.size() != dimensions.size()) return {};
    Tensor tensor;
    tensor.elements = std::accumulate(dimensions.begin(), dimensions.end(), std::int64_t{1}, std::multiplies<>());
    const auto type = static_cast<int>(descriptor->number(Name::tensor_type, 0));
    tensor.bytes = tensor.elements * static_cast<std::int64_t>(cudnn::size_of(type));
    // A single channel, or a single point, lies the same either way.
    tensor.channels_last = strides[1] == 1 || dimensions[1] == 1 ||
                           std::all_of(dimensions.begin() + 2, dimensions.end(), [](auto size) { return size == 1; });
    return tensor;
}

// Tensor-core kernels read and write channels last: a tensor that lies otherwise is turned into a copy first. The
// gradient of a filter in half precision is summed up in single precision.
std::int64_t convolution_workspace(const Descriptor* operation, Name filter, Name one, Name other, bool sums) {
    std::int64_t bytes = 0;
    for (const auto name : {filter, one, other}) {
        const auto tensor = tensor_of(operation, name);
        if (!tensor.channels_last) bytes += tensor.bytes;
    }
    const auto gradient = tensor_of(operation, filter);
    if (sums && gradient.bytes < gradient.elements * kAccumulatorBytes) bytes += gradient.elements * kAccumulatorBytes;
    return bytes;
}

}  // namespace

std::vector<std::int64_t> proposed(std::int64_t mode) {
    if (mode == kFallbackMode) return {kFrugal};
    return {kFast, kFrugal};
}

std::int64_t workspace(const Descriptor& graph, std::int64_t engine) {
    const auto* operations = graph.find(Name::graph_operations);
    if (engine == kFrugal || !operations) return 0;
    std::int64_t most = 0;
    for (const auto& operation : operations->descriptors) {
        std::int64_t bytes = 0;
        if (operation->kind == Kind::convolution_forward) {
            bytes = convolution_workspace(operation.get(), Name::forward_w, Name::forward_x, Name::forward_y, false);
        } else if (operation->kind == Kind::convolution_data) {
            bytes = convolution_workspace(operation.get(), Name::data_w, Name::data_dx, Name::data_dy, false);
        } else if (operation->kind == Kind::convolution_filter) {
            bytes = convolution_workspace(operation.get(), Name::filter_dw, Name::filter_x, Name::filter_dy, true);
        }
        most = std::max(most, bytes);
    }
    return most;
}

}  // namespace movie::phantom::cudnn

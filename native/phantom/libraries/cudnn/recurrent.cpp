// Recurrent networks: how their weights lie in one buffer, and what a pass over a sequence needs.
#include <cstdint>

#include "phantom/libraries/cudnn/descriptors.h"
#include "phantom/libraries/export.h"

extern "C" int cudaDeviceGetAttribute(int* value, int attribute, int device);

using namespace movie::phantom::cudnn;

namespace {

constexpr int kLstm = 2;
constexpr int kGru = 3;
constexpr int kNoBias = 0;
constexpr int kDoubleBias = 2;
constexpr int kTraining = 1;

int gates_of(int cell) { return cell == kLstm ? 4 : cell == kGru ? 3 : 1; }

// The matrices of one layer in one direction: each gate has one for the input and one for the hidden state, and an LSTM
// with a projection has one more.
struct Layer {
    std::int64_t gates = 0, hidden = 0, input = 0, output = 0;
    bool projected = false;
    int biases = 0;

    [[nodiscard]] std::int64_t matrices() const { return 2 * gates + projected; }
    [[nodiscard]] std::int64_t rows(std::int64_t matrix) const { return matrix < 2 * gates ? hidden : output; }
    [[nodiscard]] std::int64_t columns(std::int64_t matrix) const {
        return matrix < gates ? input : matrix < 2 * gates ? output : hidden;
    }
    // In elements, from the layer's first matrix.
    [[nodiscard]] std::int64_t offset(std::int64_t matrix) const {
        std::int64_t elements = 0;
        for (std::int64_t before = 0; before < matrix; ++before) elements += rows(before) * columns(before);
        return elements;
    }
    [[nodiscard]] std::int64_t matrix_elements() const { return offset(matrices()); }
    [[nodiscard]] std::int64_t bias_elements() const { return biases * gates * hidden; }
};

int directions(const RecurrentDescriptor& network) { return network.bidirectional ? 2 : 1; }
int pseudo_layers(const RecurrentDescriptor& network) { return network.layers * directions(network); }

Layer layer_of(const RecurrentDescriptor& network, int pseudo_layer) {
    Layer layer;
    layer.gates = gates_of(network.cell);
    layer.hidden = network.hidden;
    layer.projected = network.projection && network.projection != network.hidden;
    layer.output = layer.projected ? network.projection : network.hidden;
    const bool first = pseudo_layer < directions(network);
    layer.input = first ? network.input : layer.output * directions(network);
    layer.biases = network.bias == kNoBias ? 0 : network.bias == kDoubleBias ? 2 : 1;
    return layer;
}

// All matrices, layer after layer, and behind them all biases.
std::int64_t matrix_elements(const RecurrentDescriptor& network, int layers) {
    std::int64_t elements = 0;
    for (int i = 0; i < layers; ++i) elements += layer_of(network, i).matrix_elements();
    return elements;
}
std::int64_t bias_elements(const RecurrentDescriptor& network, int layers) {
    std::int64_t elements = 0;
    for (int i = 0; i < layers; ++i) elements += layer_of(network, i).bias_elements();
    return elements;
}

std::size_t weight_bytes(const RecurrentDescriptor& network) {
    const int layers = pseudo_layers(network);
    return static_cast<std::size_t>(matrix_elements(network, layers) + bias_elements(network, layers)) *
           size_of(network.type);
}

void describe(TensorDescriptor* tensor, int type, std::int64_t rows, std::int64_t columns) {
    const auto height = static_cast<int>(rows);
    const auto width = static_cast<int>(columns);
    tensor->type = type;
    tensor->dimensions = {1, height, width};
    tensor->strides = {height * width, width, 1};
}

}  // namespace

PHANTOM_EXPORT int cudnnSetRNNDescriptor_v8(RecurrentDescriptor* network, int, int cell, int bias, int direction, int,
                                            int type, int, int, std::int32_t input, std::int32_t hidden,
                                            std::int32_t projection, std::int32_t layers, const DropoutDescriptor*,
                                            std::uint32_t) {
    if (!good(network) || !size_of(type) || input < 1 || hidden < 1 || layers < 1) return kBadParameter;
    network->cell = cell;
    network->bias = bias;
    network->bidirectional = direction != 0;
    network->type = type;
    network->input = input;
    network->hidden = hidden;
    network->projection = projection;
    network->layers = layers;
    return kSuccess;
}

PHANTOM_EXPORT int cudnnSetRNNDataDescriptor(SequenceDescriptor* sequence, int type, int, int longest, int batch,
                                             int width, const int* lengths, void*) {
    if (!good(sequence) || !size_of(type) || longest < 1 || batch < 1 || width < 1 || !lengths) return kBadParameter;
    sequence->type = type;
    sequence->longest = longest;
    sequence->batch = batch;
    sequence->width = width;
    return kSuccess;
}

PHANTOM_EXPORT int cudnnGetRNNWeightSpaceSize(const Handle* handle, const RecurrentDescriptor* network,
                                              std::size_t* bytes) {
    if (!good(handle)) return kNotInitialized;
    if (!good(network) || !bytes) return kBadParameter;
    *bytes = weight_bytes(*network);
    return kSuccess;
}

PHANTOM_EXPORT int cudnnGetRNNWeightParams(const Handle* handle, const RecurrentDescriptor* network,
                                           std::int32_t pseudo_layer, std::size_t space_bytes, const void* space,
                                           std::int32_t matrix, TensorDescriptor* matrix_shape, void** matrix_address,
                                           TensorDescriptor* bias_shape, void** bias_address) {
    if (!good(handle)) return kNotInitialized;
    if (!good(network) || pseudo_layer < 0 || pseudo_layer >= pseudo_layers(*network)) return kBadParameter;
    const auto layer = layer_of(*network, pseudo_layer);
    if (matrix < 0 || matrix >= layer.matrices() || space_bytes < weight_bytes(*network)) return kBadParameter;
    const auto address = [&](std::int64_t element) {
        const auto bytes = static_cast<std::size_t>(element) * size_of(network->type);
        return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(space) + bytes);
    };
    // A caller that wants only the matrix, or only the bias, leaves out the other.
    if (matrix_shape && matrix_address) {
        describe(matrix_shape, network->type, layer.rows(matrix), layer.columns(matrix));
        *matrix_address = address(matrix_elements(*network, pseudo_layer) + layer.offset(matrix));
    }
    if (bias_shape && bias_address) {
        // With one bias for each gate it goes with the input's matrices.
        const bool has_bias = matrix < layer.biases * layer.gates;
        *bias_address = nullptr;
        if (has_bias) {
            describe(bias_shape, network->type, layer.hidden, 1);
            *bias_address = address(matrix_elements(*network, pseudo_layers(*network)) +
                                    bias_elements(*network, pseudo_layer) + matrix * layer.hidden);
        }
    }
    return kSuccess;
}

// Estimates. The workspace holds the gates of one layer for all steps; what the backward pass needs again is, for each
// layer, direction and step, the gates, the cell's state and the output.
PHANTOM_EXPORT int cudnnGetRNNTempSpaceSizes(const Handle* handle, const RecurrentDescriptor* network, int mode,
                                             const SequenceDescriptor* x, std::size_t* workspace,
                                             std::size_t* reserve) {
    if (!good(handle)) return kNotInitialized;
    if (!good(network) || !good(x)) return kBadParameter;
    const auto state = static_cast<std::size_t>(x->longest) * static_cast<std::size_t>(x->batch) *
                       static_cast<std::size_t>(network->hidden) * size_of(network->type);
    const auto gates = static_cast<std::size_t>(gates_of(network->cell));
    if (workspace) *workspace = state * gates * static_cast<std::size_t>(directions(*network));
    if (reserve) {
        *reserve = mode == kTraining ? state * (gates + 2) * static_cast<std::size_t>(pseudo_layers(*network)) : 0;
    }
    return kSuccess;
}

#define PASS(name) \
    PHANTOM_EXPORT int cudnnRNN##name(const Handle* handle) { return enqueue(handle); }
PASS(Forward)
PASS(BackwardData_v8)
PASS(BackwardWeights_v8)

// The states of dropout's random numbers: 24 bytes for each thread that the card holds at a time.
PHANTOM_EXPORT int cudnnDropoutGetStatesSize(const Handle* handle, std::size_t* bytes) {
    constexpr int kMultiprocessors = 16, kThreadsOfOne = 39;
    constexpr std::size_t kState = 24;
    if (!good(handle)) return kNotInitialized;
    int multiprocessors = 0, threads = 0;
    if (!bytes || cudaDeviceGetAttribute(&multiprocessors, kMultiprocessors, handle->device) ||
        cudaDeviceGetAttribute(&threads, kThreadsOfOne, handle->device)) {
        return kBadParameter;
    }
    *bytes = static_cast<std::size_t>(multiprocessors) * static_cast<std::size_t>(threads) * kState;
    return kSuccess;
}
// Setting them up is a launch; finding them again is none.
PHANTOM_EXPORT int cudnnSetDropoutDescriptor(DropoutDescriptor* dropout, const Handle* handle, float, void* states,
                                             std::size_t, unsigned long long) {
    if (!good(dropout)) return kBadParameter;
    return states ? enqueue(handle) : kSuccess;
}
PHANTOM_EXPORT int cudnnRestoreDropoutDescriptor(DropoutDescriptor* dropout, const Handle* handle, float, void*,
                                                 std::size_t, unsigned long long) {
    if (!good(dropout) || !good(handle)) return kBadParameter;
    return kSuccess;
}

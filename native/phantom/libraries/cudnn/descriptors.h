// The descriptors of cuDNN's older interface: what was set, kept to answer queries and to size what a call needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <numeric>
#include <vector>

#include "phantom/libraries/cudnn/handle.h"

namespace movie::phantom::cudnn {

constexpr int kMostDimensions = 8;  // CUDNN_DIM_MAX

// The mark tells the kinds apart, and from stray pointers.
template <unsigned Mark>
struct Marked {
    unsigned mark = Mark;
    [[nodiscard]] bool valid() const { return mark == Mark; }
};

struct TensorDescriptor : Marked<1> {
    int type = 0;
    std::vector<int> dimensions, strides;

    [[nodiscard]] std::size_t elements() const {
        return std::accumulate(dimensions.begin(), dimensions.end(), std::size_t{1}, std::multiplies<>());
    }
    [[nodiscard]] std::size_t bytes() const { return elements() * size_of(type); }
    [[nodiscard]] bool channels_last() const { return strides.size() > 2 && (strides[1] == 1 || dimensions[1] == 1); }
};

struct FilterDescriptor : Marked<2> {
    int type = 0;
    int format = 0;
    std::vector<int> dimensions;

    [[nodiscard]] std::size_t elements() const {
        return std::accumulate(dimensions.begin(), dimensions.end(), std::size_t{1}, std::multiplies<>());
    }
    [[nodiscard]] bool channels_last() const { return format == 1; }
};

struct ConvolutionDescriptor : Marked<3> {
    int math = 0;
};

struct ActivationDescriptor : Marked<4> {};
struct PoolingDescriptor : Marked<5> {};
struct DropoutDescriptor : Marked<6> {};
struct SpatialTransformerDescriptor : Marked<7> {};

struct CtcDescriptor : Marked<8> {
    int longest_label = 256;  // the longest that the older call takes
};

struct SequenceDescriptor : Marked<9> {  // cudnnRNNDataDescriptor_t
    int type = 0;
    int longest = 0;  // steps
    int batch = 0;
    int width = 0;
};

struct RecurrentDescriptor : Marked<10> {  // cudnnRNNDescriptor_t
    int cell = 0;
    int bias = 0;
    bool bidirectional = false;
    int type = 0;
    int input = 0;
    int hidden = 0;
    int projection = 0;  // width of the output
    int layers = 1;
};

template <typename Descriptor>
bool good(const Descriptor* descriptor) {
    return descriptor && descriptor->valid();
}

template <typename Descriptor>
Status create(Descriptor** made) {
    if (!made) return kNullPointer;
    *made = new (std::nothrow) Descriptor;
    return *made ? kSuccess : kOutOfHostMemory;
}

template <typename Descriptor>
Status destroy(Descriptor* descriptor) {
    if (!good(descriptor)) return kBadParameter;
    descriptor->mark = 0;
    delete descriptor;
    return kSuccess;
}

}  // namespace movie::phantom::cudnn

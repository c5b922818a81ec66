#include "phantom/libraries/cudnn/descriptors.h"

#include <algorithm>

#include "phantom/libraries/export.h"

using namespace movie::phantom::cudnn;

#define DESCRIPTOR(name, type)                                                             \
    PHANTOM_EXPORT int cudnnCreate##name##Descriptor(type** made) { return create(made); } \
    PHANTOM_EXPORT int cudnnDestroy##name##Descriptor(type* descriptor) { return destroy(descriptor); }
DESCRIPTOR(Tensor, TensorDescriptor)
DESCRIPTOR(Filter, FilterDescriptor)
DESCRIPTOR(Convolution, ConvolutionDescriptor)
DESCRIPTOR(Activation, ActivationDescriptor)
DESCRIPTOR(Pooling, PoolingDescriptor)
DESCRIPTOR(Dropout, DropoutDescriptor)
DESCRIPTOR(SpatialTransformer, SpatialTransformerDescriptor)
DESCRIPTOR(CTCLoss, CtcDescriptor)
DESCRIPTOR(RNNData, SequenceDescriptor)
DESCRIPTOR(RNN, RecurrentDescriptor)

namespace {

bool acceptable(int type, int count, const int* dimensions) {
    return size_of(type) && count > 0 && count <= kMostDimensions && dimensions &&
           std::all_of(dimensions, dimensions + count, [](int size) { return size > 0; });
}

}  // namespace

PHANTOM_EXPORT int cudnnSetTensorNdDescriptor(TensorDescriptor* tensor, int type, int count, const int* dimensions,
                                              const int* strides) {
    if (!good(tensor) || !acceptable(type, count, dimensions) || !strides) return kBadParameter;
    tensor->type = type;
    tensor->dimensions.assign(dimensions, dimensions + count);
    tensor->strides.assign(strides, strides + count);
    return kSuccess;
}

PHANTOM_EXPORT int cudnnGetTensorNdDescriptor(const TensorDescriptor* tensor, int room, int* type, int* count,
                                              int* dimensions, int* strides) {
    if (!good(tensor) || room < 0) return kBadParameter;
    const auto copied = std::min(tensor->dimensions.size(), static_cast<std::size_t>(room));
    if (type) *type = tensor->type;
    if (count) *count = static_cast<int>(tensor->dimensions.size());
    if (dimensions) std::copy_n(tensor->dimensions.begin(), copied, dimensions);
    if (strides) std::copy_n(tensor->strides.begin(), copied, strides);
    return kSuccess;
}

PHANTOM_EXPORT int cudnnSetFilterNdDescriptor(FilterDescriptor* filter, int type, int format, int count,
                                              const int* dimensions) {
    if (!good(filter) || !acceptable(type, count, dimensions)) return kBadParameter;
    filter->type = type;
    filter->format = format;
    filter->dimensions.assign(dimensions, dimensions + count);
    return kSuccess;
}

PHANTOM_EXPORT int cudnnGetFilterNdDescriptor(const FilterDescriptor* filter, int room, int* type, int* format,
                                              int* count, int* dimensions) {
    if (!good(filter) || room < 0) return kBadParameter;
    if (type) *type = filter->type;
    if (format) *format = filter->format;
    if (count) *count = static_cast<int>(filter->dimensions.size());
    const auto copied = std::min(filter->dimensions.size(), static_cast<std::size_t>(room));
    if (dimensions) std::copy_n(filter->dimensions.begin(), copied, dimensions);
    return kSuccess;
}

PHANTOM_EXPORT int cudnnSetConvolutionNdDescriptor(ConvolutionDescriptor* convolution, int count, const int* paddings,
                                                   const int* strides, const int* dilations, int, int) {
    if (!good(convolution) || count < 1 || !paddings || !strides || !dilations) return kBadParameter;
    return kSuccess;  // the shapes of the result come from its own descriptor
}
PHANTOM_EXPORT int cudnnSetConvolutionGroupCount(ConvolutionDescriptor* convolution, int groups) {
    return good(convolution) && groups >= 1 ? kSuccess : kBadParameter;
}
PHANTOM_EXPORT int cudnnSetConvolutionMathType(ConvolutionDescriptor* convolution, int math) {
    if (!good(convolution)) return kBadParameter;
    convolution->math = math;
    return kSuccess;
}

PHANTOM_EXPORT int cudnnSetActivationDescriptor(ActivationDescriptor* activation, int, int, double) {
    return good(activation) ? kSuccess : kBadParameter;
}
PHANTOM_EXPORT int cudnnSetPooling2dDescriptor(PoolingDescriptor* pooling, int, int, int, int, int, int, int, int) {
    return good(pooling) ? kSuccess : kBadParameter;
}
PHANTOM_EXPORT int cudnnSetSpatialTransformerNdDescriptor(SpatialTransformerDescriptor* transformer, int, int, int,
                                                          const int*) {
    return good(transformer) ? kSuccess : kBadParameter;
}

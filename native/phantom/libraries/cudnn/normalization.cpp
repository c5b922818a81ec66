// Batch normalization, pooling and spatial transformers: one launch each.
#include "phantom/libraries/cudnn/descriptors.h"
#include "phantom/libraries/export.h"

using namespace movie::phantom::cudnn;

namespace {

constexpr int kPersistent = 2;  // CUDNN_BATCHNORM_SPATIAL_PERSISTENT
constexpr int kPlain = 0;       // CUDNN_BATCHNORM_OPS_BN: no activation follows

// The kernels for channels last sum up over blocks of points: two numbers for each channel. An estimate.
Status tell_workspace(int mode, const TensorDescriptor* x, std::size_t* bytes) {
    if (!good(x) || !bytes || x->dimensions.size() < 2) return kBadParameter;
    const bool partial_sums = mode == kPersistent && x->channels_last();
    *bytes = partial_sums ? static_cast<std::size_t>(x->dimensions[1]) * 2 * sizeof(float) : 0;
    return kSuccess;
}

}  // namespace

// A fused activation keeps one bit for each element, which says whether it passed.
PHANTOM_EXPORT int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(const Handle*, int, int operations,
                                                                        const ActivationDescriptor*,
                                                                        const TensorDescriptor* x, std::size_t* bytes) {
    if (!good(x) || !bytes) return kBadParameter;
    *bytes = operations == kPlain ? 0 : (x->elements() + 7) / 8;
    return kSuccess;
}
PHANTOM_EXPORT int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    const Handle*, int mode, int, const TensorDescriptor* x, const TensorDescriptor*, const TensorDescriptor*,
    const TensorDescriptor*, const ActivationDescriptor*, std::size_t* bytes) {
    return tell_workspace(mode, x, bytes);
}
PHANTOM_EXPORT int cudnnGetBatchNormalizationBackwardExWorkspaceSize(const Handle*, int mode, int,
                                                                     const TensorDescriptor* x, const TensorDescriptor*,
                                                                     const TensorDescriptor*, const TensorDescriptor*,
                                                                     const TensorDescriptor*, const TensorDescriptor*,
                                                                     const ActivationDescriptor*, std::size_t* bytes) {
    return tell_workspace(mode, x, bytes);
}

#define OPERATION(name) \
    PHANTOM_EXPORT int cudnn##name(const Handle* handle) { return enqueue(handle); }
OPERATION(BatchNormalizationForwardTrainingEx)
OPERATION(BatchNormalizationForwardInference)
OPERATION(BatchNormalizationBackwardEx)
OPERATION(PoolingForward)
OPERATION(SpatialTfGridGeneratorForward)
OPERATION(SpatialTfGridGeneratorBackward)
OPERATION(SpatialTfSamplerForward)
OPERATION(SpatialTfSamplerBackward)

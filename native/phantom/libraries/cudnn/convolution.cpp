// Convolutions of the older interface: PyTorch takes it where the graph interface is switched off.
#include <algorithm>

#include "phantom/libraries/cudnn/descriptors.h"
#include "phantom/libraries/export.h"

using namespace movie::phantom::cudnn;

namespace {

// The algorithms' numbers: 1 is the one on tensor cores, 0 the one that needs no workspace, in each of the three
// directions.
constexpr int kFast = 1;
constexpr int kFrugal = 0;

struct Performance {  // cudnnConvolutionFwdAlgoPerf_t, and alike for the two others
    int algorithm = 0;
    int status = kSuccess;
    float milliseconds = 0;
    std::size_t bytes = 0;
    int determinism = 1;
    int math = 0;
    int reserved[3] = {};
};
static_assert(sizeof(Performance) == 48);

std::size_t copy_of(const TensorDescriptor& tensor) { return tensor.channels_last() ? 0 : tensor.bytes(); }

// As in the graph interface (backend/engines.cpp): copies with the channels last, and sums in single precision.
std::size_t workspace(const TensorDescriptor& one, const FilterDescriptor& filter, const TensorDescriptor& other,
                      int algorithm, bool sums) {
    if (algorithm == kFrugal) return 0;
    std::size_t bytes = copy_of(one) + copy_of(other);
    const auto filter_bytes = filter.elements() * size_of(filter.type);
    if (!filter.channels_last()) bytes += filter_bytes;
    if (sums && size_of(filter.type) < sizeof(float)) bytes += filter.elements() * sizeof(float);
    return bytes;
}

Status tell_workspace(const TensorDescriptor* one, const FilterDescriptor* filter, const TensorDescriptor* other,
                      int algorithm, bool sums, std::size_t* bytes) {
    if (!good(one) || !good(filter) || !good(other) || !bytes) return kBadParameter;
    *bytes = workspace(*one, *filter, *other, algorithm, sums);
    return kSuccess;
}

Status tell_algorithms(const TensorDescriptor* one, const FilterDescriptor* filter, const TensorDescriptor* other,
                       const ConvolutionDescriptor* convolution, bool sums, int room, int* count,
                       Performance* results) {
    if (!good(one) || !good(filter) || !good(other) || !good(convolution)) return kBadParameter;
    if (!count || !results || room < 1) return kBadParameter;
    *count = std::min(room, 2);
    for (int i = 0; i < *count; ++i) {
        const int algorithm = i == 0 ? kFast : kFrugal;
        results[i] = {.algorithm = algorithm,
                      .milliseconds = static_cast<float>(i + 1),
                      .bytes = workspace(*one, *filter, *other, algorithm, sums),
                      .math = convolution->math};
    }
    return kSuccess;
}

// A search tries what the workspace has room for: one launch each.
Status search(const Handle* handle, const TensorDescriptor* one, const FilterDescriptor* filter,
              const TensorDescriptor* other, const ConvolutionDescriptor* convolution, bool sums, int room, int* count,
              Performance* results, std::size_t bytes) {
    const auto status = tell_algorithms(one, filter, other, convolution, sums, room, count, results);
    if (status != kSuccess) return status;
    for (int i = 0; i < *count; ++i) {
        if (results[i].bytes > bytes) {
            results[i].status = kWorkspaceTooSmall;
        } else if (const auto launched = enqueue(handle); launched != kSuccess) {
            return launched;
        }
    }
    // The ones that could be tried come first.
    std::stable_partition(results, results + *count, [](const auto& result) { return result.status == kSuccess; });
    return kSuccess;
}

Status convolve(const Handle* handle, const TensorDescriptor* one, const FilterDescriptor* filter,
                const TensorDescriptor* other, const ConvolutionDescriptor* convolution, int algorithm, bool sums,
                std::size_t bytes) {
    if (!good(one) || !good(filter) || !good(other) || !good(convolution)) return kBadParameter;
    if (bytes < workspace(*one, *filter, *other, algorithm, sums)) return kWorkspaceTooSmall;
    return enqueue(handle);
}

using Tensor = const TensorDescriptor*;
using Filter = const FilterDescriptor*;
using Convolution = const ConvolutionDescriptor*;

}  // namespace

PHANTOM_EXPORT int cudnnGetConvolutionForwardWorkspaceSize(const Handle*, Tensor x, Filter w, Convolution, Tensor y,
                                                           int algorithm, std::size_t* bytes) {
    return tell_workspace(x, w, y, algorithm, false, bytes);
}
PHANTOM_EXPORT int cudnnGetConvolutionBackwardDataWorkspaceSize(const Handle*, Filter w, Tensor dy, Convolution,
                                                                Tensor dx, int algorithm, std::size_t* bytes) {
    return tell_workspace(dy, w, dx, algorithm, false, bytes);
}
PHANTOM_EXPORT int cudnnGetConvolutionBackwardFilterWorkspaceSize(const Handle*, Tensor x, Tensor dy, Convolution,
                                                                  Filter dw, int algorithm, std::size_t* bytes) {
    return tell_workspace(x, dw, dy, algorithm, true, bytes);
}

PHANTOM_EXPORT int cudnnGetConvolutionForwardAlgorithm_v7(const Handle*, Tensor x, Filter w, Convolution convolution,
                                                          Tensor y, int room, int* count, Performance* results) {
    return tell_algorithms(x, w, y, convolution, false, room, count, results);
}
PHANTOM_EXPORT int cudnnGetConvolutionBackwardDataAlgorithm_v7(const Handle*, Filter w, Tensor dy,
                                                               Convolution convolution, Tensor dx, int room, int* count,
                                                               Performance* results) {
    return tell_algorithms(dy, w, dx, convolution, false, room, count, results);
}
PHANTOM_EXPORT int cudnnGetConvolutionBackwardFilterAlgorithm_v7(const Handle*, Tensor x, Tensor dy,
                                                                 Convolution convolution, Filter dw, int room,
                                                                 int* count, Performance* results) {
    return tell_algorithms(x, dw, dy, convolution, true, room, count, results);
}

PHANTOM_EXPORT int cudnnFindConvolutionForwardAlgorithmEx(const Handle* handle, Tensor x, const void*, Filter w,
                                                          const void*, Convolution convolution, Tensor y, void*,
                                                          int room, int* count, Performance* results, void*,
                                                          std::size_t bytes) {
    return search(handle, x, w, y, convolution, false, room, count, results, bytes);
}
PHANTOM_EXPORT int cudnnFindConvolutionBackwardDataAlgorithmEx(const Handle* handle, Filter w, const void*, Tensor dy,
                                                               const void*, Convolution convolution, Tensor dx, void*,
                                                               int room, int* count, Performance* results, void*,
                                                               std::size_t bytes) {
    return search(handle, dy, w, dx, convolution, false, room, count, results, bytes);
}
PHANTOM_EXPORT int cudnnFindConvolutionBackwardFilterAlgorithmEx(const Handle* handle, Tensor x, const void*, Tensor dy,
                                                                 const void*, Convolution convolution, Filter dw, void*,
                                                                 int room, int* count, Performance* results, void*,
                                                                 std::size_t bytes) {
    return search(handle, x, dw, dy, convolution, true, room, count, results, bytes);
}

PHANTOM_EXPORT int cudnnConvolutionForward(const Handle* handle, const void*, Tensor x, const void*, Filter w,
                                           const void*, Convolution convolution, int algorithm, void*,
                                           std::size_t bytes, const void*, Tensor y, void*) {
    return convolve(handle, x, w, y, convolution, algorithm, false, bytes);
}
PHANTOM_EXPORT int cudnnConvolutionBackwardData(const Handle* handle, const void*, Filter w, const void*, Tensor dy,
                                                const void*, Convolution convolution, int algorithm, void*,
                                                std::size_t bytes, const void*, Tensor dx, void*) {
    return convolve(handle, dy, w, dx, convolution, algorithm, false, bytes);
}
PHANTOM_EXPORT int cudnnConvolutionBackwardFilter(const Handle* handle, const void*, Tensor x, const void*, Tensor dy,
                                                  const void*, Convolution convolution, int algorithm, void*,
                                                  std::size_t bytes, const void*, Filter dw, void*) {
    return convolve(handle, x, dw, dy, convolution, algorithm, true, bytes);
}
PHANTOM_EXPORT int cudnnConvolutionBiasActivationForward(const Handle* handle, const void*, Tensor x, const void*,
                                                         Filter w, const void*, Convolution convolution, int algorithm,
                                                         void*, std::size_t bytes, const void*, Tensor, const void*,
                                                         Tensor, const void*, const ActivationDescriptor*, Tensor y,
                                                         void*) {
    return convolve(handle, x, w, y, convolution, algorithm, false, bytes);
}

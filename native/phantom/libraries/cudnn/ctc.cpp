// The connectionist temporal classification loss.
#include <algorithm>

#include "phantom/libraries/cudnn/descriptors.h"
#include "phantom/libraries/export.h"

using namespace movie::phantom::cudnn;

namespace {

// Forward and backward variables, for each step and batch entry one number for each label and for the blanks around
// them. An estimate.
Status tell_workspace(const CtcDescriptor* loss, const TensorDescriptor* probabilities, int longest_label,
                      std::size_t* bytes) {
    if (!good(loss) || !good(probabilities) || !bytes || probabilities->dimensions.size() != 3) return kBadParameter;
    const auto states = static_cast<std::size_t>(2 * longest_label + 1);
    const auto steps = static_cast<std::size_t>(probabilities->dimensions[0]);
    const auto batch = static_cast<std::size_t>(probabilities->dimensions[1]);
    *bytes = 2 * steps * batch * states * sizeof(float);
    return kSuccess;
}

}  // namespace

PHANTOM_EXPORT int cudnnSetCTCLossDescriptorEx(CtcDescriptor* loss, int, int, int) {
    return good(loss) ? kSuccess : kBadParameter;
}
PHANTOM_EXPORT int cudnnSetCTCLossDescriptor_v8(CtcDescriptor* loss, int, int, int, int longest_label) {
    if (!good(loss)) return kBadParameter;
    loss->longest_label = longest_label;
    return kSuccess;
}
PHANTOM_EXPORT int cudnnSetCTCLossDescriptor_v9(CtcDescriptor* loss, int, int, int, int longest_label) {
    if (!good(loss)) return kBadParameter;
    loss->longest_label = longest_label;
    return kSuccess;
}

PHANTOM_EXPORT int cudnnGetCTCLossWorkspaceSize(const Handle*, const TensorDescriptor* probabilities,
                                                const TensorDescriptor*, const int*, const int* label_lengths,
                                                const int*, int, const CtcDescriptor* loss, std::size_t* bytes) {
    if (!good(probabilities) || probabilities->dimensions.size() != 3 || !label_lengths) return kBadParameter;
    const int* last = label_lengths + probabilities->dimensions[1];
    return tell_workspace(loss, probabilities, *std::max_element(label_lengths, last), bytes);
}
PHANTOM_EXPORT int cudnnGetCTCLossWorkspaceSize_v8(const Handle*, int, const CtcDescriptor* loss,
                                                   const TensorDescriptor* probabilities, const TensorDescriptor*,
                                                   std::size_t* bytes) {
    return tell_workspace(loss, probabilities, good(loss) ? loss->longest_label : 0, bytes);
}

PHANTOM_EXPORT int cudnnCTCLoss(const Handle* handle) { return enqueue(handle); }
PHANTOM_EXPORT int cudnnCTCLoss_v8(const Handle* handle) { return enqueue(handle); }

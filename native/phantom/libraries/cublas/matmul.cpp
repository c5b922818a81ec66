// cuBLASLt: a matmul is described by bags of attributes, tried against a heuristic, and launched on the stream it
// names.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <vector>

#include "phantom/device/wheel.h"
#include "phantom/libraries/cublas/handle.h"
#include "phantom/libraries/export.h"

using namespace movie::phantom::cublas;

namespace {

// What a caller may set on a description, a layout or a preference. None of it changes what the phantom does, but an
// unknown pointer must not pass for one of them.
struct Attributes {
    static constexpr unsigned kMark = 0x4c744174;
    unsigned mark = kMark;
    std::map<int, std::vector<std::byte>> values;
};

bool good(const Attributes* attributes) { return attributes && attributes->mark == Attributes::kMark; }

Status create(Attributes** attributes) {
    if (!attributes) return kInvalidValue;
    *attributes = new (std::nothrow) Attributes;
    return *attributes ? kSuccess : kAllocationFailed;
}

Status destroy(Attributes* attributes) {
    if (!good(attributes)) return kInvalidValue;
    attributes->mark = 0;
    delete attributes;
    return kSuccess;
}

Status set(Attributes* attributes, int name, const void* value, std::size_t bytes) {
    if (!good(attributes) || !value || !bytes) return kInvalidValue;
    const auto* first = static_cast<const std::byte*>(value);
    attributes->values[name].assign(first, first + bytes);
    return kSuccess;
}

Status get(const Attributes* attributes, int name, void* value, std::size_t bytes, std::size_t* written) {
    if (!good(attributes)) return kInvalidValue;
    const auto found = attributes->values.find(name);
    if (found == attributes->values.end() || (value && bytes < found->second.size())) return kInvalidValue;
    if (value) std::memcpy(value, found->second.data(), found->second.size());
    if (written) *written = found->second.size();
    return kSuccess;
}

// What callers copy about: 64 bytes, of which each 32-bit word holds the configuration attribute of its number.
struct Algorithm {
    std::array<std::uint32_t, 16> words{};
};
static_assert(sizeof(Algorithm) == 64);

struct Heuristic {
    Algorithm algorithm;
    std::size_t workspace = 0;
    int status = kSuccess;
    float waves = 1;
    std::array<int, 4> reserved{};
};
static_assert(sizeof(Heuristic) == 96);

constexpr std::size_t kVersionWithoutWheel = 130000;

}  // namespace

PHANTOM_EXPORT int cublasLtCreate(Handle** handle) {
    if (!handle) return kInvalidValue;
    *handle = new (std::nothrow) Handle;
    return *handle ? kSuccess : kAllocationFailed;
}
PHANTOM_EXPORT int cublasLtDestroy(Handle* handle) {
    if (!handle || !handle->valid()) return kNotInitialized;
    handle->mark = 0;
    delete handle;
    return kSuccess;
}
PHANTOM_EXPORT std::size_t cublasLtGetVersion() {
    auto* real = movie::phantom::of_wheel<std::size_t()>("libcublasLt.so", "cublasLtGetVersion");
    return real ? real() : kVersionWithoutWheel;
}

#define DESCRIPTION(name)                                                                                     \
    PHANTOM_EXPORT int cublasLt##name##Destroy(Attributes* attributes) { return destroy(attributes); }        \
    PHANTOM_EXPORT int cublasLt##name##SetAttribute(Attributes* attributes, int attribute, const void* value, \
                                                    std::size_t bytes) {                                      \
        return set(attributes, attribute, value, bytes);                                                      \
    }                                                                                                         \
    PHANTOM_EXPORT int cublasLt##name##GetAttribute(const Attributes* attributes, int attribute, void* value, \
                                                    std::size_t bytes, std::size_t* written) {                \
        return get(attributes, attribute, value, bytes, written);                                             \
    }
DESCRIPTION(MatmulDesc)
DESCRIPTION(MatrixLayout)
DESCRIPTION(MatmulPreference)

PHANTOM_EXPORT int cublasLtMatmulDescCreate(Attributes** attributes, int, int) { return create(attributes); }
PHANTOM_EXPORT int cublasLtMatrixLayoutCreate(Attributes** attributes, int, std::uint64_t, std::uint64_t,
                                              std::int64_t) {
    return create(attributes);
}
PHANTOM_EXPORT int cublasLtMatmulPreferenceCreate(Attributes** attributes) { return create(attributes); }

// One result, which needs no workspace: what the real heuristic most often says for the shapes of training, and the
// caller gives its own workspace, of its own size, to the matmul anyway.
PHANTOM_EXPORT int cublasLtMatmulAlgoGetHeuristic(Handle*, const Attributes* operation, const Attributes* a,
                                                  const Attributes* b, const Attributes* c, const Attributes* d,
                                                  const Attributes* preference, int wanted, Heuristic* results,
                                                  int* found) {
    if (!results || !found || wanted < 1) return kInvalidValue;
    const auto parts = {operation, a, b, c, d};
    if (!std::all_of(parts.begin(), parts.end(), good) || (preference && !good(preference))) return kInvalidValue;
    results[0] = {};
    *found = 1;
    return kSuccess;
}
PHANTOM_EXPORT int cublasLtMatmulAlgoCheck(Handle*, const Attributes*, const Attributes*, const Attributes*,
                                           const Attributes*, const Attributes*, const Algorithm* algorithm,
                                           Heuristic* result) {
    if (!algorithm || !result) return kInvalidValue;
    *result = {.algorithm = *algorithm};
    return kSuccess;
}
PHANTOM_EXPORT int cublasLtMatmulAlgoGetIds(Handle*, int, int, int, int, int, int, int wanted, int* ids, int* found) {
    if (!ids || !found || wanted < 1) return kInvalidValue;
    ids[0] = 0;
    *found = 1;
    return kSuccess;
}
PHANTOM_EXPORT int cublasLtMatmulAlgoInit(Handle*, int, int, int, int, int, int, int id, Algorithm* algorithm) {
    if (!algorithm) return kInvalidValue;
    *algorithm = {};
    algorithm->words[0] = static_cast<std::uint32_t>(id);
    return kSuccess;
}
PHANTOM_EXPORT int cublasLtMatmulAlgoConfigSetAttribute(Algorithm* algorithm, int attribute, const void* value,
                                                        std::size_t bytes) {
    if (!algorithm || !value || attribute < 0 || attribute > 15 || !bytes || bytes > 4) return kInvalidValue;
    std::memcpy(&algorithm->words[static_cast<std::size_t>(attribute)], value, bytes);
    return kSuccess;
}
PHANTOM_EXPORT int cublasLtMatmulAlgoConfigGetAttribute(const Algorithm* algorithm, int attribute, void* value,
                                                        std::size_t bytes, std::size_t* written) {
    if (!algorithm || attribute < 0 || attribute > 15) return kInvalidValue;
    const std::size_t size = attribute == 7 || attribute == 8 ? 2 : 4;  // the two shapes are 16 bits long
    if (written) *written = size;
    if (!value) return kSuccess;
    if (bytes < size) return kInvalidValue;
    std::memcpy(value, &algorithm->words[static_cast<std::size_t>(attribute)], size);
    return kSuccess;
}

PHANTOM_EXPORT int cublasLtMatmul(Handle*, const Attributes* operation, const void*, const void* a,
                                  const Attributes* a_layout, const void* b, const Attributes* b_layout, const void*,
                                  const void*, const Attributes* c_layout, void* d, const Attributes* d_layout,
                                  const Algorithm*, void*, std::size_t, void* stream) {
    const auto parts = {operation, a_layout, b_layout, c_layout, d_layout};
    if (!std::all_of(parts.begin(), parts.end(), good) || !a || !b || !d) return kInvalidValue;
    return movie::phantom::launch(stream) ? kSuccess : kExecutionFailed;
}

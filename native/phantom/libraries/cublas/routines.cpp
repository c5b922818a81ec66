// The matrix routines: each is one launch on its handle's stream, whatever its arguments. Only the handle, which always
// comes first, is read; the rest stays where the caller put it.
#include <complex>
#include <cstring>

#include "phantom/libraries/cublas/handle.h"
#include "phantom/libraries/export.h"

using movie::phantom::cublas::enqueue;
using movie::phantom::cublas::Handle;
using movie::phantom::cublas::PointerMode;
using movie::phantom::cublas::Status;

#define ROUTINE(name) \
    PHANTOM_EXPORT int cublas##name(Handle* handle) { return enqueue(handle); }
// For each type that a routine exists in: single, double, and their complex ones.
#define REAL(name) ROUTINE(S##name) ROUTINE(D##name)
#define COMPLEX(name) ROUTINE(C##name) ROUTINE(Z##name)
#define ALL(name) REAL(name) COMPLEX(name)

// Vectors
ALL(axpy_v2)
ALL(copy_v2)
ALL(scal_v2)
ALL(swap_v2)
ALL(rot_v2)
REAL(rotm_v2)
ROUTINE(Csscal_v2)
ROUTINE(Zdscal_v2)
ROUTINE(Csrot_v2)
ROUTINE(Zdrot_v2)

// A matrix and a vector
ALL(gemv_v2)
ALL(symv_v2)
ALL(trmv_v2)
ALL(trsv_v2)
ALL(syr_v2)
ALL(syr2_v2)
REAL(ger_v2)
COMPLEX(gerc_v2)
COMPLEX(geru_v2)
COMPLEX(hemv_v2)
COMPLEX(her_v2)
COMPLEX(her2_v2)

// Matrices
ALL(gemm_v2)
ALL(symm_v2)
ALL(syrk_v2)
ALL(syr2k_v2)
ALL(trmm_v2)
ALL(trsm_v2)
COMPLEX(hemm_v2)
COMPLEX(herk_v2)
COMPLEX(her2k_v2)
ROUTINE(SgemmEx)
ROUTINE(GemmEx)

// Many matrices at once
ALL(gemmBatched)
ALL(gemmStridedBatched)
ALL(trsmBatched)
ALL(getrfBatched)
ROUTINE(GemmBatchedEx)
ROUTINE(GemmStridedBatchedEx)
ROUTINE(GemmGroupedBatchedEx)

// Routines whose result is one number. In the host's pointer mode they end when it has been written: a zero, as
// everything that is read back from the card.
#define RESULT(name, type, ...)                                                                \
    PHANTOM_EXPORT int cublas##name(Handle* handle, __VA_ARGS__ __VA_OPT__(, ) type* result) { \
        return with_result(handle, result, sizeof(type));                                      \
    }
#define OF_ONE int, const void*, int
#define OF_TWO int, const void*, int, const void*, int

namespace {

Status with_result(const Handle* handle, void* result, std::size_t bytes) {
    if (const auto status = enqueue(handle); status != movie::phantom::cublas::kSuccess) return status;
    if (handle->pointers == PointerMode::device) return movie::phantom::cublas::kSuccess;
    if (!movie::phantom::wait_for(handle->stream)) return movie::phantom::cublas::kExecutionFailed;
    std::memset(result, 0, bytes);
    return movie::phantom::cublas::kSuccess;
}

std::size_t size_of(int type) {  // cudaDataType_t, those that dot products come in
    switch (type) {
        case 0:
            return 4;  // float
        case 1:
            return 8;  // double
        case 2:
            return 2;  // half
        case 4:
            return 8;  // complex of floats
        case 5:
            return 16;  // complex of doubles
        case 14:
            return 2;  // bfloat16
        default:
            return 0;
    }
}

}  // namespace

RESULT(Sdot_v2, float, OF_TWO)
RESULT(Ddot_v2, double, OF_TWO)
RESULT(Cdotc_v2, std::complex<float>, OF_TWO)
RESULT(Cdotu_v2, std::complex<float>, OF_TWO)
RESULT(Zdotc_v2, std::complex<double>, OF_TWO)
RESULT(Zdotu_v2, std::complex<double>, OF_TWO)
RESULT(Snrm2_v2, float, OF_ONE)
RESULT(Dnrm2_v2, double, OF_ONE)
RESULT(Scnrm2_v2, float, OF_ONE)
RESULT(Dznrm2_v2, double, OF_ONE)
RESULT(Sasum_v2, float, OF_ONE)
RESULT(Dasum_v2, double, OF_ONE)
RESULT(Scasum_v2, float, OF_ONE)
RESULT(Dzasum_v2, double, OF_ONE)
RESULT(Isamax_v2, int, OF_ONE)
RESULT(Idamax_v2, int, OF_ONE)
RESULT(Icamax_v2, int, OF_ONE)
RESULT(Izamax_v2, int, OF_ONE)
RESULT(Isamin_v2, int, OF_ONE)
RESULT(Idamin_v2, int, OF_ONE)
RESULT(Icamin_v2, int, OF_ONE)
RESULT(Izamin_v2, int, OF_ONE)

PHANTOM_EXPORT int cublasDotEx(Handle* handle, int, const void*, int, int, const void*, int, int, void* result,
                               int result_type, int) {
    const auto bytes = size_of(result_type);
    return bytes ? with_result(handle, result, bytes) : movie::phantom::cublas::kNotSupported;
}

// Factorisations and solvers over many matrices say on the host whether their arguments were good.
namespace {

Status with_verdict(const Handle* handle, int* info) {
    const auto status = enqueue(handle);
    if (status == movie::phantom::cublas::kSuccess && info) *info = 0;
    return status;
}

}  // namespace

#define GETRS(type)                                                                                                   \
    PHANTOM_EXPORT int cublas##type##getrsBatched(Handle* handle, int, int, int, const void*, int, const int*, void*, \
                                                  int, int* info, int) {                                              \
        return with_verdict(handle, info);                                                                            \
    }
#define GEQRF(type)                                                                                              \
    PHANTOM_EXPORT int cublas##type##geqrfBatched(Handle* handle, int, int, void*, int, void*, int* info, int) { \
        return with_verdict(handle, info);                                                                       \
    }
#define GELS(type)                                                                                           \
    PHANTOM_EXPORT int cublas##type##gelsBatched(Handle* handle, int, int, int, int, void*, int, void*, int, \
                                                 int* info, int*, int) {                                     \
        return with_verdict(handle, info);                                                                   \
    }
GETRS(S)
GETRS(D)
GETRS(C)
GETRS(Z)
GEQRF(S)
GEQRF(D)
GEQRF(C)
GEQRF(Z)
GELS(S)
GELS(D)
GELS(C)
GELS(Z)

// Copies between the host and the card: columns of a matrix, elements of a vector.
namespace {

Status columns(int rows, int columns, int element, const void* from, int from_lead, void* to, int to_lead,
               void* stream) {
    using namespace movie::phantom::cublas;
    if (rows < 0 || columns < 0 || element <= 0 || from_lead < rows || to_lead < rows) return kInvalidValue;
    if (rows == 0 || columns == 0) return kSuccess;
    const auto bytes = [&](int count) { return static_cast<std::size_t>(count) * static_cast<std::size_t>(element); };
    const bool done = movie::phantom::copy_rows(to, bytes(to_lead), from, bytes(from_lead), bytes(rows),
                                                static_cast<std::size_t>(columns), stream);
    return done ? kSuccess : kExecutionFailed;
}

// A vector with a stride is a matrix of one row.
Status elements(int count, int element, const void* from, int from_stride, void* to, int to_stride, void* stream) {
    if (from_stride == 1 && to_stride == 1) return columns(count, 1, element, from, count, to, count, stream);
    return columns(1, count, element, from, from_stride, to, to_stride, stream);
}

}  // namespace

PHANTOM_EXPORT int cublasSetMatrixAsync(int rows, int cols, int element, const void* from, int from_lead, void* to,
                                        int to_lead, void* stream) {
    return columns(rows, cols, element, from, from_lead, to, to_lead, stream);
}
PHANTOM_EXPORT int cublasGetMatrixAsync(int rows, int cols, int element, const void* from, int from_lead, void* to,
                                        int to_lead, void* stream) {
    return columns(rows, cols, element, from, from_lead, to, to_lead, stream);
}
PHANTOM_EXPORT int cublasSetVectorAsync(int count, int element, const void* from, int from_stride, void* to,
                                        int to_stride, void* stream) {
    return elements(count, element, from, from_stride, to, to_stride, stream);
}
PHANTOM_EXPORT int cublasGetVectorAsync(int count, int element, const void* from, int from_stride, void* to,
                                        int to_stride, void* stream) {
    return elements(count, element, from, from_stride, to, to_stride, stream);
}

#include "phantom/device/codes.h"

#include <array>

namespace movie::phantom {

namespace {

constexpr std::array kTexts{
    CodeText{kSuccess, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    CodeText{kInvalidValue, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    CodeText{kOutOfMemory, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    CodeText{kNotInitialized, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    CodeText{kInvalidConfiguration, "cudaErrorInvalidConfiguration", "CUDA_ERROR_UNKNOWN",
             "invalid configuration argument"},
    CodeText{kDevicesUnavailable, "cudaErrorDevicesUnavailable", "CUDA_ERROR_DEVICE_UNAVAILABLE",
             "CUDA-capable device(s) is/are busy or unavailable"},
    CodeText{kNoDevice, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    CodeText{kInvalidDevice, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    CodeText{kInvalidImage, "cudaErrorInvalidKernelImage", "CUDA_ERROR_INVALID_IMAGE",
             "device kernel image is invalid"},
    CodeText{kInvalidContext, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    CodeText{kNoKernelImage, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU",
             "no kernel image is available for execution on the device"},
    CodeText{kPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported", "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
             "peer access is not supported between these two devices"},
    CodeText{kInvalidHandle, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    CodeText{kIllegalState, "cudaErrorIllegalState", "CUDA_ERROR_ILLEGAL_STATE",
             "the operation cannot be performed in the present state"},
    CodeText{kNotFound, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    CodeText{kNotReady, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    CodeText{kIllegalAddress, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS",
             "an illegal memory access was encountered"},
    CodeText{kPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
             "peer access is already enabled"},
    CodeText{kPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
             "peer access has not been enabled"},
    CodeText{kContextIsDestroyed, "cudaErrorContextIsDestroyed", "CUDA_ERROR_CONTEXT_IS_DESTROYED",
             "context is destroyed"},
    CodeText{kHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
             "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the memory is already registered"},
    CodeText{kHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered", "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
             "the memory is not registered"},
    CodeText{kNotPermitted, "cudaErrorNotPermitted", "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    CodeText{kNotSupported, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    CodeText{kCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
             "operation not permitted when stream is capturing"},
    CodeText{kCaptureInvalidated, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
             "operation failed due to a previous error during capture"},
    CodeText{kCaptureMerge, "cudaErrorStreamCaptureMerge", "CUDA_ERROR_STREAM_CAPTURE_MERGE",
             "operation would result in a merge of separate capture sequences"},
    CodeText{kCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
             "capture was not ended in the same stream as it began"},
    CodeText{kCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
             "capturing stream has unjoined work"},
    CodeText{kCaptureIsolation, "cudaErrorStreamCaptureIsolation", "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
             "dependency created on uncaptured work in another stream"},
    CodeText{kCaptureImplicit, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
             "operation would make the legacy stream depend on a capturing blocking stream"},
    CodeText{kCapturedEvent, "cudaErrorCapturedEvent", "CUDA_ERROR_CAPTURED_EVENT",
             "operation not permitted on an event last recorded in a capturing stream"},
    CodeText{kCaptureWrongThread, "cudaErrorStreamCaptureWrongThread", "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
             "attempt to terminate a thread-local capture sequence from another thread"},
    CodeText{kUnknown, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"},
};

}  // namespace

const CodeText* text_of(int code) {
    for (const CodeText& entry : kTexts)
        if (entry.code == code) return &entry;
    return nullptr;
}

}  // namespace movie::phantom

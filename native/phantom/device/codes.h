// The status codes of CUDA that the phantom answers with. Runtime and driver share these numbers since CUDA 10.
#pragma once

namespace movie::phantom {

enum Code : int {
    kSuccess = 0,
    kInvalidValue = 1,
    kOutOfMemory = 2,
    kNotInitialized = 3,
    kInvalidConfiguration = 9,
    kDevicesUnavailable = 46,
    kNoDevice = 100,
    kInvalidDevice = 101,
    kInvalidImage = 200,
    kInvalidContext = 201,
    kNoKernelImage = 209,
    kPeerAccessUnsupported = 217,
    kInvalidHandle = 400,
    kIllegalState = 401,
    kNotFound = 500,
    kNotReady = 600,
    kIllegalAddress = 700,
    kPeerAccessAlreadyEnabled = 704,
    kPeerAccessNotEnabled = 705,
    kContextIsDestroyed = 709,
    kHostMemoryAlreadyRegistered = 712,
    kHostMemoryNotRegistered = 713,
    kNotPermitted = 800,
    kNotSupported = 801,
    kCaptureUnsupported = 900,
    kCaptureInvalidated = 901,
    kCaptureMerge = 902,
    kCaptureUnmatched = 903,
    kCaptureUnjoined = 904,
    kCaptureIsolation = 905,
    kCaptureImplicit = 906,
    kCapturedEvent = 907,
    kCaptureWrongThread = 908,
    kUnknown = 999,
};

struct CodeText {
    int code;
    const char* runtime;  // name in the runtime
    const char* driver;   // name in the driver
    const char* text;
};

// Null for a code that the phantom never answers with.
const CodeText* text_of(int code);

}  // namespace movie::phantom

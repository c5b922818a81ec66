#include "driver/cuda/context.h"

namespace movie::cuda {

PrimaryContext::PrimaryContext(int ordinal) {
    const Library& cuda = Library::get();
    if (const Result result = cuda.init(0); result != kSuccess)
        throw Unavailable("the CUDA driver cannot be initialised: " + cuda.describe(result));
    if (const Result result = cuda.device_get(&device_, ordinal); result != kSuccess)
        throw Unavailable("there is no CUDA device " + std::to_string(ordinal) + ": " + cuda.describe(result));
    if (const Result result = cuda.retain_primary_context(&context_, device_); result != kSuccess)
        throw Unavailable("the context of CUDA device " + std::to_string(ordinal) +
                          " cannot be had: " + cuda.describe(result));
}

Entered::Entered(const PrimaryContext& primary) {
    const Library& cuda = Library::get();
    Context current = nullptr;
    if (cuda.current_context(&current) != kSuccess || current == primary.context()) return;
    pushed_ = cuda.push_context(primary.context()) == kSuccess;
}

Entered::~Entered() {
    Context popped = nullptr;
    if (pushed_) (void)Library::get().pop_context(&popped);
}

}  // namespace movie::cuda

#include "phantom/libraries/card.h"

// The runtime's functions, as this library exports them: a library of NVIDIA's is a client of the runtime too.
struct Extent3 {
    unsigned x, y, z;
};
extern "C" {
int cudaLaunchKernel(const void* function, Extent3 grid, Extent3 block, void** arguments, std::size_t shared,
                     void* stream);
int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream);
int cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                      std::size_t rows, int kind, void* stream);
int cudaStreamSynchronize(void* stream);
int cudaGetDevice(int* device);
int cudaMalloc(void** address, std::size_t bytes);
int cudaFree(void* address);
}

namespace movie::phantom {

namespace {

constexpr int kWithinCard = 3;    // cudaMemcpyDeviceToDevice
constexpr int kFromPointers = 4;  // cudaMemcpyDefault
const char kLibraryKernel = 0;    // stands for any kernel of a library

}  // namespace

bool launch(Stream stream) { return cudaLaunchKernel(&kLibraryKernel, {1, 1, 1}, {1, 1, 1}, nullptr, 0, stream) == 0; }

bool copy_on_card(void* to, const void* from, std::size_t bytes, Stream stream) {
    return cudaMemcpyAsync(to, from, bytes, kWithinCard, stream) == 0;
}

bool copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
               std::size_t rows, Stream stream) {
    return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows, kFromPointers, stream) == 0;
}

bool wait_for(Stream stream) { return cudaStreamSynchronize(stream) == 0; }

int current_device() {
    int device = -1;
    return cudaGetDevice(&device) == 0 ? device : -1;
}

void* allocate(std::size_t bytes) {
    void* address = nullptr;
    return cudaMalloc(&address, bytes) == 0 ? address : nullptr;
}

bool release(void* address) { return cudaFree(address) == 0; }

}  // namespace movie::phantom

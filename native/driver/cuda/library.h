// libcuda, loaded when it is first wanted: MOVie builds and imports where there is none.
#pragma once

#include <stdexcept>
#include <string>

#include "driver/cuda/declarations.h"

namespace movie::cuda {

// The machine has no driver, or one that cannot do what MOVie needs. what() is one sentence that says what to do.
class Unavailable : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct Library {
    // Throws Unavailable, every time it is called, where the library or one of its functions is missing.
    static const Library& get();

    // "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
    [[nodiscard]] std::string describe(Result result) const;

    Result (*init)(unsigned);
    Result (*driver_version)(int*);
    Result (*error_name)(Result, const char**);
    Result (*error_text)(Result, const char**);
    Result (*device_count)(int*);
    Result (*device_get)(Device*, int);
    Result (*device_name)(char*, int, Device);
    Result (*device_attribute)(int*, int, Device);
    Result (*can_access_peer)(int*, Device, Device);
    Result (*retain_primary_context)(Context*, Device);
    Result (*current_context)(Context*);
    Result (*push_context)(Context);
    Result (*pop_context)(Context*);
    Result (*synchronize_context)();

    Result (*memory_info)(std::size_t*, std::size_t*);
    Result (*granularity)(std::size_t*, const AllocationProperties*, int);
    Result (*reserve)(DevicePointer*, std::size_t, std::size_t, DevicePointer, unsigned long long);
    Result (*free_address)(DevicePointer, std::size_t);
    Result (*create)(MemoryHandle*, std::size_t, const AllocationProperties*, unsigned long long);
    Result (*release)(MemoryHandle);
    Result (*map)(DevicePointer, std::size_t, std::size_t, MemoryHandle, unsigned long long);
    Result (*unmap)(DevicePointer, std::size_t);
    Result (*set_access)(DevicePointer, std::size_t, const AccessDescription*, std::size_t);
    Result (*malloc)(DevicePointer*, std::size_t);
    Result (*mfree)(DevicePointer);

    Result (*event_create)(DriverEvent*, unsigned);
    Result (*event_record)(DriverEvent, DriverStream);
    Result (*event_query)(DriverEvent);
    Result (*event_synchronize)(DriverEvent);
    Result (*event_destroy)(DriverEvent);
    Result (*stream_wait)(DriverStream, DriverEvent, unsigned);
    Result (*exchange_capture_mode)(int*);

  private:
    Library();
};

}  // namespace movie::cuda

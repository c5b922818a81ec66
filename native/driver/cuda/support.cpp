#include "driver/cuda/support.h"

#include <fstream>

namespace movie::cuda {

namespace {

bool under_wsl() {
    std::ifstream file("/proc/sys/kernel/osrelease");
    std::string release;
    std::getline(file, release);
    return release.find("microsoft") != std::string::npos || release.find("WSL") != std::string::npos;
}

std::string name_of(const Library& cuda, Device device) {
    char name[256] = {};
    if (cuda.device_name(name, sizeof name - 1, device) != kSuccess) return "?";
    return name;
}

}  // namespace

void require_virtual_memory(const Library& cuda, Device device, int ordinal) {
    int supported = 0;
    const Result result = cuda.device_attribute(&supported, kVirtualMemoryManagement, device);
    if (result == kSuccess && supported != 0) return;
    std::string text = "device " + std::to_string(ordinal) + " (" + name_of(cuda, device) +
                       ") has no virtual memory management, which MOVie needs";
    if (result != kSuccess) text += " [" + cuda.describe(result) + "]";
    if (under_wsl())
        text += "; under WSL only newer drivers offer it: update the driver of Windows";
    else
        text += "; a newer driver may offer it, slices of a card (MIG) and virtual cards often do not";
    throw Unavailable(text + ". With MOVIE_FALLBACK=native the program goes on with PyTorch's own allocator");
}

std::vector<DeviceFacts> inspect_devices() {
    const Library& cuda = Library::get();
    int count = 0;
    if (const Result result = cuda.init(0); result != kSuccess)
        throw Unavailable("the CUDA driver cannot be initialised: " + cuda.describe(result));
    if (const Result result = cuda.device_count(&count); result != kSuccess)
        throw Unavailable("the CUDA driver counts no devices: " + cuda.describe(result));
    std::vector<DeviceFacts> facts;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        Device device = 0;
        if (const Result result = cuda.device_get(&device, ordinal); result != kSuccess) {
            facts.push_back({.name = "?", .problem = cuda.describe(result)});
            continue;
        }
        facts.push_back({.name = name_of(cuda, device), .problem = {}});
        try {
            require_virtual_memory(cuda, device, ordinal);
        } catch (const Unavailable& unavailable) {
            facts.back().problem = unavailable.what();
        }
    }
    return facts;
}

}  // namespace movie::cuda

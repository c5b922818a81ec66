#include "phantom/device/version.h"

#include <cstring>

namespace movie::phantom {

void fill_uuid(char* out, int device) {
    std::memcpy(out, "MOVie phantom ", 14);
    out[14] = 0;
    out[15] = static_cast<char>(device);
}

}  // namespace movie::phantom

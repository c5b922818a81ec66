// Versions that the phantom claims, and what tells its cards apart.
#pragma once

namespace movie::phantom {

// Of the driver, as 13000: at least that of the runtime in use.
int driver_version();
// 16 bytes.
void fill_uuid(char* out, int device);

}  // namespace movie::phantom

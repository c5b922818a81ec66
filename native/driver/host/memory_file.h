// Physical memory of the host device: pieces of one anonymous file that only this process sees. Mapping a piece at
// several addresses gives real aliases.
#pragma once

#include "driver/address_ranges.h"

namespace movie {

class MemoryFile {
  public:
    // Throws std::system_error if the system has no anonymous files.
    MemoryFile();
    ~MemoryFile();
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    // The offset of a piece that nobody else has. Fails if the file cannot grow.
    Outcome<Bytes> take(Bytes size);
    // The piece's bytes return to the system. Pre: mapped nowhere.
    void give_back(Bytes offset, Bytes size);
    [[nodiscard]] int descriptor() const { return descriptor_; }

  private:
    int descriptor_ = -1;
    Bytes end_ = 0;
    AddressRanges free_;  // of the file
};

}  // namespace movie

#include "driver/host/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace movie {

MemoryFile::MemoryFile() : descriptor_(memfd_create("movie-host-device", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
}

MemoryFile::~MemoryFile() { close(descriptor_); }

Outcome<Bytes> MemoryFile::take(Bytes size) {
    if (const auto piece = free_.take(size, 1); piece.ok()) return piece;
    if (ftruncate(descriptor_, static_cast<off_t>(end_ + size)) != 0) return {Status::out_of_memory, 0};
    const Bytes offset = end_;
    end_ += size;
    return {Status::ok, offset};
}

void MemoryFile::give_back(Bytes offset, Bytes size) {
    // A system that cannot punch holes keeps the bytes until the piece is used again: nothing is wrong but its size.
    (void)fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(size));
    free_.give_back(offset, size);
}

}  // namespace movie

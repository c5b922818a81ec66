#include "phantom/device/backing.h"

#include <sys/mman.h>
#include <unistd.h>

#include <system_error>

namespace movie::phantom {

namespace {
void* pointer(Address address) { return reinterpret_cast<void*>(address); }
}  // namespace

Backing::Backing(bool bytes) : file_(bytes ? std::make_unique<MemoryFile>() : nullptr) {}

Status Backing::create(Handle handle, Bytes size, bool shareable) {
    if (shareable) {
        const int own = memfd_create("movie-phantom", MFD_CLOEXEC);
        if (own < 0) return Status::failed;
        if (ftruncate(own, static_cast<off_t>(size)) != 0) {
            close(own);
            return Status::out_of_memory;
        }
        pieces_.emplace(handle, Piece{.size = size, .own = own});
    } else if (file_) {
        const auto offset = file_->take(size);
        if (!offset.ok()) return offset.status;
        pieces_.emplace(handle, Piece{.offset = offset.value, .size = size});
    }
    return Status::ok;
}

void Backing::adopt(Handle handle, Bytes size, int descriptor) {
    pieces_.emplace(handle, Piece{.size = size, .own = descriptor});
}

void Backing::destroy(Handle handle) {
    const auto piece = pieces_.find(handle);
    if (piece == pieces_.end()) return;
    if (piece->second.own >= 0)
        close(piece->second.own);
    else
        file_->give_back(piece->second.offset, piece->second.size);
    pieces_.erase(piece);
}

int Backing::descriptor(Handle handle) const {
    const auto piece = pieces_.find(handle);
    return piece == pieces_.end() ? -1 : piece->second.own;
}

Status Backing::show(Handle handle, Address address) {
    if (!file_) return Status::ok;
    const Piece& piece = pieces_.at(handle);
    const int descriptor = piece.own >= 0 ? piece.own : file_->descriptor();
    void* got = mmap(pointer(address), piece.size, PROT_NONE, MAP_SHARED | MAP_FIXED, descriptor,
                     static_cast<off_t>(piece.offset));
    return got == MAP_FAILED ? Status::failed : Status::ok;
}

Status Backing::allow(Address address, Bytes size) {
    if (!file_) return Status::ok;
    return mprotect(pointer(address), size, PROT_READ | PROT_WRITE) == 0 ? Status::ok : Status::failed;
}

void Backing::hide(Address address, Bytes size) {
    if (!file_) return;
    if (mmap(pointer(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        throw std::system_error(errno, std::generic_category(), "the phantom cannot unmap device memory");
    madvise(pointer(address), size, MADV_DONTFORK);
}

}  // namespace movie::phantom

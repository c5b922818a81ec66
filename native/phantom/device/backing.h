// What lies behind device addresses: nothing, or in bytes mode real pages of this machine, so that two mappings of one
// handle are two views of the same bytes.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "driver/host/memory_file.h"
#include "driver/types.h"

namespace movie::phantom {

class Backing {
  public:
    explicit Backing(bool bytes);

    [[nodiscard]] bool bytes() const { return file_ != nullptr; }
    // Pages for `handle`. A `shareable` handle has a file of its own, in either mode, so that it can be exported.
    Status create(Handle handle, Bytes size, bool shareable);
    // The handle is another process's: `descriptor` is its file, and becomes ours.
    void adopt(Handle handle, Bytes size, int descriptor);
    void destroy(Handle handle);
    // The file of a shareable handle, -1 if it has none.
    [[nodiscard]] int descriptor(Handle handle) const;

    // The handle's bytes lie at the address, without access; access comes with allow().
    Status show(Handle handle, Address address);
    Status allow(Address address, Bytes size);
    // Nothing lies there any more.
    void hide(Address address, Bytes size);

  private:
    struct Piece {
        Bytes offset = 0, size = 0;
        int own = -1;  // a file of its own
    };
    std::unique_ptr<MemoryFile> file_;
    std::map<Handle, Piece> pieces_;
};

}  // namespace movie::phantom

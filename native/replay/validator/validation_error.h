// What the validator throws: an allocator broke one of the invariants that every allocator here must keep.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace movie {

// The invariants, by their numbers:
//  1 each physical byte belongs to at most one live block
//  2 a live block's range is mapped, in one allocation unit, to exactly its bytes
//  3 no range is unmapped while a block lives in it, or while work that used it may be unfinished
//  4 memory goes back only when nothing uses it, and a release gives memory back (no mapping is left behind)
//  5 bytes: the device, the validator and the allocator's statistics agree
//  6 an allocation that fails leaves blocks and memory as they were
//  8 pools are page-granular, and pages leave only pools that may give them
//  9 no query, wait or unmap while a stream captures
// 10 pinned memory keeps its mappings and its handles
// 11 a mapping is one whole handle, and has access before it is used
// 12 memory is used again only by work that is ordered behind all earlier uses
// 7 (no interpreter, no waiting in malloc and free) cannot be seen in driver calls, and is not checked here.
class ValidationError : public std::logic_error {
  public:
    ValidationError(int invariant, const std::string& text)
        : std::logic_error("invariant " + std::to_string(invariant) + ": " + text), invariant_(invariant) {}
    [[nodiscard]] int invariant() const { return invariant_; }

  private:
    int invariant_;
};

}  // namespace movie

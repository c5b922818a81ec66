// For which architectures a program's kernels were compiled: a card runs the newest of them that it can.
#pragma once

namespace movie::phantom::runtime {

// A program registers each image with kernels while it is loaded, thousands of them. Only its place is kept.
void remember_fat_binary(const void* wrapper);

// The architecture, 86 for 8.6, whose code a card of this one runs; the card's own where nothing is known. 0: none of
// what there is runs on it.
int architecture_for(int card);

}  // namespace movie::phantom::runtime

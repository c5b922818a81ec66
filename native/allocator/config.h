// What may be chosen about the MOVie allocator. The defaults are for everyone; the rest is for measuring.
#pragma once

#include "driver/types.h"
#include "placement/combine.h"

namespace movie {

enum class Policy : std::uint8_t {
    automatic,  // grow while the card has room: next to no driver work once warm
    lean,       // use every free page before growing: the least memory
};

struct MovieConfig {
    Policy policy = Policy::automatic;
    Bytes page = 2 * kMiB;   // size of the smallest physical page, a multiple of the granularity and of 2 MiB
    Bytes largest_page = 0;  // of those obtained while the card has room; 0: 16 x `page`, under policy lean `page`
    Bytes budget = 0;        // policy `automatic` grows freely up to this many bytes; 0: as far as the card goes
    Combiner combiner = Combiner::dynamic;
    bool recall = true;        // a request that repeats an earlier one goes where that went, if it is free
    bool lifetimes = true;     // policy lean: what stays is kept apart from what goes
    bool keep_views = true;    // a view outlives its block
    bool edit_views = true;    // pages of an idle view are replaced instead of making a new view
    bool extend_views = true;  // a view has addresses for more than it maps, so that a longer request can extend it
    bool cross_stream = true;  // memory of other streams is used, after waiting on the device
    bool partial_ends = true;  // the odd end of a request may lie in a page that is only partly free
    double most_mapped = 32;   // pages mapped in views, as a multiple of the pages there are: only addresses are spent
    std::size_t most_views = 4096;
    Bytes arena_span = 0;     // addresses reserved for an arena at a time; 0: as much as the card has memory
    std::size_t history = 0;  // events kept
};

}  // namespace movie

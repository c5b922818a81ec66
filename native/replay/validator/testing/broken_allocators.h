// The reference allocator with one rule broken at a time, so that tests can see the validator catch it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "replay/validator/testing/reference_allocator.h"

namespace movie::testing {

struct Flaw {
    std::string name;
    int invariant;  // the one that the validator must name
    std::string what;
};

const std::vector<Flaw>& flaws();

// Throws std::invalid_argument for an unknown flaw; "" is the reference allocator itself.
std::unique_ptr<ReferenceAllocator> make_broken(Driver& driver, const std::string& flaw);

}  // namespace movie::testing

// The engines that run a graph of operations, and the workspace that each needs.
#pragma once

#include <cstdint>
#include <vector>

#include "phantom/libraries/cudnn/backend/descriptor.h"

namespace movie::phantom::cudnn {

// Two engines run any graph: a fast one, and one that needs no workspace, for callers that have no room for the
// other's.
constexpr std::int64_t kFast = 0;
constexpr std::int64_t kFrugal = 1;
constexpr std::int64_t kEngines = 2;

// In the order in which the heuristic proposes them.
std::vector<std::int64_t> proposed(std::int64_t mode);
// In bytes. An estimate: what the real library takes is known to it alone.
std::int64_t workspace(const Descriptor& graph, std::int64_t engine);

}  // namespace movie::phantom::cudnn

// The core's side of the bridge.
#pragma once

#include "bridge/table.h"

namespace movie::torch_side {

const BridgeTable& bridge_table();

}  // namespace movie::torch_side

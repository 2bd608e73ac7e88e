//===- Ops.td - all ops of the dialect, a family a file --------------------===//

include "ir/ops/Async.td"
include "ir/ops/Bits.td"
include "ir/ops/Block.td"
include "ir/ops/Grid.td"
include "ir/ops/Index.td"
include "ir/ops/Kernel.td"
include "ir/ops/Memory.td"
include "ir/ops/Private.td"
include "ir/ops/Report.td"
include "ir/ops/Sleep.td"
include "ir/ops/Subgroup.td"
include "ir/ops/View.td"

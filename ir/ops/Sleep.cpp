//===- Sleep.cpp - checks of a pause -----------------------------------------------===//

#include "ir/Dialect.h"

using namespace mlir;

namespace qd {

LogicalResult SleepOp::verify() {
  if (bool(getDuration()) == bool(getStaticDuration()))
    return emitOpError() << "expected nanoseconds either as an operand or as a literal";
  if (getStaticDuration() && int32_t(*getStaticDuration()) < 0)
    return emitOpError() << "expected nanoseconds from 0 on, found " << int32_t(*getStaticDuration());
  return success();
}

} // namespace qd

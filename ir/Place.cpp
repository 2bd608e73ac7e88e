//===- Place.cpp - where in a file an op comes from ------------------------------------------===//

#include "ir/Place.h"

using namespace mlir;

namespace qd {

FileLineColRange findPlace(Location location) {
  FileLineColRange place;
  location->walk([&](Location part) {
    // Of a call's two places the walk meets the callee's first.
    place = dyn_cast<FileLineColRange>(part);
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  return place;
}

} // namespace qd

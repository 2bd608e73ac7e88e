//===- OptionLock.cpp - guards LLVM's process-wide options ----------------------===//

#include "codegen/OptionLock.h"

namespace qd {

static std::shared_mutex &getMutex() {
  static std::shared_mutex mutex;
  return mutex;
}

std::shared_lock<std::shared_mutex> lockOptionsForUse() { return std::shared_lock(getMutex()); }

std::unique_lock<std::shared_mutex> lockOptionsForReset() { return std::unique_lock(getMutex()); }

} // namespace qd

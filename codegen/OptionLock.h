//===- OptionLock.h - guards LLVM's process-wide options ------------------------===//
//
// Purpose: lld resets every command-line option of LLVM in the process (`cl::opt`) at each link, while passes and
// code generation read them. A link holds this lock alone; whatever runs LLVM's passes or emits code shares it.
// Nobody calls into another stage while holding it: it is not recursive.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_OPTIONLOCK_H
#define QD_CODEGEN_OPTIONLOCK_H

#include <mutex>
#include <shared_mutex>

namespace qd {

/// For optimisation and code emission.
[[nodiscard]] std::shared_lock<std::shared_mutex> lockOptionsForUse();

/// For a link by lld.
[[nodiscard]] std::unique_lock<std::shared_mutex> lockOptionsForReset();

} // namespace qd

#endif

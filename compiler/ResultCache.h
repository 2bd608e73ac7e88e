//===- ResultCache.h - results by what they depend on ------------------------------------------===//
//
// Purpose: gives a compile's result again without compiling: from memory, from a folder, or from the thread that is at
// it. Keys are digests of input, name, options, build, and what else of the machine an output depends on.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_RESULTCACHE_H
#define QD_COMPILER_RESULTCACHE_H

#include "codegen/HostProgram.h"
#include "compiler/Compiler.h"
#include "compiler/DiskCache.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include <memory>

namespace qd {

/// Calls `compile` where no cache that the options allow has its result. Failures are kept by none, but handed to
/// those threads that waited.
CompileResult lookUpOrCompile(std::string_view qir, std::string_view name, const CompileOptions &options,
                              llvm::function_ref<CompileResult()> compile);

/// The folder that the options and the environment ask for; null where they ask for none.
std::shared_ptr<DiskCache> getDiskCache(const CompileOptions &options);

/// The same for machine code that executors make; null too.
std::shared_ptr<CodeStore> getCodeStore(const CompileOptions &options);

} // namespace qd

#endif

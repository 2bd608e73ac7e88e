//===- Compilation.h - one parsed module and its targets ---------------------------------------===//
//
// Purpose: takes a module through pipeline and backend for one target after the other, and puts bundles together.
// Input: a verified module. Output: bytes and the list of variants in them; failures are in the session's diagnostics.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_COMPILATION_H
#define QD_COMPILER_COMPILATION_H

#include "compiler/Session.h"
#include "compiler/Stats.h"
#include "ir/Targets.h"

namespace qd {

class Compilation {
public:
  Compilation(Session &session, mlir::ModuleOp module, const CompileOptions &options)
      : session(session), module(module), options(options) {}

  /// One target's output of a kind that names code.
  mlir::FailureOr<std::string> emit(const Target &target, llvm::StringRef kind);
  /// A request of several targets is one for every subgroup size that the module can be compiled for.
  mlir::FailureOr<std::string> emitBundle(llvm::ArrayRef<llvm::SmallVector<Target>> requests);
  mlir::FailureOr<std::string> emitStats(llvm::ArrayRef<Target> targets, bool asJSON);

  /// What the output consists of.
  std::vector<Variant> takeVariants() { return std::move(variants); }

private:
  mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> expand(const Target &target);
  mlir::LogicalResult addVariant(const Target &target);
  mlir::LogicalResult addSizes(llvm::ArrayRef<Target> sizes);
  mlir::FailureOr<Variant> describe(mlir::ModuleOp expanded, const Target &target, llvm::StringRef kind,
                                    llvm::StringRef code);
  mlir::LogicalResult refuse(const Target &target, llvm::StringRef kind);
  mlir::FailureOr<std::vector<KernelStats>> count(mlir::ModuleOp expanded, const Target &target, llvm::StringRef code);
  mlir::FailureOr<std::string> emitLLVM(mlir::ModuleOp expanded, const Target &target, llvm::StringRef kind);
  mlir::FailureOr<std::string> emitVulkan(mlir::ModuleOp expanded, const Target &target, llvm::StringRef kind);
  mlir::FailureOr<std::string> emitCode(mlir::ModuleOp expanded, const Target &target, llvm::StringRef kind);

  Session &session;
  mlir::ModuleOp module;
  const CompileOptions &options;
  std::string bundle;
  std::vector<Variant> variants;
};

/// A whole compile, from the input's bytes to the result, in this process.
CompileResult compileInProcess(std::string_view qir, std::string_view name, const CompileOptions &options);

/// A module as canonical text.
std::string printModule(mlir::ModuleOp module);

} // namespace qd

#endif

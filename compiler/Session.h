//===- Session.h - one input being compiled ------------------------------------------------===//
//
// Purpose: owns the MLIR context, the parsed module and its diagnostics. Both the compiling and the
// running half of the interface start from it.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_SESSION_H
#define QD_COMPILER_SESSION_H

#include "compiler/Compiler.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <string>

namespace qd {

class Session {
public:
  Session();
  ~Session();

  /// Parses and verifies QIR text or bytecode; null on errors, which are then in `diagnostics`.
  mlir::ModuleOp parse(llvm::StringRef qir, llvm::StringRef name);

  mlir::MLIRContext &getContext() { return context; }
  /// What was diagnosed so far, as the command line prints it.
  std::string &getDiagnostics() { return diagnostics; }
  /// The same, one by one.
  std::vector<Message> &getMessages() { return messages; }
  /// Adds an error that has no place in the source.
  void error(const llvm::Twine &message);

private:
  class Handler;
  /// Adds an error at a byte of the input, which the parser has not seen.
  void error(llvm::StringRef file, size_t offset, llvm::StringRef qir, const llvm::Twine &message);
  bool checkText(llvm::StringRef qir, llvm::StringRef name);
  bool checkVersion(llvm::StringRef qir, llvm::StringRef name);
  bool refuseVersion(llvm::StringRef name, size_t offset, llvm::StringRef qir, const llvm::Twine &version);

  mlir::MLIRContext context;
  std::string diagnostics;
  std::vector<Message> messages;
  llvm::raw_string_ostream stream;
  llvm::SourceMgr sources;
  std::unique_ptr<Handler> handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace qd

#endif

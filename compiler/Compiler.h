//===- Compiler.h - the C++ interface of libqdcompiler --------------------------------===//
//
// Purpose: compiles QIR to artifacts. Free of LLVM's headers; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_COMPILER_H
#define QD_COMPILER_COMPILER_H

#include "compiler/qdc.h"

#include <string>
#include <string_view>
#include <vector>

namespace qd {

struct CompileOptions {
  /// "nvptx", "nvptx:sm_90", "amdgcn:gfx1100@64", "spirv@8", ...: backend, chip, subgroup size.
  std::vector<std::string> targets;
  /// One of `getEmitKinds()`, or "" for what suits: the target's own code, or a bundle for several targets.
  std::string emit;
  /// Lanes, for targets that do not name a size themselves; 0 for each chip's default.
  unsigned subgroupSize = 0;
  /// 0 to 3.
  unsigned optLevel = 2;
  /// Leaves the QIR out of a bundle.
  bool stripQir = false;
  /// What to do about collective ops in divergent control flow: "error", "warn" or "allow".
  std::string divergent = "error";
  /// Block sizes of resizable kernels, "NAME=128,NAME=32x8"; "" for those that the kernels name.
  std::string blocks;
  /// Passes that report their choices, as in `-Rpass=expand`; "" for none.
  std::string remarks;
};

struct CompileResult {
  bool ok = false;
  /// The artifact's bytes.
  std::string data;
  /// Errors, warnings and remarks, each with its place in the source; "" when there are none.
  std::string diagnostics;
};

/// Compiles QIR text or bytecode. `name` stands for the input in diagnostics.
QDC_API CompileResult compile(std::string_view qir, std::string_view name, const CompileOptions &options);

/// What `CompileOptions::emit` may be, each with a line of explanation.
struct EmitKind {
  const char *name, *summary;
};
QDC_API const std::vector<EmitKind> &getEmitKinds();

/// The table of targets, chips and their subgroup sizes as text.
QDC_API std::string describeTargets();

/// "qdc 0.1.0 (LLVM 22.1.8)".
QDC_API std::string getVersionText();

} // namespace qd

#endif

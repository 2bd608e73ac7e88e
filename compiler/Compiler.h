//===- Compiler.h - the C++ interface of libqdcompiler --------------------------------===//
//
// Purpose: compiles QIR to artifacts. Free of LLVM's headers.
// Every function may be called by many threads at once. Results are values that belong to the caller. Nothing throws or
// ends the process. A program is built against the library's own release; `qdc.h` is the interface that stays.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_COMPILER_H
#define QD_COMPILER_COMPILER_H

#include "compiler/qdc.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qd {

/// Where results are looked up before anything is compiled, and kept.
enum class CachePolicy {
  Environment = 0, ///< Disk if QDC_CACHE_DIR names a folder, else Off
  Off = 1,
  Memory = 2, ///< in the process, 64 MiB
  Disk = 3,   ///< in the process, and in a folder for all processes
};

struct CompileOptions {
  /// "nvptx", "nvptx:sm_90", "amdgcn:gfx1100@64", "spirv@8", ...: backend, chip, subgroup size.
  std::vector<std::string> targets;
  /// One of `getEmitKinds()`, or "" for what suits: the target's own code, or a bundle for several targets.
  std::string emit;
  /// Lanes, for targets that do not name a size themselves; 0 for each chip's default.
  unsigned subgroupSize = 0;
  /// 0 to 3.
  unsigned optLevel = 2;
  /// Adds where in the source each instruction comes from, for debuggers and profilers: DWARF, or lines in PTX and
  /// SPIR-V. The code stays the same.
  bool debug = false;
  /// Leaves the QIR out of a bundle.
  bool stripQir = false;
  /// What to do about collective ops in divergent control flow: "error", "warn" or "allow".
  std::string divergent = "error";
  /// Block sizes of resizable kernels, "NAME=128,NAME=32x8"; "" for those that the kernels name.
  std::string blocks;
  /// Scalar arguments that are constants, "n=1024,KERNEL.scale=0.5": a name alone is of every kernel that has it. Bound
  /// arguments leave the interface; a launch does not pass them.
  std::string bind;
  /// Passes that report their choices, as in `-Rpass=expand`; "" for none.
  std::string remarks;
  /// Counts each variant's instructions, for `Variant::statistics`. Takes about as long again as the compile where the
  /// counts are not read off the code itself (amdgcn, and registers by ptxas).
  bool statistics = false;

  /// QDC_CACHE=off overrides it.
  CachePolicy cache = CachePolicy::Environment;
  /// The folder of `CachePolicy::Disk`; "" for the one that QDC_CACHE_DIR names, else qdc in $XDG_CACHE_HOME or
  /// ~/.cache.
  std::string cacheFolder;
  /// Bytes that the folder's files may take; 0 for QDC_CACHE_SIZE (bytes, or with K, M or G behind them), else 1 GiB.
  uint64_t cacheBytes = 0;

  /// Compiles in a child process (the program qdc): what would end this one becomes an error.
  bool isolate = false;
  /// Wall-clock milliseconds and MiB of address space, beside what the child has, that a compile may take; 0 for no
  /// limit. A limit implies `isolate`.
  unsigned timeLimit = 0, memoryLimit = 0;
};

enum class Severity { Error = 1, Warning = 2, Remark = 3, Note = 4 };

/// One diagnostic.
struct Message {
  Severity severity = Severity::Error;
  /// The input's name, or what a location in the input says; "" for what has no place in a source.
  std::string file;
  /// From 1; 0 where there is no place.
  unsigned line = 0, column = 0;
  /// One sentence, lower case, without a period.
  std::string text;
  /// The source's line, without its end; "" where it is not at hand.
  std::string excerpt;
  /// Other places that the message is about; they have none themselves.
  std::vector<Message> notes;
};

/// One target's code within a result.
struct Variant {
  /// As `-target=` names it in full: "nvptx:sm_90@32".
  std::string target;
  /// What the code is: "ptx", "hsaco", "spirv", ... as in `CompileOptions::emit`.
  std::string kind;
  /// Where the code is in `CompileResult::data`, in bytes.
  size_t offset = 0, size = 0;
  /// The kernels' arguments, block sizes and features: the JSON that a bundle carries.
  std::string interface;
  /// What `--emit=stats-json` prints for the target; "" unless asked for, and for targets that are not counted.
  std::string statistics;
};

struct CompileResult {
  bool ok = false;
  /// The artifact's bytes; "" where the compile failed.
  std::string data;
  /// Errors, warnings and remarks as the command line prints them, each with its place in the source; "" when there
  /// are none.
  std::string diagnostics;
  /// The same one by one, in the order in which they were found.
  std::vector<Message> messages;
  /// What `data` consists of, in the order of the targets: one for a target's own output, several for a bundle, none
  /// for "qir", "bytecode", "stats" and "stats-json".
  std::vector<Variant> variants;
  /// Whether this came out of a cache, or of another thread's compile.
  bool isCached = false;

  std::string_view getCode(const Variant &variant) const {
    return std::string_view(data).substr(variant.offset, variant.size);
  }
};

/// Compiles QIR text, or bytecode that `emit` "bytecode" gave. `name` stands for the input in diagnostics.
QDC_API CompileResult compile(std::string_view qir, std::string_view name, const CompileOptions &options);

/// What `qdc --cache-stats` prints: the folder of the options, its entries and bytes, and how often it was of use.
QDC_API std::string describeCache(const CompileOptions &options);

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

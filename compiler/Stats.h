//===- Stats.h - what a kernel costs, counted on the emitted code ------------------------------===//
//
// Purpose: counts instructions, moves between lanes, barriers and memory of each kernel in PTX text, AMDGCN
// assembly text and SPIR-V words.
// Input: what this compiler emits, not any text of that language. Output: one KernelStats a kernel, in order.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_STATS_H
#define QD_COMPILER_STATS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace qd {

struct KernelStats {
  std::string kernel, target;
  uint64_t instructions = 0;
  uint64_t shuffles = 0;    ///< a value moves between lanes: shfl, ds_bpermute, DPP, readlane, OpGroupNonUniformShuffle
  uint64_t votes = 0;       ///< lanes answer together: vote, match, redux; votes and arithmetic of SPIR-V's groups
  uint64_t barriers = 0;    ///< of the block
  uint64_t sharedBytes = 0;
  std::optional<uint64_t> registers = std::nullopt; ///< of a lane; PTX: by ptxas, where it is found
  std::optional<uint64_t> scalarRegisters = std::nullopt; ///< AMDGCN: of a wave
  std::optional<uint64_t> privateBytes = std::nullopt; ///< memory of a thread: private arrays and spilled registers
};

std::vector<KernelStats> countPTX(llvm::StringRef ptx);
std::vector<KernelStats> countAMDGCN(llvm::StringRef assembly);
std::vector<KernelStats> countSPIRV(llvm::StringRef words);

/// Adds registers and private memory from what `ptxas -v` printed.
void readPtxasLog(llvm::StringRef log, std::vector<KernelStats> &stats);

/// A table, and the same as JSON.
std::string printStats(llvm::ArrayRef<KernelStats> stats);
std::string printStatsJSON(llvm::ArrayRef<KernelStats> stats);

} // namespace qd

#endif

//===- Ptxas.h - NVIDIA's assembler as a child process -------------------------------------------===//

#ifndef QD_COMPILER_PTXAS_H
#define QD_COMPILER_PTXAS_H

#include "ir/Targets.h"

#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace qd {

/// The ptxas to use: the file that QDC_PTXAS names, else the first on PATH, in $CUDA_HOME/bin, $CUDA_PATH/bin or
/// /usr/local/cuda/bin.
std::optional<std::string> findPtxas();

struct Assembled {
  std::string cubin;
  std::string log; ///< of `-v`: registers, stack, spills
};

/// Assembles PTX text for the target's chip. The error holds what ptxas said.
llvm::Expected<Assembled> assemblePTX(llvm::StringRef ptx, const Target &target, unsigned optLevel, bool debug);

} // namespace qd

#endif

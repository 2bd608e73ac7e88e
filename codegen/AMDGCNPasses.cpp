//===- AMDGCNPasses.cpp - our passes over AMDGCN machine code, in order ---------------------------===//

#include "codegen/AMDGCNPasses.h"

#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/PassRegistry.h"

using namespace llvm;

namespace qd {

namespace {
struct Row {
  StringLiteral behind; ///< LLVM's pass, by its argument
  char *id;
};
} // namespace

static ArrayRef<Row> getRows() {
  static const Row rows[] = {
      // Loads stay in front of fences and barriers while machine-sink runs.
      {"localstackalloc", &registerMarkFences()},
      {"machine-sink", &registerUnmarkFences()},
      // What is made of many ballots stays beside them.
      {"localstackalloc", &registerHoldBallots()},
      {"machine-sink", &registerPartBallots()},
      // In front of LLVM's gcn-dpp-combine, which takes the lower word alone.
      {"si-fold-operands", &registerFuseSums()},
      {"si-fold-operands", &registerKeepLoopValues()},
      {"gcn-dpp-combine", &registerFuseMoves()},
      {"gcn-dpp-combine", &registerFuseExchange()},
      {"gcn-dpp-combine", &registerShortenMasks()},
      {"gcn-dpp-combine", &registerFillSteps()},
      {"gcn-dpp-combine", &registerChooseByMedian()},
      {"si-shrink-instructions", &registerLegalizeMoves()},
      {"si-shrink-instructions", &registerMakePairs()},
      {"si-shrink-instructions", &registerMoveMasks()},
      // In front of si-insert-waitcnts, which drops the wait that LLVM proposes.
      {"si-memory-legalizer", &registerWaitForWritebacks()},
      {"amdgpu-insert-delay-alu", &registerMoveHints()},
  };
  return rows;
}

void addAMDGCNMachinePasses(TargetPassConfig &config) {
  // What they follow does not run otherwise, or nothing follows it.
  if (config.getOptLevel() == CodeGenOptLevel::None)
    return;
  for (const Row &row : getRows())
    if (const PassInfo *info = PassRegistry::getPassRegistry()->getPassInfo(row.behind))
      config.insertPass(info->getTypeInfo(), row.id);
}

} // namespace qd

//===- Approximations.cpp - functions of f32 as the processors approximate them -------------===//
//
// Input: ops with the flag afn; passes/ExpandMath has expanded the others. NVPTX has each as an instruction, and LLVM
// would take its functions' names for those of a library there. AMDGCN's units differ, which LLVM knows.
//
//===----------------------------------------------------------------------===//

#include "codegen/lower/GPUEmitter.h"

#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace mlir;
namespace Intrinsic = llvm::Intrinsic;

namespace qd {

/// An intrinsic that is of one type alone.
template <Intrinsic::ID id> static void lowerPlain(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), e.b.CreateIntrinsic(id, {e.get(op->getOperand(0))}));
}

/// An intrinsic of any float type, which may be approximated.
template <Intrinsic::ID id> static void lowerOverloaded(GPUEmitter &e, Operation *op) {
  llvm::Value *operand = e.get(op->getOperand(0));
  llvm::FastMathFlags flags;
  flags.setApproxFunc();
  e.set(op->getResult(0), e.b.CreateIntrinsic(id, {operand->getType()}, {operand}, flags));
}

llvm::ArrayRef<LoweringRow> getApproximationLowerings() {
  static constexpr LoweringRow rows[] = {
      // op, nvptx, amdgcn
      {"math.exp2", lowerOverloaded<Intrinsic::nvvm_ex2_approx>, lowerOverloaded<Intrinsic::exp2>},
      {"math.log2", lowerPlain<Intrinsic::nvvm_lg2_approx_f>, lowerOverloaded<Intrinsic::log2>},
      {"math.sin", lowerPlain<Intrinsic::nvvm_sin_approx_f>, lowerOverloaded<Intrinsic::sin>},
      {"math.cos", lowerPlain<Intrinsic::nvvm_cos_approx_f>, lowerOverloaded<Intrinsic::cos>},
      {"math.rsqrt", lowerPlain<Intrinsic::nvvm_rsqrt_approx_f>, lowerOverloaded<Intrinsic::amdgcn_rsq>},
  };
  return rows;
}

} // namespace qd

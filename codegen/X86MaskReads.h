//===- X86MaskReads.h - mask registers that are read more than once -------------------------------------===//
//
// Purpose: keeps LLVM 22 from dropping AVX-512 masks that are still needed.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_X86MASKREADS_H
#define QD_CODEGEN_X86MASKREADS_H

namespace llvm {
class TargetPassConfig;
}

namespace qd {

/// Adds the pass to code generation for x86, before LLVM's last passes.
void addX86MachinePasses(llvm::TargetPassConfig &config);

} // namespace qd

#endif

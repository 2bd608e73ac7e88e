//===- NVPTXAtomics.h - atomic accesses as PTX ------------------------------------------===//
//
// Purpose: writes atomic accesses as the PTX instructions that they are. LLVM 22 selects most of them without their
// order and scope (`atom.global.add.u32` for an access that acquires and releases in its block), and never `red`.
// Input: optimised LLVM IR of one lane, with LLVM's atomics. Output: the same, with inline PTX for all
// read-modify-write accesses and for compare-and-swap of 16 bits; LLVM gets loads, stores and the other swaps right.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_NVPTXATOMICS_H
#define QD_CODEGEN_NVPTXATOMICS_H

namespace llvm {
class Module;
}

namespace qd {

void writeAtomicsAsPTX(llvm::Module &module);

} // namespace qd

#endif

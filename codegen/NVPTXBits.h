//===- NVPTXBits.h - bits of words by predicates ------------------------------------------===//
//
// Purpose: a bit all over a word, where a comparison of the bit is there anyway, is a select by that:
//
//   (x << 31 - n) >> 31   ->   x & (1 << n) == 0 ? 0 : -1
//
// which is one instruction instead of two. Digits are matched with one for each ballot. Inline PTX, because LLVM would
// merge the select with what it goes into, and ptxas then keeps predicates too long to get seven of them from a word at
// once.
//
// Input: optimised LLVM IR of one lane. Output: the same with such selects.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_NVPTXBITS_H
#define QD_CODEGEN_NVPTXBITS_H

namespace llvm {
class Module;
}

namespace qd {

void writeBitsAsPTX(llvm::Module &module);

} // namespace qd

#endif

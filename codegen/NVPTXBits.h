//===- NVPTXBits.h - bits of words by predicates ------------------------------------------===//
//
// Purpose: a word that is negated where a bit is set, and a comparison of the bit is there anyway, is negated by that:
//
//   w ^ ((x << 31 - n) >> 31)   ->   x & (1 << n) == 0 ? w : w * ones + ones
//
// Digits are matched with one for each ballot. Logic and ballots have the same units, which are what ranks of several
// keys wait for; products have others. That is why `ones` is a ballot, in which ptxas sees no -1, and why three such
// words are joined by one instruction. Inline PTX, because LLVM would make a select of it.
//
// Input: optimised LLVM IR of one lane. Output: the same with such products.
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

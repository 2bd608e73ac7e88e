//===- Assembler.h - machine code out of text and objects -------------------------===//

#ifndef QD_TEST_UNIT_AMDGCN_ASSEMBLER_H
#define QD_TEST_UNIT_AMDGCN_ASSEMBLER_H

#include "ir/Targets.h"

#include <string>

namespace qd::test {

/// The section .text of an ELF file.
std::string getText(llvm::StringRef elf);

/// Whether two texts are the same but for the upper halves of 16-bit literals, which the chip ignores.
bool isSameCode(llvm::StringRef a, llvm::StringRef b);

/// Assembles `assembly` for the target with LLVM's assembler; the object's bytes, or "error: " and the messages.
std::string assemble(llvm::StringRef assembly, const Target &target);

} // namespace qd::test

#endif

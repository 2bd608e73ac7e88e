//===- Assembler.h - machine code out of text and objects -------------------------===//

#ifndef QD_TEST_UNIT_AMDGCN_ASSEMBLER_H
#define QD_TEST_UNIT_AMDGCN_ASSEMBLER_H

#include "ir/Targets.h"

#include <string>

namespace qd::test {

/// The section .text of an ELF file.
std::string getText(llvm::StringRef elf);

/// Assembles `assembly` for the target with LLVM's assembler; the object's bytes, or "error: " and the messages.
std::string assemble(llvm::StringRef assembly, const Target &target);

} // namespace qd::test

#endif

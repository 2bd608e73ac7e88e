//===- Bytecode.cpp - a header in front of MLIR's bytecode -----------------------------------------===//

#include "compiler/Bytecode.h"

#include "ir/Version.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace qd {

/// What a file begins with; then follow, as 64 bits each, little-endian, the length of MLIR's bytecode and its XXH64.
static constexpr StringLiteral magic = "\x7FQIRBC\r\n";
static constexpr StringLiteral mlirMagic = "ML\xEFR";
static constexpr size_t headerSize = magic.size() + 16;

/// Keeps of each file location the file's name, so that bytes do not depend on where the input lies.
static void dropPaths(ModuleOp module) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](FileLineColRange range) -> std::optional<Attribute> {
    StringRef name = llvm::sys::path::filename(range.getFilename().getValue());
    return FileLineColRange::get(StringAttr::get(range.getContext(), name), range.getStartLine(),
                                 range.getStartColumn(), range.getEndLine(), range.getEndColumn());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/false, /*replaceLocs=*/true);
}

std::string writeBytecode(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  dropPaths(*copy);
  (*copy)->setAttr(versionAttribute, IntegerAttr::get(IntegerType::get(copy->getContext(), 32), qirVersion));
  std::string bytes = magic.str();
  bytes.resize(headerSize);
  llvm::raw_string_ostream stream(bytes);
  // Writing bytecode of the current version cannot fail.
  (void)writeBytecodeToFile(*copy, stream);
  StringRef written = StringRef(bytes).drop_front(headerSize);
  llvm::support::endian::write64le(bytes.data() + magic.size(), written.size());
  llvm::support::endian::write64le(bytes.data() + magic.size() + 8, llvm::xxHash64(written));
  return bytes;
}

bool beginsAsBytecode(StringRef bytes) {
  return bytes.starts_with(mlirMagic) || (!bytes.empty() && magic.starts_with(bytes.take_front(magic.size())));
}

llvm::Expected<StringRef> openBytecode(StringRef bytes) {
  auto fail = [](const llvm::Twine &message) { return llvm::createStringError(message); };
  if (bytes.starts_with(mlirMagic))
    return fail("this is bytecode without a checksum, as MLIR's tools write it; qdc takes QIR as text, or bytecode "
                "that it made itself by --emit=bytecode");
  if (bytes.size() < headerSize)
    return fail("these " + llvm::Twine(bytes.size()) + " bytes are the beginning of bytecode");
  uint64_t size = llvm::support::endian::read64le(bytes.data() + magic.size());
  uint64_t checksum = llvm::support::endian::read64le(bytes.data() + magic.size() + 8);
  StringRef written = bytes.drop_front(headerSize);
  if (written.size() != size)
    return fail("this bytecode is damaged: it announces " + llvm::Twine(size) + " bytes, " +
                llvm::Twine(written.size()) + " are present");
  if (uint64_t found = llvm::xxHash64(written); found != checksum)
    return fail("this bytecode is damaged: its bytes have checksum " + llvm::Twine::utohexstr(found) + ", expected " +
                llvm::Twine::utohexstr(checksum));
  return written;
}

} // namespace qd

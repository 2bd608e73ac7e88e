//===- Bundle.cpp - OffloadBinary entries ---------------------------------------------------------===//

#include "compiler/Bundle.h"

#include "compiler/Bytecode.h"

#include "llvm/Object/OffloadBinary.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using llvm::object::OffloadBinary;

namespace qd {

namespace {
struct KindRow {
  llvm::object::ImageKind image;
  llvm::object::OffloadKind producer;
  const char *triple;
};
} // namespace

static const KindRow &getRow(CodeKind kind) {
  using namespace llvm::object;
  static constexpr KindRow rows[] = {
      {IMG_PTX, OFK_Cuda, "nvptx64-nvidia-cuda"},
      {IMG_Cubin, OFK_Cuda, "nvptx64-nvidia-cuda"},
      {IMG_Object, OFK_HIP, "amdgcn-amd-amdhsa"},
      {IMG_SPIRV, OFK_None, "spirv64-vulkan"},
  };
  return rows[unsigned(kind)];
}

/// XXH64 of the XXH64 of what stands before `digits`, inside `blob`, and that of what stands behind them.
static uint64_t getChecksum(StringRef blob, StringRef digits) {
  const uint64_t parts[] = {llvm::xxHash64(StringRef(blob.begin(), digits.begin() - blob.begin())),
                            llvm::xxHash64(StringRef(digits.end(), blob.end() - digits.end()))};
  uint8_t bytes[sizeof parts];
  for (auto [i, part] : llvm::enumerate(parts))
    llvm::support::endian::write64le(bytes + 8 * i, part);
  return llvm::xxHash64(ArrayRef(bytes));
}

static std::string write(llvm::object::ImageKind image, llvm::object::OffloadKind producer,
                         ArrayRef<std::pair<StringRef, StringRef>> strings, StringRef bytes) {
  // The container's strings share their ends: no other one ends as the place of the digits does.
  constexpr StringRef checksumKey = "qdb.checksum", noDigits = "????????????????";
  OffloadBinary::OffloadingImage entry;
  entry.TheImageKind = image;
  entry.TheOffloadKind = producer;
  entry.StringData["qdb.version"] = bundleVersion;
  entry.StringData[checksumKey] = noDigits;
  for (auto [key, value] : strings)
    entry.StringData[key] = value;
  entry.Image = llvm::MemoryBuffer::getMemBuffer(bytes, "", /*RequiresNullTerminator=*/false);
  std::string blob = OffloadBinary::write(entry).str().str();
  // Reading back what was just written cannot fail.
  StringRef digits = llvm::cantFail(OffloadBinary::create(llvm::MemoryBufferRef(blob, "")))->getString(checksumKey);
  std::string checksum = llvm::utohexstr(getChecksum(blob, digits), /*LowerCase=*/true, noDigits.size());
  blob.replace(digits.data() - blob.data(), digits.size(), checksum);
  // Entries follow each other at multiples of the container's alignment.
  blob.resize(llvm::alignTo(blob.size(), OffloadBinary::getAlignment()));
  return blob;
}

std::string packVariant(const Target &target, CodeKind kind, StringRef code, StringRef interface,
                        size_t &offset) {
  const KindRow &row = getRow(kind);
  std::string size = std::to_string(target.subgroupSize);
  std::string entry = write(row.image, row.producer,
                            {{"triple", row.triple},
                             {"arch", target.chip->name},
                             {"subgroup_size", size},
                             {"qdb.interface", interface}},
                            code);
  // Reading back what was just written cannot fail.
  auto binary = llvm::cantFail(OffloadBinary::create(llvm::MemoryBufferRef(entry, "")));
  offset = binary->getImage().data() - entry.data();
  return entry;
}

std::string packQIR(ModuleOp module) {
  return write(llvm::object::IMG_None, llvm::object::OFK_None, {{"triple", "qir"}}, writeBytecode(module));
}

} // namespace qd

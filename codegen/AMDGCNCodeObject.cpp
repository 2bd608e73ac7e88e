//===- AMDGCNCodeObject.cpp - linking and checking code objects ------------------===//

#include "codegen/AMDGCNCodeObject.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

using namespace llvm;
using ELFFile = object::ELFFile<object::ELF64LE>;

LLD_HAS_DRIVER(elf)

namespace qd {

//===----------------------------------------------------------------------===//
// Link
//===----------------------------------------------------------------------===//

namespace {
/// A file of a fresh name in the system's folder for temporary files, removed at the end.
class TemporaryFile {
public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  Error create(StringRef suffix, StringRef contents) {
    int descriptor;
    if (std::error_code code = sys::fs::createTemporaryFile("qd", suffix, descriptor, path))
      return createStringError(code, "cannot create a temporary file for the link: " + code.message());
    remover.setFile(path);
    raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << contents;
    stream.close();
    if (std::error_code code = stream.error()) {
      stream.clear_error();
      return createStringError(code, "cannot write a temporary file for the link: " + code.message());
    }
    return Error::success();
  }

  const char *getPath() { return path.c_str(); }

private:
  SmallString<128> path;
  FileRemover remover;
};
} // namespace

/// What lld reports, without its own prefix and the names of our temporary files.
static std::string describeLinkErrors(StringRef text, const char *input, const char *output) {
  std::string message;
  for (StringRef line : split(text, '\n')) {
    line.consume_front("ld.lld: ");
    if (line.consume_front("error: "))
      message += (message.empty() ? "" : "; ") + line.str();
  }
  for (auto [path, word] : {std::pair(StringRef(input), "the object"), std::pair(StringRef(output), "the output")})
    for (size_t at; (at = message.find(path)) != std::string::npos;)
      message.replace(at, path.size(), word);
  return message.empty() ? "lld gave no reason" : message;
}

Expected<std::string> linkAMDGCN(StringRef object) {
  // lld reads and writes regular files only.
  TemporaryFile input, output;
  if (Error error = input.create("o", object))
    return error;
  if (Error error = output.create("hsaco", ""))
    return error;

  const char *arguments[] = {"ld.lld", "-shared", "--no-undefined", "--build-id=none", "--threads=1",
                             "-o",     output.getPath(), input.getPath()};
  std::string messages;
  raw_string_ostream stream(messages);
  {
    // lld keeps its state in globals: one link at a time.
    static std::mutex mutex;
    static bool isUsable = true;
    std::lock_guard<std::mutex> lock(mutex);
    if (!isUsable)
      return createStringError("lld failed earlier in this process and cannot run again");
    lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
    isUsable = result.canRunAgain;
    if (result.retCode != 0)
      return createStringError("cannot link the code object: " +
                               describeLinkErrors(messages, input.getPath(), output.getPath()));
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> linked =
      MemoryBuffer::getFile(output.getPath(), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!linked)
    return createStringError(linked.getError(), "cannot read the linked code object: " + linked.getError().message());
  return (*linked)->getBuffer().str();
}

//===----------------------------------------------------------------------===//
// Check
//===----------------------------------------------------------------------===//

/// Fills `names` with the symbols that are kernel descriptors.
static Error collectDescriptors(const ELFFile &file, const ELFFile::Elf_Shdr &table, StringSet<> &names) {
  auto symbols = file.symbols(&table);
  if (!symbols)
    return symbols.takeError();
  Expected<StringRef> strings = file.getStringTableForSymtab(table);
  if (!strings)
    return strings.takeError();
  for (const ELFFile::Elf_Sym &symbol : *symbols) {
    Expected<StringRef> name = symbol.getName(*strings);
    if (!name)
      return name.takeError();
    // A descriptor has 64 bytes in every version of the code object.
    if (name->ends_with(".kd") && symbol.st_size == 64 && symbol.st_shndx != ELF::SHN_UNDEF)
      names.insert(name->drop_back(3));
  }
  return Error::success();
}

/// Fills `kernelBytes` with the kernels that a metadata note lists, and their bytes of shared memory.
static Error collectMetadata(const ELFFile &file, const ELFFile::Elf_Shdr &section,
                             StringMap<uint64_t> &kernelBytes) {
  Error error = Error::success();
  for (const ELFFile::Elf_Note &note : file.notes(section, error)) {
    if (note.getName() != "AMDGPU" || note.getType() != ELF::NT_AMDGPU_METADATA)
      continue;
    msgpack::Document document;
    if (!document.readFromBlob(note.getDescAsStringRef(section.sh_addralign), /*Multi=*/false) ||
        !document.getRoot().isMap())
      return joinErrors(std::move(error), createStringError("the metadata note is no message"));
    auto kernels = document.getRoot().getMap().find("amdhsa.kernels");
    if (kernels == document.getRoot().getMap().end() || !kernels->second.isArray())
      continue;
    for (msgpack::DocNode &kernel : kernels->second.getArray())
      if (kernel.isMap())
        kernelBytes[kernel.getMap()[".name"].toString()] = kernel.getMap()[".group_segment_fixed_size"].getUInt();
  }
  return error;
}

template <typename Names> static Error compare(ArrayRef<std::string> kernels, const Names &found, const Twine &where) {
  for (const std::string &kernel : kernels)
    if (!found.contains(kernel))
      return createStringError("the backend dropped kernel '" + kernel + "': it is not in " + where);
  if (found.size() != kernels.size())
    return createStringError(
        formatv("expected {0} kernels in {1}, found {2}", kernels.size(), where.str(), found.size()));
  return Error::success();
}

/// Fills `descriptors` and `kernelBytes` from all of a code object.
static Error collect(StringRef elf, StringSet<> &descriptors, StringMap<uint64_t> &kernelBytes) {
  Expected<ELFFile> file = ELFFile::create(elf);
  if (!file)
    return file.takeError();
  auto sections = file->sections();
  if (!sections)
    return sections.takeError();
  for (const ELFFile::Elf_Shdr &section : *sections) {
    if (section.sh_type == ELF::SHT_SYMTAB) {
      if (Error error = collectDescriptors(*file, section, descriptors))
        return error;
    } else if (section.sh_type == ELF::SHT_NOTE) {
      if (Error error = collectMetadata(*file, section, kernelBytes))
        return error;
    }
  }
  return Error::success();
}

Error checkAMDGCNCodeObject(StringRef elf, ArrayRef<std::string> kernels) {
  StringSet<> descriptors;
  StringMap<uint64_t> listed;
  if (Error error = collect(elf, descriptors, listed))
    return error;
  if (Error error = compare(kernels, descriptors, "the kernel descriptors of the code object"))
    return error;
  return compare(kernels, listed, "the metadata of the code object");
}

Expected<StringMap<uint64_t>> readAMDGCNSharedBytes(StringRef elf) {
  StringSet<> descriptors;
  StringMap<uint64_t> bytes;
  if (Error error = collect(elf, descriptors, bytes))
    return error;
  return bytes;
}

Error checkAMDGCNAssembly(StringRef text, ArrayRef<std::string> kernels) {
  StringSet<> described;
  for (StringRef line : split(text, '\n')) {
    line = line.trim();
    if (line.consume_front(".amdhsa_kernel "))
      described.insert(line.trim("\""));
  }
  return compare(kernels, described, "the kernel descriptors of the assembly");
}

} // namespace qd

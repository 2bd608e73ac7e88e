// Reading AMD code objects, by LLVM's readers.
#include "CodeObject.h"

#include "llvm/BinaryFormat/AMDGPUMetadataVerifier.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/AMDHSAKernelDescriptor.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cstring>

using namespace llvm;

namespace hipdouble {

namespace {

using Elf = object::ELF64LEObjectFile;

template <typename... Parts> Error fail(const char *format, Parts &&...parts) {
  return createStringError(formatv(format, std::forward<Parts>(parts)...));
}

/// A file's size, by its header alone: the loader is given no other.
size_t sizeOf(const uint8_t *image) {
  ELF::Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  uint64_t size = header.e_shoff + uint64_t(header.e_shentsize) * header.e_shnum;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ELF::Elf64_Phdr part;
    std::memcpy(&part, image + header.e_phoff + uint64_t(header.e_phentsize) * i, sizeof part);
    size = std::max<uint64_t>(size, part.p_offset + part.p_filesz);
  }
  return size;
}

Error readTarget(const Elf &elf, CodeObject &code) {
  const auto &header = elf.getELFFile().getHeader();
  if (header.e_machine != ELF::EM_AMDGPU || header.e_ident[ELF::EI_OSABI] != ELF::ELFOSABI_AMDGPU_HSA ||
      header.e_type != ELF::ET_DYN)
    return fail("is no linked object of AMD's for HSA");
  if (header.e_ident[ELF::EI_ABIVERSION] < ELF::ELFABIVERSION_AMDGPU_HSA_V4)
    return fail("is older than version 4");
  code.chip = elf.tryGetCPUName().value_or("").str();
  auto mode = [&](unsigned mask, unsigned on, unsigned off) {
    unsigned bits = header.e_flags & mask;
    return bits == on ? '+' : bits == off ? '-' : ' ';
  };
  code.xnack =
      mode(ELF::EF_AMDGPU_FEATURE_XNACK_V4, ELF::EF_AMDGPU_FEATURE_XNACK_ON_V4, ELF::EF_AMDGPU_FEATURE_XNACK_OFF_V4);
  code.sramecc = mode(ELF::EF_AMDGPU_FEATURE_SRAMECC_V4, ELF::EF_AMDGPU_FEATURE_SRAMECC_ON_V4,
                      ELF::EF_AMDGPU_FEATURE_SRAMECC_OFF_V4);
  return Error::success();
}

Expected<StringRef> findMetadata(const Elf &elf) {
  auto parts = elf.getELFFile().program_headers();
  if (!parts)
    return parts.takeError();
  StringRef found;
  for (const auto &part : *parts) {
    if (part.p_type != ELF::PT_NOTE)
      continue;
    Error error = Error::success();
    for (auto note : elf.getELFFile().notes(part, error))
      if (note.getName() == "AMDGPU" && note.getType() == ELF::NT_AMDGPU_METADATA)
        found = note.getDescAsStringRef(part.p_align);
    if (error)
      return error;
  }
  if (found.empty())
    return fail("has no metadata");
  return found;
}

/// Members of a map that the verifier knows to be of their types.
uint64_t number(msgpack::MapDocNode &map, StringRef key) {
  auto at = map.find(key);
  if (at == map.end())
    return 0;
  return at->second.getKind() == msgpack::Type::Int ? uint64_t(at->second.getInt()) : at->second.getUInt();
}
std::string word(msgpack::MapDocNode &map, StringRef key) {
  auto at = map.find(key);
  return at == map.end() ? "" : at->second.getString().str();
}

Expected<KernelCode> readKernel(msgpack::MapDocNode &map) {
  KernelCode kernel;
  kernel.name = word(map, ".name");
  kernel.segmentBytes = number(map, ".kernarg_segment_size");
  kernel.ldsBytes = number(map, ".group_segment_fixed_size");
  kernel.maxThreads = number(map, ".max_flat_workgroup_size");
  kernel.lanes = number(map, ".wavefront_size");
  if (word(map, ".symbol") != kernel.name + ".kd")
    return fail("calls the descriptor of '{0}' '{1}'", kernel.name, word(map, ".symbol"));
  if (!kernel.maxThreads || kernel.maxThreads > 1024 || (kernel.lanes != 32 && kernel.lanes != 64))
    return fail("has a kernel '{0}' of up to {1} threads in waves of {2}", kernel.name, kernel.maxThreads,
                kernel.lanes);
  uint64_t end = 0;
  for (msgpack::DocNode &node : map[".args"].getArray(/*Convert=*/true)) {
    msgpack::MapDocNode &map = node.getMap();
    KernelArgument argument{word(map, ".name"), word(map, ".value_kind"), word(map, ".actual_access"),
                            number(map, ".offset"), number(map, ".size")};
    if (argument.offset < end || argument.offset + argument.size > kernel.segmentBytes)
      return fail("has an argument '{0}' of '{1}' at {2} of {3} bytes, in a segment of {4} after {5}", argument.name,
                  kernel.name, argument.offset, argument.size, kernel.segmentBytes, end);
    end = argument.offset + argument.size;
    if (!argument.size || argument.offset % argument.size)
      return fail("has an argument '{0}' of {1} bytes at {2}", argument.name, argument.size, argument.offset);
    // The driver's own stand behind those of the launch.
    bool isHidden = StringRef(argument.kind).starts_with("hidden_");
    if (isHidden && !is_contained({"block_count", "group_size", "remainder", "global_offset", "grid_dims"},
                                  StringRef(argument.kind).drop_front(7).rtrim("_xyz")))
      return fail("needs '{0}' for '{1}'", argument.kind, kernel.name);
    if (!isHidden && argument.kind != "by_value" && argument.kind != "global_buffer")
      return fail("has an argument '{0}' of kind '{1}'", argument.name, argument.kind);
    if (!isHidden && kernel.hidden.size())
      return fail("has an argument '{0}' behind the driver's own", argument.name);
    (isHidden ? kernel.hidden : kernel.arguments).push_back(std::move(argument));
  }
  return kernel;
}

/// The descriptor says what the hardware is told, the metadata what the launch is: both must agree.
Error checkDescriptor(const Elf &elf, const KernelCode &kernel) {
  auto named = [&](const std::string &name) -> Expected<object::ELFSymbolRef> {
    for (object::ELFSymbolRef symbol : elf.getDynamicSymbolIterators()) {
      auto found = symbol.getName();
      if (found && *found == name)
        return symbol;
      consumeError(found.takeError());
    }
    return fail("has no symbol '{0}'", name);
  };
  auto descriptor = named(kernel.name + ".kd"), entry = named(kernel.name);
  if (!descriptor || !entry)
    return joinErrors(descriptor ? Error::success() : descriptor.takeError(),
                      entry ? Error::success() : entry.takeError());
  auto descriptorAt = descriptor->getAddress(), entryAt = entry->getAddress();
  if (!descriptorAt || !entryAt)
    return joinErrors(descriptorAt.takeError(), entryAt.takeError());
  auto bytes = elf.getELFFile().toMappedAddr(*descriptorAt);
  if (!bytes)
    return bytes.takeError();
  amdhsa::kernel_descriptor_t found;
  std::memcpy(&found, *bytes, sizeof found);
  if (descriptor->getSize() != sizeof found || *descriptorAt % 64)
    return fail("has a descriptor of '{0}' with {1} bytes at {2:x}", kernel.name, descriptor->getSize(), *descriptorAt);
  bool isWave32 = found.kernel_code_properties & amdhsa::KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32;
  if (found.kernarg_size != kernel.segmentBytes || found.group_segment_fixed_size != kernel.ldsBytes ||
      kernel.lanes != (isWave32 ? 32 : 64))
    return fail(
        "has a descriptor of '{0}' that says {1} bytes of arguments, {2} of shared memory and waves of {3}, and "
        "metadata of {4}, {5} and {6}",
        kernel.name, uint32_t(found.kernarg_size), uint32_t(found.group_segment_fixed_size), isWave32 ? 32 : 64,
        kernel.segmentBytes, kernel.ldsBytes, kernel.lanes);
  if (*descriptorAt + uint64_t(found.kernel_code_entry_byte_offset) != *entryAt || *entryAt % 256)
    return fail("starts '{0}' at {1:x}, its code is at {2:x}", kernel.name,
                *descriptorAt + uint64_t(found.kernel_code_entry_byte_offset), *entryAt);
  return Error::success();
}

} // namespace

const KernelCode *CodeObject::find(const std::string &name) const {
  auto at = std::find_if(kernels.begin(), kernels.end(), [&](const KernelCode &kernel) { return kernel.name == name; });
  return at == kernels.end() ? nullptr : &*at;
}

Expected<CodeObject> readCodeObject(const void *image) {
  if (std::memcmp(image, ELF::ElfMagic, 4) || static_cast<const uint8_t *>(image)[ELF::EI_CLASS] != ELF::ELFCLASS64)
    return fail("is no ELF file of 64 bits");
  CodeObject code;
  code.bytes.assign(static_cast<const char *>(image), sizeOf(static_cast<const uint8_t *>(image)));
  auto file = object::ObjectFile::createELFObjectFile(MemoryBufferRef(code.bytes, "code"));
  if (!file)
    return file.takeError();
  auto *elf = dyn_cast<Elf>(file->get());
  if (!elf)
    return fail("is not little-endian");
  if (Error error = readTarget(*elf, code))
    return error;
  auto metadata = findMetadata(*elf);
  if (!metadata)
    return metadata.takeError();
  msgpack::Document document;
  AMDGPU::HSAMD::V3::MetadataVerifier verifier(/*Strict=*/true);
  if (!document.readFromBlob(*metadata, /*Multi=*/false) || !verifier.verify(document.getRoot()))
    return fail("has metadata that no launch can rely on");
  msgpack::MapDocNode &root = document.getRoot().getMap();
  if (word(root, "amdhsa.target") != "amdgcn-amd-amdhsa--" + code.chip)
    return fail("is for {0} by its header, for '{1}' by its metadata", code.chip, word(root, "amdhsa.target"));
  for (msgpack::DocNode &node : root["amdhsa.kernels"].getArray(/*Convert=*/true)) {
    auto kernel = readKernel(node.getMap());
    if (!kernel)
      return kernel.takeError();
    if (Error error = checkDescriptor(*elf, *kernel))
      return error;
    code.kernels.push_back(std::move(*kernel));
  }
  return code;
}

} // namespace hipdouble

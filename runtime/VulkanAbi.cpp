// Reading a SPIR-V module's head and packing parameters. The instruction stream is walked up to the first
// function; every length is checked against the words that remain.
#include "runtime/VulkanAbi.h"

#include <cstring>
#include <set>

namespace qd::rt {

namespace {

constexpr uint32_t spirvMagic = 0x07230203;
constexpr size_t headerWords = 5;

// Opcodes and operands from the SPIR-V specification.
enum : uint32_t {
  opEntryPoint = 15,
  opExecutionMode = 16,
  opCapability = 17,
  opFunction = 54,
  modelGLCompute = 5,
  modeLocalSize = 17,
  modeDenormPreserve = 4459,
  modeSignedZeroInfNanPreserve = 4461,
  modeRoundingModeRTZ = 4463,
  capabilityDenormPreserve = 4464,
};

} // namespace

const SpirvSummary::EntryPoint *SpirvSummary::find(std::string_view name) const {
  for (const EntryPoint &entry : entryPoints)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

Expected<SpirvSummary> summarizeSpirv(const std::vector<uint8_t> &bytes) {
  std::vector<uint32_t> words(bytes.size() / 4);
  if (!words.empty())
    std::memcpy(words.data(), bytes.data(), words.size() * 4);
  if (bytes.size() % 4 || words.size() < headerWords || words[0] != spirvMagic)
    return fail("the code is not a SPIR-V module of this byte order");

  SpirvSummary summary;
  summary.versionMinor = (words[1] >> 8) & 0xFF;
  std::vector<uint32_t> entryIds;
  for (size_t at = headerWords; at < words.size();) {
    uint32_t opcode = words[at] & 0xFFFF;
    size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at)
      return fail("the SPIR-V module is damaged at word ", at);
    const uint32_t *operands = words.data() + at + 1;
    size_t numOperands = length - 1;
    if (opcode == opFunction)
      break;
    if (opcode == opCapability && numOperands == 1) {
      summary.capabilities.push_back(operands[0]);
    } else if (opcode == opEntryPoint && numOperands >= 3 && operands[0] == modelGLCompute) {
      auto *name = reinterpret_cast<const char *>(operands + 2);
      summary.entryPoints.push_back({std::string(name, strnlen(name, (numOperands - 2) * 4)), {}});
      entryIds.push_back(operands[1]);
    } else if (opcode == opExecutionMode && numOperands >= 2) {
      uint32_t mode = operands[1];
      if (mode == modeLocalSize && numOperands == 5) {
        for (size_t i = 0; i < entryIds.size(); ++i)
          if (entryIds[i] == operands[0])
            std::memcpy(summary.entryPoints[i].localSize.data(), operands + 2, 12);
      } else if (mode >= modeDenormPreserve && mode <= modeRoundingModeRTZ && numOperands == 3) {
        summary.floatControls.push_back({mode, operands[2]});
      }
    }
    at += length;
  }
  return summary;
}

std::vector<uint32_t> keepSubnormals(const std::vector<uint32_t> &words, const std::function<bool(uint32_t)> &offers) {
  std::vector<uint32_t> result(words.begin(), words.begin() + headerWords);
  bool inserted = false;
  size_t at = headerWords;
  for (size_t length; at < words.size() && (words[at] & 0xFFFF) != opFunction; at += length) {
    length = words[at] >> 16;
    const uint32_t *instruction = words.data() + at;
    bool isMode = (instruction[0] & 0xFFFF) == opExecutionMode && length == 4;
    if (isMode && instruction[2] == modeDenormPreserve)
      return words;
    result.insert(result.end(), instruction, instruction + length);
    if (isMode && instruction[2] == modeSignedZeroInfNanPreserve && offers(instruction[3])) {
      result.insert(result.end(), {instruction[0], instruction[1], modeDenormPreserve, instruction[3]});
      inserted = true;
    }
  }
  if (!inserted)
    return words;
  result.insert(result.end(), words.begin() + at, words.end());
  result.insert(result.begin() + headerWords, {2u << 16 | opCapability, capabilityDenormPreserve});
  return result;
}

Error checkVulkanKernel(const Kernel &kernel) {
  std::set<uint32_t> bindings;
  if (kernel.paramsBinding)
    bindings.insert(*kernel.paramsBinding);
  auto inBlock = [&](std::optional<uint32_t> offset, uint32_t bytes) {
    return offset && *offset % bytes == 0 && bytes <= kernel.paramsBytes &&
           *offset <= kernel.paramsBytes - bytes;
  };
  for (const Parameter &parameter : kernel.parameters) {
    auto broken = [&](std::string_view what) {
      return fail("the interface of kernel '", kernel.name, "' gives argument '", parameter.name, "' ", what);
    };
    if (!parameter.isBuffer()) {
      if (!inBlock(parameter.offset, scalarBytes(parameter.type.scalar) == 8 ? 8 : 4))
        return broken("no aligned offset inside its parameter block");
      continue;
    }
    if (!parameter.binding)
      return broken("no binding");
    if (!bindings.insert(*parameter.binding).second)
      return broken("a binding that is taken already");
    if (parameter.hasSize && !inBlock(parameter.sizeOffset, 8))
      return broken("no aligned size_offset inside its parameter block");
  }
  return Error::success();
}

std::vector<uint8_t> packParameters(const Kernel &kernel, const std::vector<Argument> &arguments) {
  std::vector<uint8_t> block((kernel.paramsBytes + 3) / 4 * 4);
  auto put = [&](uint32_t offset, uint64_t value, size_t bytes) {
    std::memcpy(block.data() + offset, &value, bytes);
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter &parameter = kernel.parameters[i];
    if (!parameter.isBuffer())
      put(*parameter.offset, arguments[i].bits, scalarBytes(parameter.type.scalar) == 8 ? 8 : 4);
    else if (parameter.hasSize)
      put(*parameter.sizeOffset, static_cast<uint64_t>(arguments[i].count), 8);
  }
  return block;
}

} // namespace qd::rt

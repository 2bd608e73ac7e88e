// Reading a SPIR-V module's head and packing parameters. The instruction stream is walked up to the first
// function; every length is checked against the words that remain.
#include "runtime/VulkanAbi.h"

#include <cstring>
#include <map>
#include <optional>
#include <set>

namespace qd::rt {

namespace {

constexpr uint32_t spirvMagic = 0x07230203;
constexpr size_t headerWords = 5;

// Opcodes and operands from the SPIR-V specification.
enum : uint32_t {
  opNop = 0,
  opName = 5,
  opMemberName = 6,
  opLine = 8,
  opEntryPoint = 15,
  opExecutionMode = 16,
  opCapability = 17,
  opFunction = 54,
  opFunctionEnd = 56,
  opVariable = 59,
  opStore = 62,
  opCopyMemory = 63,
  opDecorate = 71,
  opMemberDecorate = 72,
  opControlBarrier = 224,
  opMemoryBarrier = 225,
  opAtomicStore = 228,
  opLoopMerge = 246,
  opSelectionMerge = 247,
  opLabel = 248,
  opBranch = 249,
  opUnreachable = 255,
  opNoLine = 317,
  opExecutionModeId = 331,
  storageWorkgroup = 4,
  decorationSpecId = 1,
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
    } else if (opcode == opDecorate && numOperands == 3 && operands[1] == decorationSpecId) {
      summary.constants.push_back(operands[2]);
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

/// The id that an instruction of a function's body defines, or 0.
static uint32_t resultInBody(const uint32_t *instruction) {
  uint32_t opcode = instruction[0] & 0xFFFF, length = instruction[0] >> 16;
  switch (opcode) {
  case opNop:
  case opLine:
  case opNoLine:
  case opStore:
  case opCopyMemory:
  case opControlBarrier:
  case opMemoryBarrier:
  case opAtomicStore:
  case opLoopMerge:
  case opSelectionMerge:
  case opFunctionEnd:
    return 0;
  case opLabel:
    return length > 1 ? instruction[1] : 0;
  default:
    return (opcode >= opBranch && opcode <= opUnreachable) || length < 3 ? 0 : instruction[2];
  }
}

std::vector<uint32_t> keepKernel(const std::vector<uint32_t> &words, std::string_view name) {
  struct Instruction {
    const uint32_t *words;
    uint32_t opcode, length;
  };
  std::vector<Instruction> head;
  std::map<uint32_t, std::vector<Instruction>> bodies; ///< by the function's id
  std::vector<Instruction> *body = nullptr;
  std::set<uint32_t> others;
  std::optional<uint32_t> wanted;
  for (size_t at = headerWords; at < words.size();) {
    Instruction instruction = {&words[at], words[at] & 0xFFFF, words[at] >> 16};
    if (instruction.length == 0 || instruction.length > words.size() - at)
      return words;
    at += instruction.length;
    if (instruction.opcode == opEntryPoint && instruction.length >= 4) {
      auto *text = reinterpret_cast<const char *>(instruction.words + 3);
      if (std::string_view(text, strnlen(text, (instruction.length - 3) * 4)) == name)
        wanted = instruction.words[2];
      else
        others.insert(instruction.words[2]);
    }
    if (instruction.opcode == opFunction && instruction.length >= 3)
      body = &bodies[instruction.words[2]];
    (body ? *body : head).push_back(instruction);
  }
  if (!wanted || others.empty() || !bodies.count(*wanted))
    return words;

  std::set<uint32_t> used, dropped = others;
  for (const auto &[function, instructions] : bodies)
    for (const Instruction &instruction : instructions) {
      if (!others.count(function))
        used.insert(instruction.words + 1, instruction.words + instruction.length);
      else if (uint32_t result = resultInBody(instruction.words))
        dropped.insert(result);
    }
  for (const Instruction &instruction : head)
    if (instruction.opcode == opVariable && instruction.length >= 4 && instruction.words[3] == storageWorkgroup &&
        !used.count(instruction.words[2]))
      dropped.insert(instruction.words[2]);

  std::vector<uint32_t> result(words.begin(), words.begin() + headerWords);
  auto keep = [&](const Instruction &instruction) {
    result.insert(result.end(), instruction.words, instruction.words + instruction.length);
  };
  for (const Instruction &instruction : head) {
    uint32_t subject = 0;
    switch (instruction.opcode) {
    case opEntryPoint:
    case opVariable:
      subject = instruction.length > 2 ? instruction.words[2] : 0;
      break;
    case opName:
    case opMemberName:
    case opDecorate:
    case opMemberDecorate:
    case opExecutionMode:
    case opExecutionModeId:
      subject = instruction.length > 1 ? instruction.words[1] : 0;
      break;
    }
    if (!dropped.count(subject))
      keep(instruction);
  }
  for (const auto &[function, instructions] : bodies)
    if (!others.count(function))
      for (const Instruction &instruction : instructions)
        keep(instruction);
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
    for (uint32_t dim = 0; parameter.hasSize && dim < parameter.rank; ++dim)
      if (!parameter.sizeOffset || !inBlock(*parameter.sizeOffset + 8 * dim, 8))
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
      for (unsigned dim = 0; dim < parameter.rank; ++dim)
        put(*parameter.sizeOffset + 8 * dim, static_cast<uint64_t>(arguments[i].extents[dim]), 8);
  }
  return block;
}

} // namespace qd::rt

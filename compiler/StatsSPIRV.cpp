//===- StatsSPIRV.cpp - counting on SPIR-V words ---------------------------------------------------===//

#include "compiler/Stats.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <cstring>
#include <spirv/unified1/spirv.hpp11>

using namespace llvm;

namespace qd {

namespace {
using Words = ArrayRef<uint32_t>;

/// What a first walk over the module finds out: constants, sizes of types, shared arrays and kernels' names.
struct Declarations {
  DenseMap<uint32_t, uint32_t> constants;  ///< id to the value's low word
  DenseMap<uint32_t, uint64_t> typeBytes;
  DenseMap<uint32_t, uint32_t> pointees;   ///< pointer type to what it points to
  DenseMap<uint32_t, uint64_t> sharedBytes; ///< variable of the Workgroup class
  DenseMap<uint32_t, std::string> kernels; ///< function to its entry point's name

  void note(spv::Op op, Words words);
};
} // namespace

void Declarations::note(spv::Op op, Words words) {
  auto bytesOf = [&](uint32_t type) { return typeBytes.lookup(type); };
  switch (op) {
  case spv::Op::OpConstant:
    constants[words[2]] = words[3];
    break;
  case spv::Op::OpTypeBool:
    typeBytes[words[1]] = 4;
    break;
  case spv::Op::OpTypeInt:
  case spv::Op::OpTypeFloat:
    typeBytes[words[1]] = words[2] / 8;
    break;
  case spv::Op::OpTypeVector:
    typeBytes[words[1]] = bytesOf(words[2]) * words[3];
    break;
  case spv::Op::OpTypeArray:
    typeBytes[words[1]] = bytesOf(words[2]) * constants.lookup(words[3]);
    break;
  case spv::Op::OpTypeStruct:
    for (uint32_t member : words.drop_front(2))
      typeBytes[words[1]] += bytesOf(member);
    break;
  case spv::Op::OpTypePointer:
    pointees[words[1]] = words[3];
    break;
  case spv::Op::OpVariable:
    if (spv::StorageClass(words[3]) == spv::StorageClass::Workgroup)
      sharedBytes[words[2]] = bytesOf(pointees.lookup(words[1]));
    break;
  case spv::Op::OpEntryPoint: {
    const char *name = reinterpret_cast<const char *>(&words[3]);
    kernels[words[2]] = std::string(name, strnlen(name, (words.size() - 3) * sizeof(uint32_t)));
    break;
  }
  default:
    break;
  }
}

template <typename Function> static void forEachInstruction(Words module, Function function) {
  constexpr size_t headerWords = 5;
  for (size_t at = headerWords; at < module.size();) {
    size_t count = module[at] >> 16;
    if (!count || at + count > module.size())
      return;
    function(spv::Op(module[at] & 0xffff), module.slice(at, count));
    at += count;
  }
}

static bool isShuffle(spv::Op op) {
  switch (op) {
  case spv::Op::OpGroupNonUniformShuffle:
  case spv::Op::OpGroupNonUniformShuffleXor:
  case spv::Op::OpGroupNonUniformShuffleUp:
  case spv::Op::OpGroupNonUniformShuffleDown:
  case spv::Op::OpGroupNonUniformBroadcast:
  case spv::Op::OpGroupNonUniformBroadcastFirst:
  case spv::Op::OpGroupNonUniformQuadBroadcast:
  case spv::Op::OpGroupNonUniformQuadSwap:
  case spv::Op::OpGroupNonUniformRotateKHR:
    return true;
  default:
    return false;
  }
}

static bool isGroupOp(spv::Op op) {
  return (op >= spv::Op::OpGroupNonUniformElect && op <= spv::Op::OpGroupNonUniformQuadSwap) ||
         op == spv::Op::OpGroupNonUniformRotateKHR;
}

static void countInstruction(spv::Op op, Words words, const Declarations &declarations, KernelStats &stats) {
  if (op == spv::Op::OpLabel || op == spv::Op::OpVariable || op == spv::Op::OpLine || op == spv::Op::OpNoLine)
    return;
  ++stats.instructions;
  stats.shuffles += isShuffle(op);
  stats.votes += isGroupOp(op) && !isShuffle(op);
  stats.barriers += op == spv::Op::OpControlBarrier &&
                    spv::Scope(declarations.constants.lookup(words[1])) == spv::Scope::Workgroup;
}

std::vector<KernelStats> countSPIRV(StringRef bytes) {
  std::vector<uint32_t> module(bytes.size() / sizeof(uint32_t));
  std::memcpy(module.data(), bytes.data(), module.size() * sizeof(uint32_t));
  Declarations declarations;
  forEachInstruction(module, [&](spv::Op op, Words words) { declarations.note(op, words); });

  std::vector<KernelStats> all;
  DenseSet<uint32_t> seen;
  bool inKernel = false;
  forEachInstruction(module, [&](spv::Op op, Words words) {
    if (op == spv::Op::OpFunction) {
      auto kernel = declarations.kernels.find(words[2]);
      inKernel = kernel != declarations.kernels.end();
      if (inKernel)
        all.push_back({kernel->second, ""});
      seen.clear();
    } else if (op == spv::Op::OpFunctionEnd) {
      inKernel = false;
    } else if (inKernel) {
      countInstruction(op, words, declarations, all.back());
      // Literals may look like the id of a shared array, but only in ops that name one anyway.
      if (op == spv::Op::OpAccessChain || op == spv::Op::OpInBoundsAccessChain || op == spv::Op::OpLoad)
        if (uint64_t size = declarations.sharedBytes.lookup(words[3]); size && seen.insert(words[3]).second)
          all.back().sharedBytes += size;
    }
  });
  return all;
}

} // namespace qd

//===----------------------------------------------------------------------===//
// The executable form of a module: every function is one array of operations
// on words. A value of the IR is one word (64 bits a lane) for each scalar in
// it, two for a scalar of 65 to 128 bits; vectors, structs and arrays are just
// several words. Each operation names its handler directly.
//===----------------------------------------------------------------------===//
#ifndef QD_CODEGEN_SIM_CODE_H
#define QD_CODEGEN_SIM_CODE_H

#include "codegen/sim/Chips.h"
#include "codegen/sim/Sim.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include <cstdint>
#include <string>
#include <vector>

namespace qd::sim {

class Wave;
struct Op;
using Handler = void (*)(Wave &, const Op &);

inline uint64_t lowBits(unsigned bits) { return llvm::maskTrailingOnes<uint64_t>(bits); }
inline int64_t signedValue(uint64_t value, unsigned bits) { return llvm::SignExtend64(value, bits); }

/// A word: an index into the frame, or ~index into the pool of constants.
using Ref = int32_t;

struct Op {
  Handler run = nullptr;
  Ref dst = 0, a = 0, b = 0, c = 0;
  uint32_t args = 0; // first of `nargs` entries of FunctionCode::args
  uint16_t nargs = 0;
  uint16_t bytes = 0; // size of a memory access
  uint8_t bits = 0;   // width of the operation, 1 to 64 (128 for wide ones)
  uint8_t bits2 = 0;  // width of the source of a conversion
  uint8_t sub = 0;    // meaning belongs to the handler
  uint8_t space = 0;  // address space
  uint32_t flags = 0;
  uint32_t align = 1;
  int64_t imm = 0;
  uint32_t text = 0; // the instruction's text, in Image::texts
};

/// Poison-generating flags of an operation.
enum : uint32_t {
  FlagNUW = 1,
  FlagNSW = 2,
  FlagExact = 4,
  FlagDisjoint = 8,
  FlagNNeg = 16,
  FlagSameSign = 32
};
/// Of a load or store: atomic or volatile, so that it may order others.
constexpr uint32_t FlagOrdered = 1;

struct Copy {
  Ref dst, src;
};

/// A control-flow edge with the phi copies of its target.
struct Edge {
  uint32_t pc;
  uint32_t copies, copyCount;
};

struct Param {
  uint32_t word = 0;
  bool pointer = false;
  unsigned space = 0;
  uint64_t bytes = 0; // size of the IR type in memory
  uint64_t byValBytes = 0;
  struct Piece {
    uint64_t offset; // in memory
    uint8_t bits;
  };
  std::vector<Piece> pieces; // one a word
};

struct FunctionCode {
  std::string name;
  bool kernel = false;
  // What the kernel's attributes promise of the block: 0 leaves it open.
  std::array<uint32_t, 3> requiredBlock = {0, 0, 0};
  uint32_t leastThreads = 0, mostThreads = 0;
  std::vector<Op> ops;
  std::vector<Edge> edges;
  std::vector<Copy> copies;
  std::vector<Ref> args;
  std::vector<Param> params;
  uint32_t words = 0;        // frame size
  uint32_t privateBytes = 0; // stack of one lane
};

/// Addresses: global, constant and generic pointers are an allocation number
/// above bit 40 and an offset below. Shared and private pointers are offsets;
/// as generic pointers they lie in an aperture, an allocation of their own.
constexpr unsigned allocationShift = 40;
constexpr uint64_t offsetMask = (uint64_t(1) << allocationShift) - 1;
enum : uint64_t {
  NullAllocation = 0,
  SharedAperture = 1,
  PrivateAperture = 2,
  ImplicitArgs = 3,
  FirstAllocation = 4
};

enum AddressSpace : unsigned {
  GenericSpace = 0,
  GlobalSpace = 1,
  SharedSpace = 3,
  ConstantSpace = 4,
  PrivateSpace = 5,
  ParamSpace = 101,
};

struct GlobalMemory {
  std::string name;
  bool constant;
  std::vector<uint8_t> bytes;
};

struct Image {
  const ChipRules *chip = nullptr;
  SimOptions options;
  unsigned wave = 32;
  std::vector<uint64_t> constants; // each repeated for every lane
  std::vector<uint64_t> constantPoison;
  std::vector<std::string> texts;
  std::vector<FunctionCode> functions;
  llvm::StringMap<unsigned> kernels;
  std::vector<GlobalMemory> globals; // allocation FirstAllocation + index
  // Shared variables with inaccessible bytes between them.
  struct SharedVariable {
    uint64_t offset, bytes;
  };
  std::vector<SharedVariable> shared;
  uint64_t sharedBytes = 0;
};

} // namespace qd::sim

#endif

// The state of a wave, and what instructions need of it.
//
// Each bit of a register is known or not: not are those that nothing has written. A function's result has the bits
// unknown that change with unknown ones. An unknown bit that is stored, is an address, or decides a branch is a fault.
#ifndef QD_TEST_AMDGCN_WAVE_H
#define QD_TEST_AMDGCN_WAVE_H

#include "Instruction.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace amdgcn {

/// The manuals' names of numbers.
using u16 = uint16_t;
using i16 = int16_t;
using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

struct Word {
  uint32_t value = 0, unknown = ~0u;
};
struct Value {
  uint64_t bits = 0, unknown = 0;
};

struct ChipModel {
  std::string name;
  /// 906 to 1201.
  unsigned number = 0;
  unsigned lanes = 64;
  bool isGfx9() const { return name.size() == 6; }
  unsigned generation() const { return isGfx9() ? 9 : number / 100; }
};
ChipModel chipModel(const std::string &name, unsigned lanes);

/// What stands in the word `place` that nobody has written: others in other words, so that only what was read from one
/// place is the same.
inline uint32_t unwrittenWord(size_t place) {
  uint64_t mixed = (place + 1) * 0x9E3779B97F4A7C15;
  return uint32_t((mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 >> 32);
}

/// Bytes of which each is known or not.
struct Bytes {
  std::vector<uint8_t> value, unknown;
  explicit Bytes(size_t size = 0) : value(size), unknown(size, 0xFF) {
    for (size_t i = 0; i < size; ++i)
      value[i] = uint8_t(unwrittenWord(i));
  }
};

/// Global memory as the launch finds it: host memory for the bytes, or null where the device has none.
using Memory = std::function<uint8_t *(uint64_t address, size_t bytes, bool isWrite)>;

/// How the chip rounds: bits of the kernel descriptor.
struct Mode {
  bool flush32 = false, flush64 = false, isIeee = true;
};

struct Group {
  std::array<uint32_t, 3> id{};
  Bytes lds;
  /// Waves that have not ended, those that have signalled at the barrier, and how often all had.
  unsigned numAlive = 0, numSignalled = 0, numBarriers = 0;
  void release() {
    if (numSignalled && numSignalled == numAlive)
      numSignalled = 0, ++numBarriers;
  }
};

struct Wave {
  ChipModel chip;
  Mode mode;
  std::vector<Word> vectors = std::vector<Word>(size_t(numRegisters) * 64);
  std::array<Word, numScalars> scalars{};
  bool condition = false, isConditionUnknown = true;
  /// What of an operation counts its registers from M0, as gfx9's mode says it.
  unsigned relative = 0;
  uint64_t pc = 0;
  bool isDone = false, isWaiting = false;
  /// The barrier that the wave has signalled at, in the group's count.
  unsigned barrier = 0;
  Bytes scratch;
  size_t scratchBytes = 0;
  Group *group = nullptr;
  const Memory *memory = nullptr;
  /// The first thing that went wrong.
  std::string fault;

  explicit Wave(const ChipModel &model) : chip(model) {}
  unsigned lanes() const { return chip.lanes; }
  Word &vector(unsigned place, unsigned lane) { return vectors[size_t(place) * 64 + lane]; }
  void fail(const std::string &words) {
    if (fault.empty())
      fault = words;
  }
  uint64_t exec();
  /// A mask of lanes in scalar registers; as wide as the wave.
  Value mask(const Operand &operand) const;
  void setMask(const Operand &operand, Value value);
  Value scalar(const Operand &operand, unsigned words) const;
  void setScalar(const Operand &operand, unsigned words, Value value);
};

/// What a function gives: its value and its flag, a carry, a comparison or the scalar condition.
struct Result {
  uint64_t value;
  bool flag;
};
using Function = Result (*)(const uint64_t *sources, const Mode &mode);

/// An operation that computes each result from the sources alone.
///
/// `form` is "results:sources", of letters: u, w, h raw values of 32, 64 and 16 bits; f, d, g floats of 32, 64 and 16
/// bits, i an integer that stands among floats; s the scalar condition; C a mask of lanes that takes the flag, c a mask
/// of lanes, v that in VCC; + the old result; k a signed constant of 16 bits; l the lane; t the instruction's table; x
/// a float of 32 or 16 bits, m which are of 16.
struct Op {
  const char *name, *form;
  Function function;
};
const Op *findOp(const std::string &name);
/// Tables, ended by a null name.
extern const Op integerOps[], floatOps[], scalarOps[], halfOps[];
/// v_cmp_..., v_cmpx_... and s_cmp_... by their names' parts; null where there is none.
Function findComparison(const std::string &kind, const std::string &type);

unsigned widthOf(char letter);
bool isFloatLetter(char letter);
/// The bits of a constant among operands of a letter's type.
uint64_t constantBits(const Operand &operand, char letter);
/// The function's result, and which bits of it nobody knows. Sources with the same unknown bits have them from one
/// place, as a word of memory that is read twice: there they are the same, whatever they are.
Value evaluate(Function function, const Value *sources, unsigned count, const Mode &mode, bool &flag,
               bool &isFlagUnknown);

// What each file carries out. False where the instruction is none of its own.
bool runIndexed(Wave &wave, const Instruction &what);
bool runScalar(Wave &wave, const Instruction &what, bool &jumped);
bool runLanes(Wave &wave, const Instruction &what);
bool runVector(Wave &wave, const Instruction *pair, size_t count);
bool runMemory(Wave &wave, const Instruction &what);

/// The lane that a pattern reads, or -1.
int sourceLane(const LanePattern &pattern, unsigned lane, unsigned lanes);

/// A program's instruction, or the two that issue together.
using Issue = std::vector<Instruction>;
/// Carries one out. Does not move on.
void issue(Wave &wave, const Issue &what, bool &jumped);

} // namespace amdgcn

#endif // QD_TEST_AMDGCN_WAVE_H

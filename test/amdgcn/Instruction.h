// An instruction of an AMD chip as its assembly text says it.
#ifndef QD_TEST_AMDGCN_INSTRUCTION_H
#define QD_TEST_AMDGCN_INSTRUCTION_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace amdgcn {

/// Places of the registers that have names among the scalar ones.
enum ScalarPlace : uint16_t {
  vccPlace = 106,
  ttmpPlace = 108,
  m0Place = 124,
  nullPlace = 125,
  execPlace = 126,
  numScalars = 128
};
/// Accumulation registers stand behind the vector registers.
constexpr uint16_t numVectors = 256, numRegisters = 2 * numVectors;

struct Operand {
  enum class Kind { Vector, Scalar, Integer, Float, Condition, Off, Name } kind = Kind::Off;
  uint16_t place = 0;
  uint8_t words = 1;
  /// Of a register's two halves the one that is named, or -1.
  int8_t half = -1;
  bool isNegated = false, isAbsolute = false, isSignExtended = false;
  /// As written: 0x..., which does not extend by its sign.
  bool isHexadecimal = false;
  int64_t integer = 0;
  double number = 0;
  std::string name;
};

struct LanePattern {
  enum class Kind { QuadPerm, RowShl, RowShr, RowRor, WaveShl, WaveShr, WaveRol, WaveRor, Mirror, HalfMirror, Bcast15,
                    Bcast31, Share, Xmask, Eight } kind = Kind::QuadPerm;
  std::array<uint8_t, 8> lanes{};
  unsigned amount = 0, rowMask = 15, bankMask = 15;
  bool boundControl = false, fetchInactive = false;
};

/// A part of a word: SDWA's selections.
enum class Part : uint8_t { Byte0, Byte1, Byte2, Byte3, Word0, Word1, Whole };
struct Parts {
  Part destination = Part::Whole, sources[2] = {Part::Whole, Part::Whole};
  enum class Unused { Pad, Extend, Preserve } unused = Unused::Pad;
};

struct Instruction {
  std::string text;
  /// Without what names the encoding.
  std::string name;
  std::vector<Operand> operands;
  std::optional<LanePattern> pattern;
  std::optional<Parts> parts;
  unsigned selectHigh = 0, table = 0;
  /// Where the text says nothing, it depends on the operation.
  std::optional<unsigned> selectHighOfPair;
  int64_t offset = 0, offset0 = 0, offset1 = 0;
  std::string swizzle;
  bool hasClamp = false, returnsOld = false, toLds = false;
  int outputShift = 0;
  /// What the negations of packed operations say.
  unsigned negateLow = 0, negateHigh = 0;
  /// Address of the instruction after it.
  uint64_t next = 0;
};

/// Parses one line. A pair of operations that issue together is two. False where the text is not understood.
bool parse(const std::string &line, std::vector<Instruction> &pair, std::string &problem);

} // namespace amdgcn

#endif // QD_TEST_AMDGCN_INSTRUCTION_H

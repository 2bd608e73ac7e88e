// Registers, constants and functions on values of which bits are unknown.
#include "Wave.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"

#include <cstring>
#include <unordered_map>

namespace amdgcn {

ChipModel chipModel(const std::string &name, unsigned lanes) {
  ChipModel model;
  model.name = name;
  model.number = unsigned(std::strtoul(name.c_str() + 3, nullptr, name.size() == 6 ? 16 : 10));
  model.lanes = lanes;
  return model;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

uint64_t Wave::exec() {
  uint64_t all = lanes() == 64 ? ~uint64_t(0) : 0xFFFFFFFF;
  Value mask{scalars[execPlace].value | uint64_t(scalars[execPlace + 1].value) << 32,
             scalars[execPlace].unknown | uint64_t(scalars[execPlace + 1].unknown) << 32};
  if (mask.unknown & all)
    fail("nobody knows which lanes take part");
  return mask.bits & all;
}

Value Wave::scalar(const Operand &operand, unsigned words) const {
  Value value;
  for (unsigned i = 0; i < words; ++i) {
    const Word &word = scalars[operand.place == nullPlace ? nullPlace : operand.place + i];
    value.bits |= uint64_t(word.value) << (32 * i);
    value.unknown |= uint64_t(word.unknown) << (32 * i);
  }
  return operand.place == nullPlace ? Value{} : value;
}

void Wave::setScalar(const Operand &operand, unsigned words, Value value) {
  if (operand.place == nullPlace)
    return;
  for (unsigned i = 0; i < words; ++i)
    scalars[operand.place + i] = {uint32_t(value.bits >> (32 * i)), uint32_t(value.unknown >> (32 * i))};
}

Value Wave::mask(const Operand &operand) const {
  if (operand.kind == Operand::Kind::Integer)
    return {uint64_t(operand.integer), 0};
  return scalar(operand, lanes() / 32);
}
void Wave::setMask(const Operand &operand, Value value) { setScalar(operand, lanes() / 32, value); }

//===----------------------------------------------------------------------===//
// Letters
//===----------------------------------------------------------------------===//

unsigned widthOf(char letter) {
  switch (letter) {
  case 'w':
  case 'd':
    return 64;
  case 'h':
  case 'g':
    return 16;
  default:
    return 32;
  }
}

bool isFloatLetter(char letter) { return letter == 'f' || letter == 'd' || letter == 'g'; }

uint64_t constantBits(const Operand &operand, char letter) {
  unsigned width = widthOf(letter);
  if (operand.kind == Operand::Kind::Float) {
    if (width == 64)
      return llvm::bit_cast<uint64_t>(operand.number);
    if (letter == 'g') {
      llvm::APFloat half(operand.number);
      bool losesInfo;
      half.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      return half.bitcastToAPInt().getZExtValue();
    }
    return llvm::bit_cast<uint32_t>(float(operand.number)) & (width == 16 ? 0xFFFF : 0xFFFFFFFF);
  }
  // A word that stands for a double is its upper half.
  if (letter == 'd' && operand.isHexadecimal && uint64_t(operand.integer) <= 0xFFFFFFFF)
    return uint64_t(operand.integer) << 32;
  return uint64_t(operand.integer);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Value evaluate(Function function, const Value *sources, unsigned count, const Mode &mode, bool &flag,
               bool &isFlagUnknown) {
  uint64_t plain[6] = {}, unknown = 0;
  for (unsigned i = 0; i < count; ++i) {
    plain[i] = sources[i].bits;
    unknown |= sources[i].unknown;
  }
  Result result = function(plain, mode);
  flag = result.flag;
  isFlagUnknown = false;
  Value value{result.value, 0};
  // What changes with some of many fills of the unknown bits depends on them.
  static const uint64_t fills[] = {0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x2545F4914F6CDD1D, 0x5851F42D4C957F2D};
  for (unsigned turn = 0; unknown && turn < 12 + count; ++turn) {
    uint64_t filled[6] = {};
    for (unsigned i = 0; i < count; ++i) {
      // Or is what another source holds, for equality.
      uint64_t fill = turn < 8    ? (turn >> i & 1 ? ~uint64_t(0) : 0)
                      : turn < 12 ? fills[turn - 8] * (2 * i + 1)
                                  : plain[turn - 12];
      for (unsigned j = 0; j < i; ++j)
        if (sources[j].unknown == sources[i].unknown && !((plain[j] ^ plain[i]) & sources[i].unknown)) {
          fill = filled[j];
          break;
        }
      filled[i] = (plain[i] & ~sources[i].unknown) | (fill & sources[i].unknown);
    }
    Result other = function(filled, mode);
    value.unknown |= other.value ^ result.value;
    isFlagUnknown |= other.flag != result.flag;
  }
  return value;
}

const Op *findOp(const std::string &name) {
  static const std::unordered_map<std::string, const Op *> all = [] {
    std::unordered_map<std::string, const Op *> made;
    for (const Op *table : {integerOps, floatOps, scalarOps, halfOps})
      for (; table->name; ++table)
        made[table->name] = table;
    return made;
  }();
  auto at = all.find(name);
  return at == all.end() ? nullptr : at->second;
}

void issue(Wave &wave, const Issue &what, bool &jumped) {
  if (what.size() == 1 && (runIndexed(wave, what[0]) || runScalar(wave, what[0], jumped) || runLanes(wave, what[0]) ||
                           runMemory(wave, what[0])))
    return;
  if (!runVector(wave, what.data(), what.size()))
    wave.fail("no instruction is known by the name of '" + what[0].name + "'");
}

} // namespace amdgcn

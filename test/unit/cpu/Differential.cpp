//===- Differential.cpp ----------------------------------------------------------------------===//

#include "Differential.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace qd::test {

unsigned getBits(StringRef type) {
  unsigned bits = 0;
  type.drop_while([](char c) { return !isdigit(c); }).getAsInteger(10, bits);
  return bits;
}
unsigned getBytes(StringRef type) { return (getBits(type) + 7) / 8; }
bool isFloat(StringRef type) { return type.contains('f'); }

static const fltSemantics &getSemantics(StringRef type) {
  return type == "f16"    ? APFloat::IEEEhalf()
         : type == "bf16" ? APFloat::BFloat()
         : type == "f32"  ? APFloat::IEEEsingle()
                          : APFloat::IEEEdouble();
}

static uint64_t encode(StringRef type, double value) {
  if (!isFloat(type))
    return uint64_t(int64_t(value));
  APFloat number(value);
  bool lost;
  number.convert(getSemantics(type), APFloat::rmNearestTiesToEven, &lost);
  return number.bitcastToAPInt().getZExtValue();
}

Array makeArray(StringRef type, int64_t count, Values values, unsigned seed) {
  Array array{type.str(), count, std::vector<uint8_t>(count * getBytes(type))};
  std::mt19937_64 random(seed);
  unsigned bits = getBits(type);
  std::vector<uint64_t> edges = {0, 1, ~uint64_t(0), uint64_t(1) << (bits - 1), (uint64_t(1) << (bits - 1)) - 1};
  if (isFloat(type))
    for (double edge :
         {-0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 1e-3, 65504.0, double(INFINITY), -double(INFINITY), double(NAN)})
      edges.push_back(encode(type, edge));
  for (int64_t i = 0; i < count; ++i) {
    uint64_t value = 0;
    switch (values) {
    case Values::Zero: break;
    case Values::Any: value = random() % 4 ? random() : edges[random() % edges.size()]; break;
    case Values::Small: value = encode(type, double(int(random() % 121) - 60) / (isFloat(type) ? 4 : 1)); break;
    case Values::Positive: value = encode(type, double(random() % 100 + 1)); break;
    case Values::Shift: value = random() % bits; break;
    }
    if (type == "i1")
      value &= 1;
    std::memcpy(&array.bytes[i * getBytes(type)], &value, getBytes(type));
  }
  return array;
}

static bool isEqual(StringRef type, uint64_t a, uint64_t b, bool zerosAreEqual) {
  if (a == b)
    return true;
  if (!isFloat(type))
    return false;
  APFloat x(getSemantics(type), APInt(getBits(type), a)), y(getSemantics(type), APInt(getBits(type), b));
  return (x.isNaN() && y.isNaN()) || (zerosAreEqual && x.isZero() && y.isZero());
}

void expectLikeInterp(StringRef text, unsigned lanes, std::array<uint32_t, 3> grid,
                      const std::vector<Array> &arrays, bool zerosAreEqual, unsigned optLevel, StringRef cpu) {
  Module module(text);
  std::vector<Array> results[2] = {arrays, arrays};
  Backend backends[] = {Backend::Interp, Backend::CPU};
  for (unsigned device : {0, 1}) {
    std::unique_ptr<HostProgram> program = module.createProgram(backends[device], lanes, /*threads=*/2, optLevel, cpu);
    ASSERT_TRUE(program) << module.takeDiagnostics() << text.str();
    std::vector<HostArg> args;
    for (Array &array : results[device])
      args.push_back({true, array.bytes.data(), array.count, 0});
    Error error = program->launch("k", grid, args);
    ASSERT_FALSE(bool(error)) << (device ? "cpu: " : "interp: ") << toString(std::move(error)) << text.str();
  }
  unsigned shown = 0;
  for (auto [n, interp, cpu] : enumerate(results[0], results[1]))
    for (int64_t i = 0; i < interp.count && shown < 5; ++i) {
      uint64_t expected = 0, found = 0;
      unsigned size = getBytes(interp.type);
      std::memcpy(&expected, &interp.bytes[i * size], size);
      std::memcpy(&found, &cpu.bytes[i * size], size);
      if (isEqual(interp.type, expected, found, zerosAreEqual))
        continue;
      ADD_FAILURE() << lanes << " lanes, buffer " << n << " of " << interp.type << ", element " << i << ": expected 0x"
                    << utohexstr(expected) << ", found 0x" << utohexstr(found) << "\n" << (shown ? "" : text.str());
      ++shown;
    }
}

} // namespace qd::test

// Instructions of lanes: operands, patterns and parts of words around the operations, and what becomes of the results.
#include "Wave.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"

#include <cstring>
#include <string_view>

namespace amdgcn {

namespace {

/// What an instruction gives, before anything is written: those that issue together read the same state.
struct Results {
  const Operand *destination = nullptr, *flags = nullptr;
  char letter = 'u';
  bool writesExec = false;
  uint64_t written = 0;
  Value values[64];
  Value mask;
};

/// One name for operations that generations call differently.
std::string commonName(const std::string &name) {
  static const struct {
    const char *other, *common;
  } names[] = {{"v_add_u32", "v_add_nc_u32"},        {"v_sub_u32", "v_sub_nc_u32"},
               {"v_subrev_u32", "v_subrev_nc_u32"},  {"v_add_i32", "v_add_nc_i32"},
               {"v_sub_i32", "v_sub_nc_i32"},        {"v_add_u16", "v_add_nc_u16"},
               {"v_sub_u16", "v_sub_nc_u16"},        {"v_subrev_u16", "v_subrev_nc_u16"},
               {"v_add_i16", "v_add_nc_i16"},        {"v_sub_i16", "v_sub_nc_i16"},
               {"v_addc_co_u32", "v_add_co_ci_u32"}, {"v_subb_co_u32", "v_sub_co_ci_u32"},
               {"v_subbrev_co_u32", "v_subrev_co_ci_u32"}, {"v_mad_co_u64_u32", "v_mad_u64_u32"},
               {"v_mad_co_i64_i32", "v_mad_i64_i32"}, {"v_mad_nc_u64_u32", "v_mad_u64_u32"}};
  for (const auto &row : names)
    if (name == row.other)
      return row.common;
  return name;
}

uint64_t take(uint64_t word, Part part, bool isSigned) {
  if (part == Part::Whole)
    return uint32_t(word);
  unsigned width = part < Part::Word0 ? 8 : 16;
  unsigned shift = part < Part::Word0 ? 8 * unsigned(part) : 16 * (unsigned(part) - unsigned(Part::Word0));
  uint64_t taken = word >> shift & ((1u << width) - 1);
  if (isSigned && taken >> (width - 1))
    taken |= uint32_t(~0u << width);
  return taken;
}

Value readPlace(Wave &wave, const Operand &operand, unsigned words, unsigned lane) {
  if (operand.kind == Operand::Kind::Scalar)
    return wave.scalar(operand, words);
  Value value;
  for (unsigned i = 0; i < words; ++i) {
    const Word &word = wave.vector(operand.place + i, lane);
    value.bits |= uint64_t(word.value) << 32 * i;
    value.unknown |= uint64_t(word.unknown) << 32 * i;
  }
  return value;
}

Value readSource(Wave &wave, const Instruction &what, const Operand &operand, char letter, unsigned index,
                 unsigned lane) {
  if (letter == 'x')
    letter = what.selectHighOfPair.value_or(0) >> index & 1 ? 'g' : 'f';
  unsigned width = widthOf(letter);
  Value value;
  bool isRegister = operand.kind == Operand::Kind::Vector || operand.kind == Operand::Kind::Scalar;
  if (isRegister) {
    value = readPlace(wave, operand, width == 64 ? 2 : 1, lane);
    Part part = what.parts && index < 2 ? what.parts->sources[index] : Part::Whole;
    if (part != Part::Whole) {
      value.bits = take(value.bits, part, operand.isSignExtended);
      value.unknown = take(value.unknown, part, operand.isSignExtended);
    }
    if (width == 16) {
      bool isHigh = operand.half >= 0 ? operand.half : !what.parts && what.selectHigh >> index & 1;
      if (isHigh)
        value.bits >>= 16, value.unknown >>= 16;
      value.bits &= 0xFFFF, value.unknown &= 0xFFFF;
    }
  } else if (operand.kind == Operand::Kind::Condition) {
    value = {wave.condition, wave.isConditionUnknown};
  } else if (operand.kind == Operand::Kind::Name || operand.kind == Operand::Kind::Off) {
    wave.fail("'" + operand.name + "' is not known");
  } else {
    value.bits = constantBits(operand, letter);
    if (width < 64)
      value.bits &= (uint64_t(1) << width) - 1;
  }
  if (isFloatLetter(letter)) {
    uint64_t sign = uint64_t(1) << (width - 1);
    if (operand.isAbsolute)
      value.bits &= ~sign, value.unknown &= ~sign;
    if (operand.isNegated)
      value.bits ^= sign;
  } else if (operand.isNegated || operand.isAbsolute) {
    wave.fail("an operand is negated that is no float");
  }
  return value;
}

bool bit(uint64_t mask, unsigned lane) { return mask >> lane & 1; }

/// The source that a pattern moves. Integer subtractions of reversed operands exchange them before the first is moved,
/// and so did shifts by the first before gfx11 (LLVM pull request 216835); those of floats add what they have negated.
unsigned movedSource(const ChipModel &chip, const std::string &name) {
  auto startsWith = [&](const char *start) { return !name.compare(0, std::strlen(start), start); };
  bool isInteger = name.find("_f16") == std::string::npos && name.find("_f32") == std::string::npos;
  bool isSubtraction = isInteger && (startsWith("v_subrev_") || startsWith("v_subbrev_"));
  bool isShift = startsWith("v_lshlrev_") || startsWith("v_lshrrev_") || startsWith("v_ashrrev_");
  return isSubtraction || (isShift && chip.generation() < 11) ? 1 : 0;
}

/// What the lane reads of that source instead of its own: another lane, or nothing. False where it is not written.
bool chooseLane(Wave &wave, const Instruction &what, unsigned lane, unsigned &from, bool &readsZero) {
  from = lane;
  readsZero = false;
  if (!what.pattern)
    return true;
  const LanePattern &pattern = *what.pattern;
  if (pattern.kind != LanePattern::Kind::Eight &&
      !(pattern.rowMask >> lane / 16 & 1 && pattern.bankMask >> lane % 16 / 4 & 1))
    return false;
  int source = sourceLane(pattern, lane, wave.lanes());
  bool isThere = source >= 0 && (pattern.fetchInactive || bit(wave.exec(), unsigned(source)));
  if (isThere) {
    from = unsigned(source);
    return true;
  }
  readsZero = true;
  return pattern.boundControl || pattern.kind == LanePattern::Kind::Eight;
}

double scaled(double value, int shift, bool clamps) {
  value = shift < 0 ? value / 2 : value * (1 << shift);
  return !clamps ? value : value >= 1 ? 1 : value > 0 ? value : 0;
}

void modifyOutput(const Instruction &what, char letter, Value &value) {
  if ((!what.outputShift && !what.hasClamp) || !isFloatLetter(letter))
    return;
  if (letter == 'f')
    value.bits = llvm::bit_cast<uint32_t>(
        float(scaled(llvm::bit_cast<float>(uint32_t(value.bits)), what.outputShift, what.hasClamp)));
  else if (letter == 'd')
    value.bits = llvm::bit_cast<uint64_t>(scaled(llvm::bit_cast<double>(value.bits), what.outputShift, what.hasClamp));
  else {
    llvm::APFloat half(llvm::APFloat::IEEEhalf(), llvm::APInt(16, value.bits));
    Operand operand;
    operand.kind = Operand::Kind::Float;
    operand.number = scaled(half.convertToDouble(), what.outputShift, what.hasClamp);
    value.bits = constantBits(operand, 'g');
  }
  if (value.unknown)
    value.unknown = ~uint64_t(0) >> (64 - widthOf(letter));
}

struct Form {
  std::string_view results, sources;
};

/// Operands in the order of the form: results first. Fills in what the text leaves out.
bool takeOperands(Wave &wave, const Instruction &what, const Form &form, Results &results,
                  std::vector<const Operand *> &sources) {
  static const Operand vcc = [] {
    Operand made;
    made.kind = Operand::Kind::Scalar;
    made.place = vccPlace;
    return made;
  }();
  size_t next = 0, needed = 0;
  for (char letter : form.sources)
    needed += letter != '+' && letter != 'l' && letter != 't' && letter != 'v' && letter != 'm';
  auto &operands = what.operands;
  for (char letter : form.results) {
    // The text names no flags where they go to VCC and the encoding has no other place.
    bool isNamed = operands.size() - next > needed || letter != 'C';
    if (next == operands.size())
      return wave.fail("there are too few operands"), false;
    (letter == 'C' ? results.flags : results.destination) = isNamed ? &operands[next++] : &vcc;
  }
  for (char letter : form.sources) {
    if (letter == 'v' || (letter == 'c' && next == operands.size())) {
      sources.push_back(&vcc);
    } else if (letter == '+') {
      sources.push_back(results.destination);
    } else if (letter == 'l' || letter == 't' || letter == 'm') {
      sources.push_back(nullptr);
    } else {
      if (next == operands.size())
        return wave.fail("there are too few operands"), false;
      sources.push_back(&operands[next++]);
    }
  }
  if (next != operands.size())
    return wave.fail("there are more operands than are understood"), false;
  return true;
}

bool compute(Wave &wave, const Instruction &what, const Form &form, Function function, Results &results) {
  std::vector<const Operand *> operands;
  if (!results.writesExec && !takeOperands(wave, what, form, results, operands))
    return true;
  if (results.writesExec)
    for (const Operand &operand : what.operands)
      operands.push_back(&operand);
  if (operands.size() != form.sources.size())
    return wave.fail("there are more operands than are understood"), true;
  if (results.destination)
    results.letter = form.results[0];
  uint64_t exec = wave.exec();
  unsigned moved = movedSource(wave.chip, what.name);
  for (unsigned lane = 0; lane < wave.lanes(); ++lane) {
    if (!bit(exec, lane))
      continue;
    unsigned from;
    bool readsZero;
    if (!chooseLane(wave, what, lane, from, readsZero)) {
      // What a carry holds where its lane is not written is not established.
      results.mask.unknown |= results.flags ? uint64_t(1) << lane : 0;
      continue;
    }
    Value sources[6];
    for (unsigned i = 0; i < form.sources.size(); ++i) {
      char letter = form.sources[i];
      if (letter == 'l') {
        sources[i] = {lane, 0};
      } else if (letter == 't') {
        sources[i] = {what.table, 0};
      } else if (letter == 'm') {
        sources[i] = {what.selectHighOfPair.value_or(0), 0};
      } else if (letter == 'c' || letter == 'v') {
        Value mask = wave.mask(*operands[i]);
        sources[i] = {bit(mask.bits, lane), bit(mask.unknown, lane)};
      } else if (i == moved && readsZero) {
        sources[i] = {0, what.pattern->kind == LanePattern::Kind::Eight ? ~uint64_t(0) >> (64 - widthOf(letter)) : 0};
      } else {
        char type = letter == '+' ? form.results[0] : letter;
        sources[i] = readSource(wave, what, *operands[i], type, i, i == moved ? from : lane);
      }
    }
    bool flag, isFlagUnknown;
    Value value = evaluate(function, sources, unsigned(form.sources.size()), wave.mode, flag, isFlagUnknown);
    modifyOutput(what, results.letter, value);
    results.values[lane] = value;
    results.written |= uint64_t(1) << lane;
    results.mask.bits |= uint64_t(flag) << lane;
    results.mask.unknown |= uint64_t(isFlagUnknown) << lane;
  }
  return true;
}

/// Whether an operation of 16 bits clears the register's other half, on chips that have no better.
bool clearsHigh(const Wave &wave, const Instruction &what) {
  if (!wave.chip.isGfx9())
    return false;
  for (const char *name : {"v_mad_u16", "v_mad_i16", "v_fma_f16", "v_div_fixup_f16", "v_mad_f16"})
    if (what.name == name)
      return false;
  return true;
}

/// The old word with the part replaced.
uint32_t place(uint32_t old, uint64_t value, const Parts &parts) {
  if (parts.destination == Part::Whole)
    return uint32_t(value);
  bool isByte = parts.destination < Part::Word0;
  unsigned width = isByte ? 8 : 16;
  unsigned shift =
      isByte ? 8 * unsigned(parts.destination) : 16 * (unsigned(parts.destination) - unsigned(Part::Word0));
  uint32_t mask = ((1u << width) - 1) << shift, moved = uint32_t(value) << shift & mask;
  if (parts.unused == Parts::Unused::Preserve)
    return (old & ~mask) | moved;
  if (parts.unused == Parts::Unused::Extend && value >> (width - 1) & 1 && shift + width < 32)
    moved |= ~0u << (shift + width);
  return moved;
}

void writeLane(Wave &wave, const Instruction &what, const Results &results, unsigned lane) {
  const Operand &destination = *results.destination;
  Value value = results.values[lane];
  unsigned width = widthOf(results.letter);
  Word &low = wave.vector(destination.place, lane);
  if (what.parts) {
    low = {place(low.value, value.bits, *what.parts), place(low.unknown, value.unknown, *what.parts)};
    return;
  }
  if (width == 16) {
    bool isMix = !what.name.compare(0, 9, "v_fma_mix");
    bool isHigh = destination.half >= 0 ? destination.half : isMix ? what.name[9] == 'h' : what.selectHigh >> 3 & 1;
    bool clears = destination.half < 0 && !isMix && !isHigh && clearsHigh(wave, what);
    uint32_t mask = isHigh ? 0xFFFF0000 : 0xFFFF, kept = clears ? 0 : ~mask;
    low.value = (low.value & kept) | (uint32_t(value.bits) << (isHigh ? 16 : 0) & mask);
    low.unknown = (low.unknown & kept) | (uint32_t(value.unknown) << (isHigh ? 16 : 0) & mask);
    return;
  }
  low = {uint32_t(value.bits), uint32_t(value.unknown)};
  if (width == 64)
    wave.vector(destination.place + 1, lane) = {uint32_t(value.bits >> 32), uint32_t(value.unknown >> 32)};
}

void commit(Wave &wave, const Instruction &what, const Results &results) {
  if (results.writesExec) {
    Operand exec;
    exec.kind = Operand::Kind::Scalar;
    exec.place = execPlace;
    wave.setMask(exec, results.mask);
  } else if (results.flags) {
    wave.setMask(*results.flags, results.mask);
  }
  if (!results.destination)
    return;
  // gfx12 has float operations of one value.
  if (results.destination->kind == Operand::Kind::Scalar)
    return wave.setScalar(*results.destination, widthOf(results.letter) / 32 + (widthOf(results.letter) == 16),
                          results.values[unsigned(llvm::countr_zero(results.written | uint64_t(1) << 63))]);
  for (unsigned lane = 0; lane < wave.lanes(); ++lane)
    if (bit(results.written, lane))
      writeLane(wave, what, results, lane);
}

bool computeComparison(Wave &wave, const Instruction &what, Results &results) {
  bool setsExec = !what.name.compare(0, 7, "v_cmpx_");
  size_t start = setsExec ? 7 : 6, type = what.name.rfind('_') + 1;
  std::string kind = what.name.substr(start, type - 1 - start), typeName = what.name.substr(type);
  Function function = findComparison(kind, typeName);
  if (!function)
    return false;
  char letter = typeName == "f32" ? 'f' : typeName == "f64" ? 'd' : typeName == "f16" ? 'g'
                : typeName.substr(1) == "64" ? 'w' : typeName.substr(1) == "16" ? 'h' : 'u';
  // A class is asked for by a mask of bits.
  const char sources[3] = {letter, kind == "class" ? 'u' : letter, 0};
  results.writesExec = setsExec;
  if (setsExec && wave.chip.isGfx9())
    return false;
  return compute(wave, what, {"C", sources}, function, results);
}

bool computeOne(Wave &wave, const Instruction &what, Results &results) {
  if (!what.name.compare(0, 5, "v_cmp"))
    return computeComparison(wave, what, results);
  std::string name = commonName(what.name);
  const Op *op = findOp(name);
  if (!op)
    return false;
  if (what.hasClamp && !isFloatLetter(op->form[0])) {
    op = findOp(name + " clamp");
    if (!op)
      return false;
  }
  std::string_view form = op->form;
  size_t colon = form.find(':');
  return compute(wave, what, {form.substr(0, colon), form.substr(colon + 1)}, op->function, results);
}

} // namespace

/// Of two registers' words the first or the second each.
static void movePair(Wave &wave, const Instruction &what) {
  auto &operands = what.operands;
  for (unsigned lane = 0; lane < wave.lanes(); ++lane) {
    if (!bit(wave.exec(), lane))
      continue;
    Value words[2];
    for (unsigned i = 0; i < 2; ++i) {
      const Operand &source = operands[1 + i];
      bool isRegister = source.kind == Operand::Kind::Vector || source.kind == Operand::Kind::Scalar;
      Value both = isRegister ? readPlace(wave, source, 2, lane) : Value{constantBits(source, 'u') & 0xFFFFFFFF, 0};
      unsigned shift = what.selectHigh >> i & 1 ? 32 : 0;
      words[i] = {both.bits >> shift, both.unknown >> shift};
    }
    for (unsigned i = 0; i < 2; ++i)
      wave.vector(operands[0].place + i, lane) = {uint32_t(words[i].bits), uint32_t(words[i].unknown)};
  }
}

/// An operation on each half of the operands, or on each of two words, as the instruction chooses them.
static bool runPacked(Wave &wave, const Instruction &what) {
  std::string name = commonName("v_" + what.name.substr(5));
  const Op *op = findOp(name);
  std::string_view form = op ? op->form : "";
  size_t colon = form.find(':'), numSources = form.size() - colon - 1;
  if (!op || what.hasClamp || what.pattern || what.operands.size() != numSources + 1 || numSources > 3)
    return false;
  unsigned width = widthOf(form[0]), high = what.selectHighOfPair.value_or(7);
  for (unsigned lane = 0; lane < wave.lanes(); ++lane) {
    if (!bit(wave.exec(), lane))
      continue;
    Value results[2];
    for (unsigned part = 0; part < 2; ++part) {
      Value sources[3];
      for (unsigned i = 0; i < numSources; ++i) {
        const Operand &operand = what.operands[1 + i];
        char letter = form[colon + 1 + i];
        bool isRegister = operand.kind == Operand::Kind::Vector || operand.kind == Operand::Kind::Scalar;
        bool isHigh = (part ? high : what.selectHigh) >> i & 1;
        Value both = isRegister ? readPlace(wave, operand, width / 16, lane) : Value{constantBits(operand, letter), 0};
        if (isHigh && (isRegister || width == 16))
          both.bits >>= width, both.unknown >>= width;
        uint64_t mask = (uint64_t(1) << width) - 1;
        sources[i] = {both.bits & mask, both.unknown & mask};
        if (isFloatLetter(letter) && ((part ? what.negateHigh : what.negateLow) >> i & 1))
          sources[i].bits ^= uint64_t(1) << (width - 1);
      }
      bool flag, isFlagUnknown;
      results[part] = evaluate(op->function, sources, unsigned(numSources), wave.mode, flag, isFlagUnknown);
    }
    unsigned first = what.operands[0].place;
    if (width == 16) {
      wave.vector(first, lane) = {uint32_t(results[0].bits | results[1].bits << 16),
                                  uint32_t(results[0].unknown | results[1].unknown << 16)};
      continue;
    }
    for (unsigned part = 0; part < 2; ++part)
      wave.vector(first + part, lane) = {uint32_t(results[part].bits), uint32_t(results[part].unknown)};
  }
  return true;
}

bool runVector(Wave &wave, const Instruction *pair, size_t count) {
  if (pair[0].name == "v_pk_mov_b32")
    return movePair(wave, pair[0]), true;
  if (!pair[0].name.compare(0, 5, "v_pk_"))
    return runPacked(wave, pair[0]);
  std::vector<Results> results(count);
  for (size_t i = 0; i < count; ++i)
    if (pair[i].name.compare(0, 2, "v_") || !computeOne(wave, pair[i], results[i]))
      return false;
  if (wave.fault.empty())
    for (size_t i = 0; i < count; ++i)
      commit(wave, pair[i], results[i]);
  return true;
}

} // namespace amdgcn

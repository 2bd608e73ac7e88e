// Vector registers whose numbers M0 says: moves relative to it, and gfx9's mode in which other operations are.
#include "Wave.h"

namespace amdgcn {

namespace {

/// What of an operation is relative to M0, by the bits of the mode.
enum Relative : unsigned { Source0 = 1, Source1 = 2, Source2 = 4, Destination = 8 };

uint32_t knownWord(Wave &wave, Word word) {
  if (word.unknown)
    wave.fail("a register's number is what nobody has written");
  return word.value;
}

/// The instruction as it would be written for the registers that are meant.
Instruction resolve(Wave &wave, const Instruction &what, unsigned relative, uint32_t index) {
  Instruction made = what;
  for (size_t i = 0; i < made.operands.size(); ++i) {
    Operand &operand = made.operands[i];
    bool isRelative = i ? relative >> (i - 1) & 1 : relative & Destination;
    if (!isRelative || operand.kind != Operand::Kind::Vector)
      continue;
    unsigned place = operand.place + index, end = operand.place < numVectors ? numVectors : numRegisters;
    if (place + operand.words > end || index >= numVectors)
      wave.fail("vector register " + std::to_string(place) + " does not exist");
    else
      operand.place = uint16_t(place);
  }
  return made;
}

bool setMode(Wave &wave, const Instruction &what) {
  Word &m0 = wave.scalars[m0Place];
  auto setIndex = [&] {
    Value index = wave.scalar(what.operands[0], 1);
    uint32_t low = knownWord(wave, {uint32_t(index.bits), uint32_t(index.unknown)}) & 0xFF;
    m0 = {(m0.value & ~0xFFu) | low, m0.unknown & ~0xFFu};
  };
  auto setRelative = [&](const Operand &operand) {
    const std::string &names = operand.name;
    wave.relative = 0;
    if (names.find("SRC0") != std::string::npos)
      wave.relative |= Source0;
    if (names.find("SRC1") != std::string::npos)
      wave.relative |= Source1;
    if (names.find("SRC2") != std::string::npos)
      wave.relative |= Source2;
    if (names.find("DST") != std::string::npos)
      wave.relative |= Destination;
    m0 = {(m0.value & ~0xF000u) | wave.relative << 12, m0.unknown & ~0xF000u};
  };
  if (what.name == "s_set_gpr_idx_on") {
    setIndex();
    setRelative(what.operands[1]);
  } else if (what.name == "s_set_gpr_idx_idx") {
    setIndex();
  } else if (what.name == "s_set_gpr_idx_mode") {
    setRelative(what.operands[0]);
  } else if (what.name == "s_set_gpr_idx_off") {
    wave.relative = 0;
  } else {
    return false;
  }
  return true;
}

} // namespace

bool runIndexed(Wave &wave, const Instruction &what) {
  if (!what.name.compare(0, 14, "s_set_gpr_idx_"))
    return setMode(wave, what);
  if (what.name[0] != 'v')
    return false;
  bool isSource = what.name == "v_movrels_b32", isDestination = what.name == "v_movreld_b32";
  Word m0 = wave.scalars[m0Place];
  Instruction resolved;
  if (isSource || isDestination) {
    resolved = resolve(wave, what, isSource ? Source0 : Destination, knownWord(wave, m0));
    resolved.name = "v_mov_b32";
  } else if (wave.relative) {
    m0.unknown &= 0xFF;
    resolved = resolve(wave, what, wave.relative, knownWord(wave, m0) & 0xFF);
  } else {
    return false;
  }
  return !wave.fault.empty() || runVector(wave, &resolved, 1);
}

} // namespace amdgcn

// Instructions that move values between lanes, by the ISA manuals.
#include "Wave.h"

#include "llvm/ADT/bit.h"

#include <cstdio>
#include <cstdlib>

namespace amdgcn {

int sourceLane(const LanePattern &pattern, unsigned lane, unsigned lanes) {
  using Kind = LanePattern::Kind;
  int n = int(lane), row = n & ~15, in = n & 15, amount = int(pattern.amount), last = int(lanes) - 1;
  auto inRow = [&](int place) { return place < 0 || place > 15 ? -1 : row + place; };
  switch (pattern.kind) {
  case Kind::QuadPerm:
    return (n & ~3) + pattern.lanes[lane & 3];
  case Kind::Eight:
    return (n & ~7) + pattern.lanes[lane & 7];
  case Kind::RowShl:
    return inRow(in + amount);
  case Kind::RowShr:
    return inRow(in - amount);
  case Kind::RowRor:
    return row + ((in - amount) & 15);
  case Kind::WaveShl:
    return n == last ? -1 : n + 1;
  case Kind::WaveShr:
    return n - 1;
  case Kind::WaveRol:
    return (n + 1) & last;
  case Kind::WaveRor:
    return (n - 1) & last;
  case Kind::Mirror:
    return row + 15 - in;
  case Kind::HalfMirror:
    return (n & ~7) + 7 - (n & 7);
  case Kind::Bcast15: // the last lane of the row before
    return row - 1;
  case Kind::Bcast31: // lane 31 to the upper half
    return n < 32 ? -1 : 31;
  case Kind::Share:
    return row + amount;
  case Kind::Xmask:
    return n ^ amount;
  }
  return -1;
}

namespace {

bool bit(uint64_t mask, unsigned lane) { return mask >> lane & 1; }

/// A lane's word, or the one that all lanes have.
Word read(Wave &wave, const Operand &operand, unsigned lane) {
  if (operand.kind == Operand::Kind::Vector)
    return wave.vector(operand.place, lane);
  if (operand.kind == Operand::Kind::Scalar) {
    Value value = wave.scalar(operand, 1);
    return {u32(value.bits), u32(value.unknown)};
  }
  return {u32(constantBits(operand, 'u')), 0};
}

/// A number that all lanes must agree on and know.
u32 known(Wave &wave, const Operand &operand) {
  Word word = read(wave, operand, 0);
  if (word.unknown)
    wave.fail("the lanes that move depend on what nobody has written");
  return word.value;
}

void setWord(Wave &wave, const Operand &operand, Word word) { wave.setScalar(operand, 1, {word.value, word.unknown}); }

using Words = std::array<Word, 64>;
Words snapshot(Wave &wave, const Operand &operand) {
  Words words;
  for (unsigned lane = 0; lane < wave.lanes(); ++lane)
    words[lane] = read(wave, operand, lane);
  return words;
}
void store(Wave &wave, const Operand &operand, const Words &words, uint64_t mask) {
  for (unsigned lane = 0; lane < wave.lanes(); ++lane)
    if (bit(mask, lane))
      wave.vector(operand.place, lane) = words[lane];
}

/// permlane16 and permlanex16: each row's lanes from the same row or its neighbour.
void permuteRows(Wave &wave, const Instruction &what, bool isCrossed) {
  bool fetchesInactive = what.selectHigh & 1, boundControl = what.selectHigh >> 1 & 1;
  uint64_t exec = wave.exec(), selectors = 0, written = 0;
  if (what.operands.size() == 4)
    selectors = known(wave, what.operands[2]) | uint64_t(known(wave, what.operands[3])) << 32;
  Words from = snapshot(wave, what.operands[1]), made;
  for (unsigned lane = 0; lane < wave.lanes(); ++lane) {
    // The variants of gfx12 take the place from a register.
    Word place =
        what.operands.size() == 4 ? Word{u32(selectors >> 4 * (lane & 15)), 0} : read(wave, what.operands[2], lane);
    if (!bit(exec, lane))
      continue;
    if (place.unknown & 15) {
      made[lane] = Word();
      written |= uint64_t(1) << lane;
      continue;
    }
    unsigned source = ((lane & ~15u) ^ (isCrossed ? 16 : 0)) + (place.value & 15);
    if (fetchesInactive || bit(exec, source))
      made[lane] = from[source];
    else if (boundControl)
      made[lane] = {0, 0};
    else
      continue;
    written |= uint64_t(1) << lane;
  }
  store(wave, what.operands[0], made, written);
}

/// permlane16_swap and permlane32_swap: the odd rows or upper half of the first with the even rows or lower half of the
/// second. Lanes that take no part keep what they have.
void swapRows(Wave &wave, const Instruction &what, unsigned distance) {
  uint64_t exec = wave.exec();
  bool fetchesInactive = what.pattern && what.pattern->fetchInactive;
  Words first = snapshot(wave, what.operands[0]), second = snapshot(wave, what.operands[1]);
  Words newFirst = first, newSecond = second;
  for (unsigned lane = 0; lane < wave.lanes(); ++lane) {
    unsigned other = lane ^ distance;
    bool isRead = fetchesInactive || bit(exec, other);
    if (lane & distance)
      newFirst[lane] = isRead ? second[other] : first[lane];
    else
      newSecond[lane] = isRead ? first[other] : second[lane];
  }
  store(wave, what.operands[0], newFirst, exec);
  store(wave, what.operands[1], newSecond, exec);
}

void permuteBySharedMemory(Wave &wave, const Instruction &what) {
  bool isBack = what.name.find("bpermute") != std::string::npos,
       fetchesInactive = what.name.find("_fi_") != std::string::npos;
  const Operand &destination = what.operands[0], &address = what.operands[1], &data = what.operands[2];
  // Halves of a wave of 64 do not reach each other on gfx10 and gfx11.
  unsigned reach = wave.chip.generation() == 10 || wave.chip.generation() == 11 ? 32 : wave.lanes();
  uint64_t exec = wave.exec();
  Words from = snapshot(wave, data), made;
  for (Word &word : made)
    word = {0, 0};
  for (unsigned lane = 0; lane < wave.lanes(); ++lane) {
    if (!bit(exec, lane))
      continue;
    Word place = read(wave, address, lane);
    u32 words = (place.value + u32(what.offset)) >> 2;
    unsigned other = (lane & ~(reach - 1)) + (words & (reach - 1));
    if (place.unknown & (4 * reach - 4)) {
      if (!isBack)
        return wave.fail("a lane is written that nobody knows");
      made[lane] = Word();
    } else if (isBack) {
      made[lane] = fetchesInactive || bit(exec, other) ? from[other] : Word{0, 0};
    } else {
      made[other] = from[lane];
    }
  }
  store(wave, destination, made, exec);
}

/// ds_swizzle: quads, groups of 32 by masks, and the names that assemblers give to such masks.
void swizzle(Wave &wave, const Instruction &what) {
  const std::string &text = what.swizzle;
  unsigned a = 31, o = 0, x = 0, quad[4] = {}, amount = 0;
  char mask[8] = {};
  bool isQuad = false, isRotate = false;
  if (text.empty()) {
    unsigned pattern = unsigned(what.offset) & 0xFFFF;
    isQuad = pattern >> 15;
    isRotate = pattern >> 13 == 6;
    if (isRotate)
      return wave.fail("a swizzle rotates");
    for (unsigned i = 0; i < 4; ++i)
      quad[i] = pattern >> 2 * i & 3;
    a = pattern & 31, o = pattern >> 5 & 31, x = pattern >> 10 & 31;
  } else if (std::sscanf(text.c_str(), "swizzle(QUAD_PERM,%u,%u,%u,%u)", &quad[0], &quad[1], &quad[2], &quad[3]) == 4) {
    isQuad = true;
  } else if (std::sscanf(text.c_str(), "swizzle(SWAP,%u)", &amount) == 1) {
    x = amount;
  } else if (std::sscanf(text.c_str(), "swizzle(REVERSE,%u)", &amount) == 1) {
    x = amount - 1;
  } else if (std::sscanf(text.c_str(), "swizzle(BROADCAST,%u,%u)", &amount, &o) == 2) {
    a = 32 - amount;
  } else if (std::sscanf(text.c_str(), "swizzle(BITMASK_PERM,\"%5[01pi]\")", mask) == 1) {
    a = 0;
    for (unsigned i = 0; i < 5; ++i) {
      unsigned at = 16u >> i;
      a |= mask[i] == 'p' || mask[i] == 'i' ? at : 0;
      o |= mask[i] == '1' ? at : 0;
      x |= mask[i] == 'i' ? at : 0;
    }
  } else {
    return wave.fail("'" + text + "' is not understood");
  }
  uint64_t exec = wave.exec();
  Words from = snapshot(wave, what.operands[1]), made;
  for (unsigned lane = 0; lane < wave.lanes(); ++lane) {
    unsigned in = lane & 31, source = isQuad ? (lane & ~3u) + quad[lane & 3] : (lane & ~31u) + (((in & a) | o) ^ x);
    made[lane] = bit(exec, source) ? from[source] : Word{0, 0};
  }
  store(wave, what.operands[0], made, exec);
}

} // namespace

bool runLanes(Wave &wave, const Instruction &what) {
  const std::string &name = what.name;
  auto &operands = what.operands;
  if (name == "v_readfirstlane_b32") {
    uint64_t exec = wave.exec();
    setWord(wave, operands[0], read(wave, operands[1], exec ? unsigned(llvm::countr_zero(exec)) : 0));
  } else if (name == "v_readlane_b32") {
    setWord(wave, operands[0], read(wave, operands[1], known(wave, operands[2]) & (wave.lanes() - 1)));
  } else if (name == "v_writelane_b32") {
    wave.vector(operands[0].place, known(wave, operands[2]) & (wave.lanes() - 1)) = read(wave, operands[1], 0);
  } else if (name == "v_permlane64_b32") {
    // Reads lanes that take no part; does nothing in waves of 32.
    Words from = snapshot(wave, operands[1]), made = from;
    for (unsigned lane = 0; lane < 64; ++lane)
      made[lane] = from[lane ^ 32];
    if (wave.lanes() == 64)
      store(wave, operands[0], made, wave.exec());
  } else if (name == "v_permlane16_b32" || name == "v_permlane16_var_b32") {
    permuteRows(wave, what, false);
  } else if (name == "v_permlanex16_b32" || name == "v_permlanex16_var_b32") {
    permuteRows(wave, what, true);
  } else if (name == "v_permlane16_swap_b32") {
    swapRows(wave, what, 16);
  } else if (name == "v_permlane32_swap_b32") {
    swapRows(wave, what, 32);
  } else if (name == "v_swap_b32") {
    Words first = snapshot(wave, operands[0]), second = snapshot(wave, operands[1]);
    store(wave, operands[0], second, wave.exec());
    store(wave, operands[1], first, wave.exec());
  } else if (name == "ds_bpermute_b32" || name == "ds_permute_b32" || name == "ds_bpermute_fi_b32") {
    permuteBySharedMemory(wave, what);
  } else if (name == "ds_swizzle_b32") {
    swizzle(wave, what);
  } else {
    return false;
  }
  return true;
}

} // namespace amdgcn

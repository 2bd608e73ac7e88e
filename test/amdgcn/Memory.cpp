// Instructions that read and write memory: global, shared and private. Memory is one: what a wave stores, the others
// read at once.
#include "Wave.h"

#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace amdgcn {

namespace {

bool bit(uint64_t mask, unsigned lane) { return mask >> lane & 1; }
bool removePrefix(std::string &text, const std::string &start) {
  if (text.compare(0, start.size(), start))
    return false;
  text.erase(0, start.size());
  return true;
}

/// What moves: so many bytes, of which less than a word may extend by their sign or be a half of a register.
struct Access {
  unsigned bytes = 0;
  bool isSigned = false;
  int half = -1;
};
bool parseAccess(std::string text, Access &access) {
  for (const char *part : {"d16_hi", "d16"}) {
    size_t at = text.find(part);
    if (at == std::string::npos)
      continue;
    access.half = part[3] == '_';
    text.erase(at, std::strlen(part));
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    break;
  }
  static const struct {
    const char *name;
    unsigned bytes;
    bool isSigned;
  } rows[] = {{"dword", 4, false},  {"dwordx2", 8, false}, {"dwordx3", 12, false}, {"dwordx4", 16, false},
              {"b32", 4, false},    {"b64", 8, false},     {"b96", 12, false},     {"b128", 16, false},
              {"ubyte", 1, false},  {"u8", 1, false},      {"sbyte", 1, true},     {"i8", 1, true},
              {"byte", 1, false},   {"b8", 1, false},      {"ushort", 2, false},   {"u16", 2, false},
              {"sshort", 2, true},  {"i16", 2, true},      {"short", 2, false},    {"b16", 2, false},
              {"dwordx8", 32, false}, {"dwordx16", 64, false}, {"b256", 32, false}, {"b512", 64, false}};
  for (const auto &row : rows)
    if (text == row.name) {
      access.bytes = row.bytes;
      access.isSigned = row.isSigned;
      return true;
    }
  return false;
}

/// A place in memory, and where what is unknown about its bytes is kept; null where that is kept nowhere.
struct Place {
  uint8_t *value = nullptr, *unknown = nullptr;
};

enum class Space { Global, Shared, Private };

Place locate(Wave &wave, Space space, u64 address, unsigned bytes, bool isWrite, unsigned lane) {
  if (space == Space::Global) {
    Place place{(*wave.memory)(address, bytes, isWrite), nullptr};
    if (!place.value)
      wave.fail("lane " + std::to_string(lane) + " accesses what is not the device's memory");
    return place;
  }
  Bytes &all = space == Space::Shared ? wave.group->lds : wave.scratch;
  u64 size = space == Space::Shared ? all.value.size() : wave.scratchBytes;
  u64 base = space == Space::Shared ? 0 : lane * wave.scratchBytes;
  if (address > size || bytes > size - address) {
    wave.fail("lane " + std::to_string(lane) + " accesses byte " + std::to_string(address) + " of " +
              std::to_string(size) + (space == Space::Shared ? " of shared memory" : " of its own memory"));
    return {};
  }
  return {&all.value[base + address], &all.unknown[base + address]};
}

Value readWord(const Place &place, unsigned bytes) {
  Value value;
  std::memcpy(&value.bits, place.value, bytes);
  if (place.unknown)
    std::memcpy(&value.unknown, place.unknown, bytes);
  return value;
}
void writeWord(Wave &wave, const Place &place, unsigned bytes, Value value, unsigned lane) {
  std::memcpy(place.value, &value.bits, bytes);
  if (place.unknown)
    std::memcpy(place.unknown, &value.unknown, bytes);
  else if (bytes < 8 ? value.unknown << (64 - 8 * bytes) : value.unknown)
    wave.fail("lane " + std::to_string(lane) + " stores what nobody has written");
}

void load(Wave &wave, const Access &access, const Place &place, unsigned destination, unsigned lane) {
  if (access.bytes >= 4) {
    for (unsigned i = 0; i < access.bytes / 4; ++i) {
      Value word = readWord({place.value + 4 * i, place.unknown ? place.unknown + 4 * i : nullptr}, 4);
      wave.vector(destination + i, lane) = {u32(word.bits), u32(word.unknown)};
    }
    return;
  }
  Value part = readWord(place, access.bytes);
  unsigned spare = 64 - 8 * access.bytes;
  if (access.isSigned) {
    part.bits = u64(int64_t(part.bits << spare) >> spare);
    part.unknown = u64(int64_t(part.unknown << spare) >> spare);
  }
  Word &word = wave.vector(destination, lane);
  if (access.half < 0) {
    word = {u32(part.bits), u32(part.unknown)};
    return;
  }
  unsigned shift = access.half ? 16 : 0;
  u32 mask = 0xFFFFu << shift;
  word = {(word.value & ~mask) | (u32(part.bits) << shift & mask),
          (word.unknown & ~mask) | (u32(part.unknown) << shift & mask)};
}

void store(Wave &wave, const Access &access, const Place &place, unsigned source, unsigned lane) {
  for (unsigned done = 0; done < access.bytes; done += 4) {
    const Word &word = wave.vector(source + done / 4, lane);
    unsigned shift = access.half == 1 ? 16 : 0;
    writeWord(wave, {place.value + done, place.unknown ? place.unknown + done : nullptr},
              std::min(4u, access.bytes - done), {word.value >> shift, word.unknown >> shift}, lane);
  }
}

//===----------------------------------------------------------------------===//
// Atomic accesses
//===----------------------------------------------------------------------===//

struct Atomic {
  std::string op;
  unsigned bytes = 4;
  bool isFloat = false, isSigned = false;
};
/// "add_f32", "smax_x2", "cmpswap_b64".
bool parseAtomic(std::string text, Atomic &made) {
  auto ends = [&](const char *end) {
    size_t length = std::strlen(end);
    if (text.size() < length || text.compare(text.size() - length, length, end))
      return false;
    text.resize(text.size() - length);
    return true;
  };
  if (ends("_x2") || ends("_u64") || ends("_b64"))
    made.bytes = 8;
  else if (ends("_i64"))
    made.bytes = 8, made.isSigned = true;
  else if (ends("_f64"))
    made.bytes = 8, made.isFloat = true;
  else if (ends("_f32"))
    made.isFloat = true;
  else if (ends("_i32"))
    made.isSigned = true;
  else if (!ends("_u32"))
    ends("_b32");
  ends("_num");
  static const struct {
    const char *name, *op;
    bool isFloat, isSigned;
  } rows[] = {{"fmin", "min", true, false},   {"fmax", "max", true, false},       {"smin", "min", false, true},
              {"smax", "max", false, true},   {"umin", "min", false, false},      {"umax", "max", false, false},
              {"wrxchg", "swap", false, false}, {"storexchg", "swap", false, false}};
  for (const auto &row : rows)
    if (text == row.name) {
      text = row.op;
      made.isFloat |= row.isFloat;
      made.isSigned |= row.isSigned;
    }
  made.op = text;
  for (const char *known : {"add", "sub", "min", "max", "and", "or", "xor", "swap", "cmpswap", "cmpst", "cmpstore"})
    if (text == known)
      return true;
  return false;
}

template <typename T> u64 combineFloats(const std::string &op, T a, T b) {
  T result = op == "add"   ? a + b
             : op == "min" ? (std::isnan(a)                        ? b
                              : std::isnan(b)                      ? a
                              : std::signbit(a) == std::signbit(b) ? std::min(a, b)
                              : std::signbit(a)                    ? a
                                                                   : b)
                           : (std::isnan(a)                        ? b
                              : std::isnan(b)                      ? a
                              : std::signbit(a) == std::signbit(b) ? std::max(a, b)
                              : std::signbit(a)                    ? b
                                                                   : a);
  u64 bits = 0;
  std::memcpy(&bits, &result, sizeof result);
  return bits;
}

u64 combine(const Atomic &atomic, u64 old, u64 value) {
  const std::string &op = atomic.op;
  if (atomic.isFloat)
    return atomic.bytes == 4 ? combineFloats(op, llvm::bit_cast<float>(u32(old)), llvm::bit_cast<float>(u32(value)))
                             : combineFloats(op, llvm::bit_cast<double>(old), llvm::bit_cast<double>(value));
  auto isLess = [&](u64 a, u64 b) {
    if (!atomic.isSigned)
      return a < b;
    return atomic.bytes == 4 ? int32_t(a) < int32_t(b) : int64_t(a) < int64_t(b);
  };
  return op == "add" ? old + value : op == "sub" ? old - value : op == "and" ? old & value : op == "or" ? old | value
         : op == "xor" ? old ^ value : op == "min" ? (isLess(value, old) ? value : old)
         : op == "max" ? (isLess(old, value) ? value : old) : value;
}

Value readVector(Wave &wave, unsigned place, unsigned words, unsigned lane) {
  Value value;
  for (unsigned i = 0; i < words; ++i) {
    value.bits |= u64(wave.vector(place + i, lane).value) << 32 * i;
    value.unknown |= u64(wave.vector(place + i, lane).unknown) << 32 * i;
  }
  return value;
}

/// `compared` is only of those that compare; the destination is negative where the old value is not wanted.
void access(Wave &wave, const Atomic &atomic, const Place &place, Value value, Value compared, int destination,
            unsigned lane) {
  Value old = readWord(place, atomic.bytes);
  bool compares = !atomic.op.compare(0, 3, "cmp");
  // A word that is compared may have bytes beside the ones that count, which nobody has written: they are as they were
  // read.
  if (compares && compared.unknown & ~old.unknown)
    wave.fail("lane " + std::to_string(lane) + " compares with what nobody has written");
  u64 unknown = value.unknown | (atomic.op == "swap" ? 0 : old.unknown);
  if (!compares)
    writeWord(wave, place, atomic.bytes, {combine(atomic, old.bits, value.bits), unknown}, lane);
  else if (old.bits == compared.bits)
    writeWord(wave, place, atomic.bytes, value, lane);
  for (unsigned i = 0; destination >= 0 && i < atomic.bytes / 4; ++i)
    wave.vector(unsigned(destination) + i, lane) = {u32(old.bits >> 32 * i), u32(old.unknown >> 32 * i)};
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

u64 known(Wave &wave, Value value) {
  if (value.unknown)
    wave.fail("an address is what nobody has written");
  return value.bits;
}

/// A vector address, 32 bits beside a scalar base and 64 alone.
u64 globalAddress(Wave &wave, const Instruction &what, const Operand &vector, const Operand &base, unsigned lane) {
  if (base.kind == Operand::Kind::Scalar && base.place != nullPlace)
    return known(wave, wave.scalar(base, 2)) + u32(known(wave, readVector(wave, vector.place, 1, lane))) +
           u64(what.offset);
  return known(wave, readVector(wave, vector.place, 2, lane)) + u64(what.offset);
}
u64 scratchAddress(Wave &wave, const Instruction &what, const Operand &vector, const Operand &base, unsigned lane,
                   bool isBuffer) {
  u64 address = u64(what.offset);
  if (vector.kind == Operand::Kind::Vector)
    address += known(wave, readVector(wave, vector.place, 1, lane));
  if (base.kind == Operand::Kind::Scalar)
    // Buffers count what all lanes have.
    address += known(wave, wave.scalar(base, 1)) / (isBuffer ? wave.lanes() : 1);
  else if (base.kind == Operand::Kind::Integer)
    address += u64(base.integer);
  return u32(address);
}

bool runGlobal(Wave &wave, const Instruction &what, std::string name, Space space, bool isBuffer) {
  auto &operands = what.operands;
  u64 exec = wave.exec();
  Access moved;
  Atomic atomic;
  bool isLoad = removePrefix(name, "load_"), isStore = !isLoad && removePrefix(name, "store_"),
       isAtomic = !isLoad && !isStore && removePrefix(name, "atomic_");
  if (!isLoad && !isStore && !isAtomic)
    return false;
  if (isAtomic ? !parseAtomic(name, atomic) : !parseAccess(name, moved))
    return false;
  // destination, address, data, base; loads have no data, buffers have the data first and a resource.
  size_t next = 0;
  const Operand *destination = isLoad || (isAtomic && what.returnsOld) || isBuffer ? &operands[next++] : nullptr;
  const Operand *vector = &operands[next++], *data = isBuffer                ? destination
                                                     : destination && isLoad ? nullptr
                                                                             : &operands[next++];
  next += isBuffer;
  if (next + 1 != operands.size())
    return wave.fail("the operands of a memory access are not understood"), true;
  const Operand &base = operands[next];
  unsigned bytes = isAtomic ? atomic.bytes : moved.bytes;
  // The addresses come before what is loaded replaces them.
  u64 addresses[64];
  for (unsigned lane = 0; lane < wave.lanes(); ++lane)
    if (bit(exec, lane))
      addresses[lane] = space == Space::Global ? globalAddress(wave, what, *vector, base, lane)
                                               : scratchAddress(wave, what, *vector, base, lane, isBuffer);
  for (unsigned lane = 0; lane < wave.lanes() && wave.fault.empty(); ++lane) {
    if (!bit(exec, lane))
      continue;
    Place place = locate(wave, space, addresses[lane], bytes, !isLoad, lane);
    if (!place.value)
      break;
    if (isLoad)
      load(wave, moved, place, destination->place, lane);
    else if (isStore)
      store(wave, moved, place, data->place, lane);
    else
      access(wave, atomic, place, readVector(wave, data->place, bytes / 4, lane),
             atomic.op == "cmpswap" ? readVector(wave, data->place + bytes / 4, bytes / 4, lane) : Value(),
             destination ? int(destination->place) : -1, lane);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Two places by one instruction: of "2_b32", "2st64_b64", "2addr_b32", "2addr_stride64_b64" what stands behind, and
/// how many elements a step is.
bool takePair(std::string &name, unsigned &step) {
  for (const char *start : {"2st64_", "2addr_stride64_"})
    if (removePrefix(name, start)) {
      step = 64;
      return true;
    }
  step = 1;
  return removePrefix(name, "2_") || removePrefix(name, "2addr_");
}

bool runShared(Wave &wave, const Instruction &what, std::string name) {
  auto &operands = what.operands;
  u64 exec = wave.exec();
  u32 addresses[64];
  auto takeAddresses = [&](const Operand &operand) {
    for (unsigned lane = 0; lane < wave.lanes(); ++lane)
      if (bit(exec, lane))
        addresses[lane] = u32(known(wave, readVector(wave, operand.place, 1, lane)));
  };
  auto each = [&](auto body) {
    for (unsigned lane = 0; lane < wave.lanes() && wave.fault.empty(); ++lane)
      if (bit(exec, lane))
        body(lane);
    return true;
  };
  bool isLoad = false, isStore = false;
  unsigned step = 0;
  for (const char *start : {"read", "load"})
    isLoad = isLoad || removePrefix(name, start);
  for (const char *start : {"write", "store"})
    isStore = isStore || (!isLoad && name.compare(0, 9, "storexchg") && removePrefix(name, start));
  removePrefix(name, "_");
  if (isLoad || isStore) {
    bool isPair = takePair(name, step);
    Access moved;
    if (!parseAccess(name, moved))
      return false;
    takeAddresses(operands[isLoad ? 1 : 0]);
    return each([&](unsigned lane) {
      for (unsigned i = 0; i < (isPair ? 2u : 1u); ++i) {
        int64_t offset = isPair ? (i ? what.offset1 : what.offset0) * int64_t(step * moved.bytes) : what.offset;
        Place place = locate(wave, Space::Shared, u32(addresses[lane] + u64(offset)), moved.bytes, isStore, lane);
        if (!place.value)
          return;
        if (isLoad)
          load(wave, moved, place, operands[0].place + i * moved.bytes / 4, lane);
        else
          store(wave, moved, place, operands[1 + i].place, lane);
      }
    });
  }
  size_t returns = name.find("_rtn");
  bool returnsOld = returns != std::string::npos;
  if (returnsOld)
    name.erase(returns, 4);
  Atomic atomic;
  if (!parseAtomic(name, atomic))
    return false;
  takeAddresses(operands[returnsOld]);
  unsigned words = atomic.bytes / 4;
  return each([&](unsigned lane) {
    Place place = locate(wave, Space::Shared, addresses[lane] + u64(what.offset), atomic.bytes, true, lane);
    if (!place.value)
      return;
    size_t data = returnsOld + 1u;
    Value first = readVector(wave, operands[data].place, words, lane), second;
    if (!atomic.op.compare(0, 3, "cmp"))
      second = readVector(wave, operands[data + 1].place, words, lane);
    // The older instruction has what it compares with first.
    if (atomic.op == "cmpst")
      std::swap(first, second);
    access(wave, atomic, place, first, second, returnsOld ? int(operands[0].place) : -1, lane);
  });
}

bool runScalarLoad(Wave &wave, const Instruction &what, const std::string &name) {
  Access moved;
  if (!parseAccess(name, moved))
    return false;
  u64 address = known(wave, wave.scalar(what.operands[1], 2)) + u64(what.offset);
  if (what.operands.size() > 2) {
    const Operand &offset = what.operands[2];
    address += offset.kind == Operand::Kind::Scalar ? known(wave, wave.scalar(offset, 1)) : u64(offset.integer);
  }
  Place place = locate(wave, Space::Global, moved.bytes >= 4 ? address & ~u64(3) : address, moved.bytes, false, 0);
  if (!place.value)
    return true;
  for (unsigned i = 0; i < (moved.bytes + 3) / 4; ++i) {
    Value word = readWord({place.value + 4 * i, nullptr}, std::min(4u, moved.bytes));
    if (moved.isSigned)
      word.bits = u64(int64_t(word.bits << (64 - 8 * moved.bytes)) >> (64 - 8 * moved.bytes));
    wave.scalars[what.operands[0].place + i] = {u32(word.bits), 0};
  }
  return true;
}

} // namespace

bool runMemory(Wave &wave, const Instruction &what) {
  std::string name = what.name;
  if (removePrefix(name, "global_"))
    return runGlobal(wave, what, name, Space::Global, false);
  if (removePrefix(name, "scratch_"))
    return runGlobal(wave, what, name, Space::Private, false);
  if (removePrefix(name, "buffer_"))
    return runGlobal(wave, what, name, Space::Private, true);
  if (removePrefix(name, "ds_"))
    return runShared(wave, what, name);
  if (removePrefix(name, "s_load_"))
    return runScalarLoad(wave, what, name);
  return false;
}

} // namespace amdgcn

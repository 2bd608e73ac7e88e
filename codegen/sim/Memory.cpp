//===----------------------------------------------------------------------===//
// Addresses, bounds and alignment checks, loads, stores and atomics.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Floats.h"
#include "codegen/sim/Handlers.h"
#include "codegen/sim/Wave.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/Instructions.h"
#include <cstring>

using namespace llvm;

namespace qd::sim {

void Wave::growPrivate(uint32_t bytes) {
  if (bytes <= privateSize)
    return;
  // Lane after lane: a new stride moves every lane.
  std::vector<uint8_t> data(size_t(bytes) * width), shadow(size_t(bytes) * width, 1);
  for (unsigned l = 0; privateSize && l < width; ++l) {
    std::copy_n(privateData.begin() + size_t(l) * privateSize, privateSize, data.begin() + size_t(l) * bytes);
    std::copy_n(privateShadow.begin() + size_t(l) * privateSize, privateSize,
                shadow.begin() + size_t(l) * bytes);
  }
  privateData = std::move(data);
  privateShadow = std::move(shadow);
  privateSize = bytes;
}

void Wave::forgetPrivate(uint64_t offset, uint64_t bytes) {
  each([&](unsigned l) { std::fill_n(privateShadow.begin() + size_t(l) * privateSize + offset, bytes, 1); });
}

uint64_t Wave::convertPointer(uint64_t value, unsigned from, unsigned to) const {
  auto aperture = [](unsigned space) -> uint64_t {
    return space == SharedSpace    ? SharedAperture << allocationShift
           : space == PrivateSpace ? PrivateAperture << allocationShift
                                   : 0;
  };
  uint64_t offset = aperture(from) ? value | aperture(from) : value;
  return aperture(to) ? offset & offsetMask & (image.chip->nvptx ? ~uint64_t(0) : lowBits(32)) : offset;
}

bool Wave::access(const Op &op, unsigned lane, uint64_t address, unsigned space, uint64_t bytes,
                  uint64_t align, bool write, const char *verb, Place &place) {
  auto describe = [&](const Twine &where) {
    fail(op, lane, Twine("out-of-bounds ") + verb + " of " + Twine(bytes) + " bytes at " + where);
    return false;
  };
  if (address & (align - 1)) {
    fail(op, lane,
         Twine(verb) + " of " + Twine(bytes) + " bytes at address 0x" + utohexstr(address, true) +
             ", expected alignment to " + Twine(align) + " bytes");
    return false;
  }
  if (space != SharedSpace && space != PrivateSpace) {
    uint64_t allocation = address >> allocationShift;
    if (allocation == SharedAperture || allocation == PrivateAperture) {
      if (space != GenericSpace)
        return describe("an address that is not global");
      space = allocation == SharedAperture ? SharedSpace : PrivateSpace;
      address &= offsetMask;
    } else {
      uint64_t offset = address & offsetMask;
      if (allocation >= launch.allocations.size() || !launch.allocations[allocation].writable) {
        if (allocation == NullAllocation)
          return describe("byte " + Twine(offset) + " from a null pointer");
        if (allocation >= launch.allocations.size())
          return describe("address 0x" + utohexstr(address, true) + ", in no buffer");
        if (write) {
          fail(op, lane, Twine(verb) + " to " + launch.allocations[allocation].what + ", which is constant");
          return false;
        }
      }
      const Allocation &memory = launch.allocations[allocation];
      if (offset + bytes > memory.bytes) {
        // A small negative offset lies at the end of the allocation before.
        if (offsetMask - offset < (uint64_t(1) << 38) && allocation + 1 < launch.allocations.size())
          return describe("byte -" + Twine(offsetMask - offset + 1) + " before " +
                          launch.allocations[allocation + 1].what);
        return describe("byte " + Twine(offset) + " of " + memory.what + " of " + Twine(memory.bytes) +
                        " bytes");
      }
      touchesMemory = true;
      place.data = memory.data + offset;
      place.shadow = nullptr;
      place.isPrivate = false;
      return true;
    }
  }
  if (space == SharedSpace) {
    uint64_t size = block.shared.size();
    if (address > size || bytes > size - address)
      return describe("byte " + Twine(int64_t(address)) + " of " + Twine(size) + " bytes of shared memory");
    touchesMemory = true;
    place.data = block.shared.data() + address;
    place.shadow = block.sharedShadow.data() + address;
    place.isPrivate = false;
    for (uint64_t i = 0; i < bytes; ++i)
      if (place.shadow[i] == 2)
        return describe("byte " + Twine(address) + " of shared memory, in no shared variable");
    return true;
  }
  if (address > privateSize || bytes > privateSize - address)
    return describe("byte " + Twine(int64_t(address)) + " of " + Twine(privateSize) +
                    " bytes of private memory");
  place.data = privateData.data() + size_t(lane) * privateSize + address;
  place.shadow = privateShadow.data() + size_t(lane) * privateSize + address;
  place.isPrivate = true;
  return true;
}

namespace {

inline uint64_t readBytes(const uint8_t *data, unsigned bytes) {
  uint64_t value = 0;
  switch (bytes) {
  case 1:
    return *data;
  case 2:
    std::memcpy(&value, data, 2);
    break;
  case 4:
    std::memcpy(&value, data, 4);
    break;
  case 8:
    std::memcpy(&value, data, 8);
    break;
  default:
    std::memcpy(&value, data, bytes);
    break;
  }
  return value;
}

uint64_t sharedOffset(const Wave &w, const Wave::Place &place) {
  return place.shadow - w.block.sharedShadow.data();
}

bool isOffset(unsigned space) { return space == SharedSpace || space == PrivateSpace; }

/// Whether that changed the memory.
bool writeBytes(uint8_t *data, uint64_t value, unsigned bytes) {
  if (readBytes(data, bytes) == value)
    return false;
  std::memcpy(data, &value, bytes);
  return true;
}

bool anyPoison(const Wave::Place &place, unsigned bytes) {
  for (unsigned i = 0; place.shadow && i < bytes; ++i)
    if (place.shadow[i])
      return true;
  return false;
}

/// Two in every byte: the shadow of bytes where there is no memory.
constexpr uint64_t noMemory = 0x0202020202020202;

/// The common case of shared memory: aligned and inside a variable. Null where
/// the slow way has to say what is wrong.
template <unsigned size>
inline uint8_t *sharedPlace(Wave &w, uint64_t address, uint64_t align, uint64_t &shadow) {
  uint64_t bytes = w.block.shared.size();
  if (address >= bytes || bytes - address < size || (address & (align - 1)))
    return nullptr;
  shadow = readBytes(w.block.sharedShadow.data() + address, size);
  return shadow & noMemory ? nullptr : w.block.shared.data() + address;
}

/// `size` is the access's size where it is 1, 2, 4 or 8, else 0.
template <unsigned size> void load(Wave &w, const Op &op) {
  if (!w.needsValue(op, op.a, "an address"))
    return;
  if (op.flags & FlagOrdered)
    w.block.order();
  const uint64_t *address = w.val(op.a);
  uint64_t *out = w.out(op.dst);
  uint64_t keep = lowBits(op.bits), poison = 0;
  bool isGlobal = !isOffset(op.space), isShared = op.space == SharedSpace;
  w.touchesMemory |= isGlobal || isShared;
  w.each([&](unsigned l) {
    const uint8_t *data = nullptr;
    uint64_t at = address[l] + op.imm, shadow = 0;
    if (size && isGlobal)
      data = w.globalPlace(at, size, op.align, false);
    else if (size && isShared)
      data = sharedPlace<size>(w, at, op.align, shadow);
    if (data) {
      out[l] = readBytes(data, size) & keep;
      if (isShared)
        poison |= uint64_t(w.readRaces<size>(op, at) || shadow) << l;
      return;
    }
    Wave::Place place;
    if (w.stop || !w.access(op, l, at, op.space, op.bytes, op.align, false, "load", place))
      return;
    out[l] = readBytes(place.data, op.bytes) & keep;
    bool races = place.isShared() && w.readRaces<0>(op, sharedOffset(w, place), op.bytes);
    if (races || anyPoison(place, op.bytes))
      poison |= uint64_t(1) << l;
  });
  w.setPoison(op.dst, poison);
}

template <unsigned size> void store(Wave &w, const Op &op) {
  if (!w.needsValue(op, op.a, "an address"))
    return;
  if (op.flags & FlagOrdered)
    w.block.order();
  const uint64_t *address = w.val(op.a), *value = w.val(op.b);
  uint64_t poison = w.poisonOf(op.b), keep = lowBits(op.bits);
  bool changed = false, isGlobal = !isOffset(op.space), isShared = op.space == SharedSpace;
  w.each([&](unsigned l) {
    bool isPoison = poison >> l & 1;
    uint64_t at = address[l] + op.imm, shadow = 0;
    uint8_t *data = nullptr;
    if (size && isGlobal && !isPoison)
      data = w.globalPlace(at, size, op.align, true);
    else if (size && isShared && !isPoison)
      data = sharedPlace<size>(w, at, op.align, shadow);
    if (data) {
      bool wrote = writeBytes(data, value[l] & keep, size);
      bool races = isShared && w.writeRaces<size>(op, at, wrote);
      if (shadow || races)
        std::memset(w.block.sharedShadow.data() + at, races, size);
      changed |= wrote || shadow;
      return;
    }
    Wave::Place place;
    if (w.stop || !w.access(op, l, at, op.space, op.bytes, op.align, true, "store", place))
      return;
    if (isPoison && (!place.shadow || (!place.isPrivate && w.image.options.checkSharedStores)))
      return w.fail(op, l, "poison stored");
    bool wrote = writeBytes(place.data, value[l] & keep, op.bytes);
    bool races = place.isShared() && w.writeRaces<0>(op, sharedOffset(w, place), wrote, op.bytes);
    if (place.shadow)
      std::fill_n(place.shadow, op.bytes, isPoison || races);
    changed |= wrote;
  });
  if (changed)
    w.launch.progress();
}

uint64_t applyAtomic(AtomicRMWInst::BinOp kind, Format format, unsigned bits, uint64_t old, uint64_t value) {
  int64_t so = signedValue(old, bits), sv = signedValue(value, bits);
  switch (kind) {
  case AtomicRMWInst::Xchg:
    return value;
  case AtomicRMWInst::Add:
    return old + value;
  case AtomicRMWInst::Sub:
    return old - value;
  case AtomicRMWInst::And:
    return old & value;
  case AtomicRMWInst::Nand:
    return ~(old & value);
  case AtomicRMWInst::Or:
    return old | value;
  case AtomicRMWInst::Xor:
    return old ^ value;
  case AtomicRMWInst::Max:
    return so > sv ? old : value;
  case AtomicRMWInst::Min:
    return so < sv ? old : value;
  case AtomicRMWInst::UMax:
    return old > value ? old : value;
  case AtomicRMWInst::UMin:
    return old < value ? old : value;
  case AtomicRMWInst::UIncWrap:
    return old >= value ? 0 : old + 1;
  case AtomicRMWInst::UDecWrap:
    return old == 0 || old > value ? value : old - 1;
  case AtomicRMWInst::USubCond:
    return old >= value ? old - value : old;
  case AtomicRMWInst::USubSat:
    return old >= value ? old - value : 0;
  case AtomicRMWInst::FAdd:
    return floatBinary(format, FloatOp::Add, old, value);
  case AtomicRMWInst::FSub:
    return floatBinary(format, FloatOp::Sub, old, value);
  case AtomicRMWInst::FMax:
    return floatBinary(format, FloatOp::MaxNum, old, value);
  case AtomicRMWInst::FMin:
    return floatBinary(format, FloatOp::MinNum, old, value);
  case AtomicRMWInst::FMaximum:
    return floatBinary(format, FloatOp::Maximum, old, value);
  case AtomicRMWInst::FMinimum:
    return floatBinary(format, FloatOp::Minimum, old, value);
  default:
    return old;
  }
}

void atomicRMW(Wave &w, const Op &op) {
  if (!w.needsValue(op, op.a, "an address") || !w.needsValue(op, op.b, "an atomic operand"))
    return;
  const uint64_t *address = w.val(op.a), *value = w.val(op.b);
  uint64_t *out = w.out(op.dst);
  uint64_t poison = 0;
  bool changed = false;
  w.block.order();
  w.each([&](unsigned l) {
    Wave::Place place;
    if (w.stop || !w.access(op, l, address[l], op.space, op.bytes, op.align, true, "atomic access", place))
      return;
    bool isPoison = anyPoison(place, op.bytes);
    uint64_t old = readBytes(place.data, op.bytes), operand = value[l];
    uint64_t fresh = applyAtomic(AtomicRMWInst::BinOp(op.sub), Format(op.flags), op.bits, old, operand);
    if (op.sub == AtomicRMWInst::Xchg && place.shadow) {
      std::fill_n(place.shadow, op.bytes, 0);
    } else if (isPoison && !place.isPrivate) {
      return w.fail(op, l, "atomic access to shared memory that no lane has written");
    }
    changed |= writeBytes(place.data, fresh & lowBits(op.bits), op.bytes);
    out[l] = old;
    poison |= uint64_t(isPoison) << l;
  });
  w.setPoison(op.dst, poison);
  if (changed)
    w.launch.progress();
}

void compareExchange(Wave &w, const Op &op) {
  if (!w.needsValue(op, op.a, "an address") || !w.needsValue(op, op.b, "an atomic operand") ||
      !w.needsValue(op, op.c, "an atomic operand"))
    return;
  const uint64_t *address = w.val(op.a), *expected = w.val(op.b), *value = w.val(op.c);
  uint64_t *out = w.out(op.dst), *success = w.out(op.dst + 1);
  bool changed = false;
  w.block.order();
  w.each([&](unsigned l) {
    Wave::Place place;
    if (w.stop || !w.access(op, l, address[l], op.space, op.bytes, op.align, true, "atomic access", place))
      return;
    if (anyPoison(place, op.bytes))
      return w.fail(op, l, "atomic access to memory that no lane has written");
    uint64_t old = readBytes(place.data, op.bytes);
    out[l] = old;
    success[l] = old == expected[l];
    if (success[l])
      changed |= writeBytes(place.data, value[l], op.bytes);
  });
  w.setPoison(op.dst, 0);
  w.setPoison(op.dst + 1, 0);
  if (changed)
    w.launch.progress();
}

/// a: destination, b: source (or the byte of a set), c: length; space and sub
/// are the two address spaces, imm tells copy (0) from move (1) from set (2).
void copyMemory(Wave &w, const Op &op) {
  if (!w.needsValue(op, op.a, "an address") || !w.needsValue(op, op.c, "a length"))
    return;
  const uint64_t *to = w.val(op.a), *from = w.val(op.b), *length = w.val(op.c);
  bool isSet = op.imm == 2;
  if (!isSet && !w.needsValue(op, op.b, "an address"))
    return;
  w.each([&](unsigned l) {
    Wave::Place target, source;
    if (w.stop || !length[l])
      return;
    if (!w.access(op, l, to[l], op.space, length[l], 1, true, "store", target))
      return;
    if (isSet) {
      bool isPoison = w.poisonOf(op.b) >> l & 1;
      if (isPoison && !target.isPrivate)
        return w.fail(op, l, "poison stored");
      std::memset(target.data, int(from[l]), length[l]);
      if (target.isShared())
        w.writeRaces<0>(op, sharedOffset(w, target), false, length[l]);
      if (target.shadow)
        std::memset(target.shadow, isPoison, length[l]);
      return;
    }
    if (!w.access(op, l, from[l], op.sub, length[l], 1, false, "load", source))
      return;
    bool races = source.isShared() && w.readRaces<0>(op, sharedOffset(w, source), length[l]);
    if (!target.shadow && (races || anyPoison(source, length[l])))
      return w.fail(op, l, "poison copied");
    if (target.isShared())
      w.writeRaces<0>(op, sharedOffset(w, target), false, length[l]);
    std::memmove(target.data, source.data, length[l]);
    if (target.shadow && source.shadow)
      std::memmove(target.shadow, source.shadow, length[l]);
    else if (target.shadow)
      std::memset(target.shadow, 0, length[l]);
    if (races)
      std::memset(target.shadow, 1, length[l]);
  });
  w.launch.progress();
}

void convertAddress(Wave &w, const Op &op) {
  const uint64_t *in = w.val(op.a);
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) { out[l] = w.convertPointer(in[l], op.sub, op.space); });
  w.setPoison(op.dst, w.poisonOf(op.a));
}

/// dst = a + sext(b) * imm, as wide as the address.
void addIndex(Wave &w, const Op &op) {
  const uint64_t *base = w.val(op.a), *index = w.val(op.b);
  uint64_t *out = w.out(op.dst);
  uint64_t keep = lowBits(op.bits);
  unsigned drop = 64 - op.bits2;
  w.each([&](unsigned l) {
    out[l] = (base[l] + uint64_t(int64_t(index[l] << drop) >> drop) * uint64_t(op.imm)) & keep;
  });
  w.setPoison(op.dst, w.poisonOf(op.a) | w.poisonOf(op.b));
}

void allocate(Wave &w, const Op &op) {
  uint64_t value = w.frames.back().privateBase + op.imm;
  w.forgetPrivate(value, op.flags);
  if (op.space != PrivateSpace)
    value = w.convertPointer(value, PrivateSpace, op.space);
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) { out[l] = value; });
  w.setPoison(op.dst, 0);
}

} // namespace

Handler loadHandler(unsigned bytes) {
  switch (bytes) {
  case 1:
    return load<1>;
  case 2:
    return load<2>;
  case 4:
    return load<4>;
  case 8:
    return load<8>;
  default:
    return load<0>;
  }
}

Handler storeHandler(unsigned bytes) {
  switch (bytes) {
  case 1:
    return store<1>;
  case 2:
    return store<2>;
  case 4:
    return store<4>;
  case 8:
    return store<8>;
  default:
    return store<0>;
  }
}

const MemoryHandlers memoryHandlers = {atomicRMW,      compareExchange, copyMemory,
                                       convertAddress, addIndex,        allocate};

} // namespace qd::sim

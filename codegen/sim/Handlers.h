//===----------------------------------------------------------------------===//
// The handlers that operations are compiled to, by concept.
//===----------------------------------------------------------------------===//
#ifndef QD_CODEGEN_SIM_HANDLERS_H
#define QD_CODEGEN_SIM_HANDLERS_H

#include "codegen/sim/Code.h"
#include "codegen/sim/Floats.h"

namespace qd::sim {

struct MemoryHandlers {
  Handler atomicRMW, compareExchange, copy, convertAddress, addIndex, allocate;
};
extern const MemoryHandlers memoryHandlers;
Handler loadHandler(unsigned bytes);
Handler storeHandler(unsigned bytes);

struct ControlHandlers {
  Handler jump, branch, switchOn, turnLoop, call, ret, unreachable, trap;
};
extern const ControlHandlers controlHandlers;

/// Integer operations on one word, by llvm::Instruction opcode; `flagged` ones
/// check Op::flags. Null where there is none.
Handler integerBinary(unsigned opcode, bool flagged);
/// The same on 65 to 128 bits: args are the low and the high word of each
/// operand. binary: sub is the opcode; compare: sub is the predicate; function:
/// sub is an IntegerOp; overflow: sub as in overflowOp, the third word is the
/// flag; fromFloat and toFloat as floatToInteger and integerToFloat.
struct WideHandlers {
  Handler binary, compare, function, overflow, fromFloat, toFloat;
};
extern const WideHandlers wideHandlers;
Handler integerCompare(unsigned predicate);
Handler selectWord(); // a ? b : c
Handler truncate();   // to bits, from bits2
Handler zeroExtend(); // checks nneg
Handler signExtend(); // from bits2 to bits
Handler signWord();   // dst = all bits of a's sign bit, of bits2 bits
Handler freeze();
Handler packBits();      // dst = args[i] << (i * bits2)
Handler extractBits();   // dst = (a >> imm) & bits
Handler pickElement();   // dst = args[a]; poison out of range
Handler insertElement(); // dst = a == imm ? b : c

enum class IntegerOp : uint8_t {
  Ctpop,
  Ctlz,
  Cttz,
  BitReverse,
  ByteSwap,
  Abs,
  SMin,
  SMax,
  UMin,
  UMax,
  FunnelLeft,
  FunnelRight,
  SAddSat,
  UAddSat,
  SSubSat,
  USubSat,
  SShlSat,
  UShlSat,
  UCmp,
  SCmp,
  MulHighS,
  MulHighU,
};
/// a, b, c; flags & 1: zero or the least value is poison.
Handler integerFunction(IntegerOp op);
/// sub is the llvm::Intrinsic of *.with.overflow as 0..5: sadd uadd ssub usub
/// smul umul; the second word is the overflow bit.
Handler overflowOp();

Handler floatBinaryHandler(Format format, FloatOp op);
Handler floatUnaryHandler(); // sub FloatFunction, bits2 Format
Handler floatNegate();       // flips bit bits - 1
Handler floatCompare();      // sub predicate, bits2 Format
Handler floatFma();          // bits2 Format; flags & 1: two roundings
Handler floatConvert();      // bits Format from bits2 Format
Handler floatToInteger();    // bits, bits2 Format; sub 1 signed, 2 saturating
Handler integerToFloat();    // bits Format from bits2 bits; sub 1 signed
Handler floatClass();        // imm mask, bits2 Format
Handler floatPower();        // a^b with b an integer (powi) or sub 1: ldexp
Handler floatParts();        // frexp: dst mantissa, dst+1 exponent

} // namespace qd::sim

#endif

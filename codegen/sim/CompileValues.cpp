//===----------------------------------------------------------------------===//
// Compiles arithmetic, comparisons, conversions, selects and the moves in and
// out of vectors and aggregates.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Compile.h"
#include "llvm/IR/Operator.h"
#include <numeric>

using namespace llvm;

namespace qd::sim {

FunctionCompiler::FunctionCompiler(ModuleCompiler &parent, const Function &function, FunctionCode &code)
    : parent(parent), function(function), code(code), layout(parent.layout), chip(*parent.image.chip) {}

Error FunctionCompiler::unsupported(const Value &value, const Twine &why) const {
  uint32_t text = parent.text(value);
  return createStringError(why + " in function '" + code.name + "': " + parent.image.texts[text]);
}

ArrayRef<Ref> FunctionCompiler::refs(const Value *value) { return values[value]; }

Ref FunctionCompiler::temp(unsigned words) {
  Ref first = code.words;
  code.words += words;
  groups.push_back({first, words});
  return first;
}

Ref FunctionCompiler::define(const Instruction &instruction) {
  unsigned count = wordsOf(instruction.getType());
  Ref first = temp(count);
  Refs words;
  for (unsigned i = 0; i < count; ++i)
    words.push_back(first + i);
  values[&instruction] = std::move(words);
  return first;
}

Op &FunctionCompiler::emit(Handler handler, Ref dst, Ref a, Ref b, Ref c) {
  Op op;
  op.run = handler;
  op.dst = dst;
  op.a = a;
  op.b = b;
  op.c = c;
  op.text = currentText;
  code.ops.push_back(op);
  return code.ops.back();
}

void FunctionCompiler::setArgs(Op &op, ArrayRef<Ref> args) {
  op.args = code.args.size();
  op.nargs = args.size();
  code.args.insert(code.args.end(), args.begin(), args.end());
}

unsigned FunctionCompiler::elements(const Type *type) {
  auto *vector = dyn_cast<FixedVectorType>(type);
  return vector ? vector->getNumElements() : 1;
}

unsigned FunctionCompiler::scalarBits(const Type *type) const {
  return layout.getTypeSizeInBits(type->getScalarType()).getFixedValue();
}

std::optional<Format> FunctionCompiler::format(const Type *type) {
  type = type->getScalarType();
  if (type->isHalfTy())
    return Format::Half;
  if (type->isBFloatTy())
    return Format::BFloat;
  if (type->isFloatTy())
    return Format::Float;
  if (type->isDoubleTy())
    return Format::Double;
  return std::nullopt;
}

unsigned FunctionCompiler::wordsOf(const Type *type) {
  SmallVector<Leaf> leaves;
  // Every type was checked before.
  cantFail(parent.leaves(const_cast<Type *>(type), leaves));
  unsigned words = 0;
  for (const Leaf &leaf : leaves)
    words += leaf.words;
  return words;
}

std::optional<uint64_t> FunctionCompiler::immediate(const Value *value) {
  if (auto *number = dyn_cast<ConstantInt>(value))
    if (number->getBitWidth() <= 64)
      return number->getZExtValue();
  return std::nullopt;
}

static uint32_t flagIf(bool isSet, uint32_t flag) { return isSet ? flag : 0; }

static uint32_t flagsOf(const Instruction &instruction) {
  uint32_t flags = 0;
  if (auto *op = dyn_cast<OverflowingBinaryOperator>(&instruction))
    flags |= flagIf(op->hasNoUnsignedWrap(), FlagNUW) | flagIf(op->hasNoSignedWrap(), FlagNSW);
  if (auto *op = dyn_cast<TruncInst>(&instruction))
    flags |= flagIf(op->hasNoUnsignedWrap(), FlagNUW) | flagIf(op->hasNoSignedWrap(), FlagNSW);
  if (auto *op = dyn_cast<PossiblyExactOperator>(&instruction))
    flags |= flagIf(op->isExact(), FlagExact);
  if (auto *op = dyn_cast<PossiblyDisjointInst>(&instruction))
    flags |= flagIf(op->isDisjoint(), FlagDisjoint);
  if (auto *op = dyn_cast<PossiblyNonNegInst>(&instruction))
    flags |= flagIf(op->hasNonNeg(), FlagNNeg);
  if (auto *op = dyn_cast<ICmpInst>(&instruction))
    flags |= flagIf(op->hasSameSign(), FlagSameSign);
  return flags;
}

Error FunctionCompiler::compileBinary(const Instruction &instruction) {
  const Value *x = instruction.getOperand(0), *y = instruction.getOperand(1);
  unsigned opcode = instruction.getOpcode(), bits = scalarBits(x->getType());
  uint32_t flags = flagsOf(instruction);
  Ref dst = define(instruction);
  auto kind = format(x->getType());
  for (unsigned e = 0, count = elements(x->getType()); e < count; ++e) {
    if (kind) {
      FloatOp op = opcode == Instruction::FAdd   ? FloatOp::Add
                   : opcode == Instruction::FSub ? FloatOp::Sub
                   : opcode == Instruction::FMul ? FloatOp::Mul
                   : opcode == Instruction::FDiv ? FloatOp::Div
                                                 : FloatOp::Rem;
      emit(floatBinaryHandler(*kind, op), dst + e, ref(x, e), ref(y, e));
    } else if (bits > 64) {
      Refs args = {ref(x, 2 * e), ref(x, 2 * e + 1), ref(y, 2 * e), ref(y, 2 * e + 1)};
      Op &op = emit(wideHandlers.binary, dst + 2 * e);
      op.bits = bits;
      op.sub = opcode;
      op.flags = flags;
      setArgs(op, args);
    } else {
      Op &op = emit(integerBinary(opcode, flags != 0), dst + e, ref(x, e), ref(y, e));
      op.bits = bits;
      op.flags = flags;
    }
  }
  return Error::success();
}

Error FunctionCompiler::compileBitcast(const Instruction &instruction, const Value *source) {
  unsigned fromBits = scalarBits(source->getType()), toBits = scalarBits(instruction.getType());
  ArrayRef<Ref> from = refs(source);
  if (fromBits == toBits) {
    alias(instruction, Refs(from.begin(), from.end()));
    return Error::success();
  }
  // Through units of which each word of either side is a whole number.
  auto wordBits = [](unsigned bits) { return bits > 64 ? 64u : bits; };
  unsigned unit = std::gcd(wordBits(fromBits), wordBits(toBits));
  if ((fromBits > 64 && fromBits != 128) || (toBits > 64 && toBits != 128))
    return unsupported(instruction, "the cast between these widths is not supported");
  Refs source64(from.begin(), from.end()), units, result;
  for (Ref word : source64)
    for (unsigned at = 0; at < wordBits(fromBits); at += unit) {
      if (unit == wordBits(fromBits)) {
        units.push_back(word);
        continue;
      }
      Op &op = emit(extractBits(), temp(), word);
      op.bits = unit;
      op.imm = at;
      units.push_back(op.dst);
    }
  unsigned each = wordBits(toBits) / unit;
  for (unsigned i = 0; i < units.size(); i += each) {
    if (each == 1) {
      result.push_back(units[i]);
      continue;
    }
    Op &op = emit(packBits(), temp());
    op.bits2 = unit;
    setArgs(op, ArrayRef<Ref>(units).slice(i, each));
    result.push_back(op.dst);
  }
  alias(instruction, std::move(result));
  return Error::success();
}

Error FunctionCompiler::compileCast(const CastInst &cast) {
  const Value *source = cast.getOperand(0);
  if (isa<BitCastInst>(cast))
    return compileBitcast(cast, source);
  unsigned from = scalarBits(source->getType()), to = scalarBits(cast.getType());
  unsigned opcode = cast.getOpcode();
  if (isa<PtrToIntInst, PtrToAddrInst, IntToPtrInst>(cast))
    opcode = to == from  ? unsigned(Instruction::BitCast)
             : to < from ? unsigned(Instruction::Trunc)
                         : unsigned(Instruction::ZExt);
  uint32_t flags = flagsOf(cast);
  Refs result;
  for (unsigned e = 0, count = elements(cast.getType()); e < count; ++e) {
    unsigned wide = from > 64 ? 2 : 1;
    Ref low = ref(source, e * wide), high = from > 64 ? ref(source, e * wide + 1) : 0;
    auto push = [&](Handler handler, unsigned bits, unsigned bits2, Ref a) -> Op & {
      Op &op = emit(handler, temp(), a);
      op.bits = bits;
      op.bits2 = bits2;
      result.push_back(op.dst);
      return op;
    };
    switch (opcode) {
    case Instruction::BitCast:
      result.append(wide, low);
      if (wide == 2)
        result.back() = high;
      break;
    case Instruction::Trunc:
      if (to > 64) {
        result.push_back(low);
        push(truncate(), to - 64, 64, high);
      } else {
        push(truncate(), to, std::min(from, 64u), low).flags = from > 64 ? 0 : flags;
      }
      break;
    case Instruction::ZExt:
      if (flags & FlagNNeg && from <= 64) {
        push(zeroExtend(), 0, from, low);
      } else {
        result.push_back(low);
        if (from > 64)
          result.push_back(high);
      }
      if (to > 64 && from <= 64)
        result.push_back(word(0));
      break;
    case Instruction::SExt:
      if (from > 64) {
        result.push_back(low);
        push(signExtend(), to - 64, from - 64, high);
      } else {
        push(signExtend(), std::min(to, 64u), from, low);
        if (to > 64)
          push(signWord(), to - 64, from, low);
      }
      break;
    case Instruction::FPTrunc:
    case Instruction::FPExt:
      push(floatConvert(), unsigned(*format(cast.getType())), unsigned(*format(source->getType())), low);
      break;
    case Instruction::FPToSI:
    case Instruction::FPToUI: {
      Op &op = emit(to > 64 ? wideHandlers.fromFloat : floatToInteger(), temp(to > 64 ? 2 : 1), low);
      op.bits = to;
      op.bits2 = unsigned(*format(source->getType()));
      op.sub = opcode == Instruction::FPToSI;
      result.push_back(op.dst);
      if (to > 64)
        result.push_back(op.dst + 1);
      break;
    }
    case Instruction::SIToFP:
    case Instruction::UIToFP: {
      bool isWide = from > 64;
      Op &op = push(isWide ? wideHandlers.toFloat : integerToFloat(), unsigned(*format(cast.getType())), from,
                    low);
      op.sub = opcode == Instruction::SIToFP;
      if (isWide)
        setArgs(op, {low, high});
      break;
    }
    default:
      return unsupported(cast, "the cast is not supported");
    }
  }
  alias(cast, std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Vectors and aggregates
//===----------------------------------------------------------------------===//

/// The first word of the member that `indices` name, counted in words.
static unsigned memberWord(FunctionCompiler &compiler, Type *type, ArrayRef<unsigned> indices) {
  unsigned word = 0;
  for (unsigned index : indices) {
    for (unsigned i = 0; i < index; ++i)
      word +=
          compiler.wordsOf(type->isStructTy() ? type->getStructElementType(i) : type->getArrayElementType());
    type = type->isStructTy() ? type->getStructElementType(index) : type->getArrayElementType();
  }
  return word;
}

Error FunctionCompiler::compileAggregate(const Instruction &instruction) {
  ArrayRef<Ref> first = refs(instruction.getOperand(0));
  unsigned count = wordsOf(instruction.getType());
  if (auto *extract = dyn_cast<ExtractValueInst>(&instruction)) {
    ArrayRef<Ref> part = first.slice(
        memberWord(*this, extract->getAggregateOperand()->getType(), extract->getIndices()), count);
    alias(instruction, Refs(part.begin(), part.end()));
    return Error::success();
  }
  if (auto *insert = dyn_cast<InsertValueInst>(&instruction)) {
    Refs words(first.begin(), first.end());
    unsigned at = memberWord(*this, insert->getType(), insert->getIndices());
    for (auto [i, part] : enumerate(refs(insert->getInsertedValueOperand())))
      words[at + i] = part;
    alias(instruction, std::move(words));
    return Error::success();
  }
  if (auto *shuffle = dyn_cast<ShuffleVectorInst>(&instruction)) {
    ArrayRef<Ref> second = refs(shuffle->getOperand(1));
    unsigned each = wordsOf(shuffle->getType()->getElementType());
    Refs words;
    for (int index : shuffle->getShuffleMask())
      for (unsigned i = 0; i < each; ++i) {
        unsigned at = index * each + i;
        words.push_back(index < 0           ? parent.word(0, true)
                        : at < first.size() ? first[at]
                                            : second[at - first.size()]);
      }
    alias(instruction, std::move(words));
    return Error::success();
  }
  // extractelement and insertelement
  bool isExtract = isa<ExtractElementInst>(instruction);
  const Value *index = instruction.getOperand(isExtract ? 1 : 2);
  unsigned total = elements(instruction.getOperand(0)->getType()), each = first.size() / total;
  Refs words;
  if (auto at = immediate(index)) {
    if (*at >= total)
      words.append(count, parent.word(0, true));
    else if (isExtract)
      words.append(first.begin() + *at * each, first.begin() + (*at + 1) * each);
    else {
      words.append(first.begin(), first.end());
      for (auto [i, part] : enumerate(refs(instruction.getOperand(1))))
        words[*at * each + i] = part;
    }
    alias(instruction, std::move(words));
    return Error::success();
  }
  if (isExtract) {
    for (unsigned i = 0; i < each; ++i) {
      Refs choices;
      for (unsigned e = 0; e < total; ++e)
        choices.push_back(first[e * each + i]);
      Op &op = emit(pickElement(), temp(), ref(index));
      words.push_back(op.dst);
      setArgs(op, choices);
    }
  } else {
    for (unsigned e = 0; e < total; ++e)
      for (unsigned i = 0; i < each; ++i) {
        Op &op =
            emit(insertElement(), temp(), ref(index), ref(instruction.getOperand(1), i), first[e * each + i]);
        op.imm = e;
        words.push_back(op.dst);
      }
  }
  alias(instruction, std::move(words));
  return Error::success();
}

Error FunctionCompiler::compileValue(const Instruction &instruction) {
  if (instruction.isBinaryOp())
    return compileBinary(instruction);
  if (auto *cast = dyn_cast<CastInst>(&instruction))
    return compileCast(*cast);
  if (isa<ExtractValueInst, InsertValueInst, ShuffleVectorInst, ExtractElementInst, InsertElementInst>(
          instruction))
    return compileAggregate(instruction);
  const Value *x = instruction.getOperand(0);
  unsigned bits = scalarBits(x->getType());
  if (auto *compare = dyn_cast<CmpInst>(&instruction)) {
    const Value *y = compare->getOperand(1);
    Ref dst = define(instruction);
    for (unsigned e = 0, count = elements(x->getType()); e < count; ++e) {
      if (bits > 64) {
        Refs args = {ref(x, 2 * e), ref(x, 2 * e + 1), ref(y, 2 * e), ref(y, 2 * e + 1)};
        Op &op = emit(wideHandlers.compare, dst + e);
        op.flags = flagsOf(instruction);
        setArgs(op, args);
        op.bits = bits;
        op.sub = compare->getPredicate();
        continue;
      }
      Op &op = emit(isa<FCmpInst>(compare) ? floatCompare() : integerCompare(compare->getPredicate()),
                    dst + e, ref(x, e), ref(y, e));
      op.bits = bits;
      op.sub = compare->getPredicate();
      op.flags = flagsOf(instruction);
      if (auto kind = format(x->getType()))
        op.bits2 = unsigned(*kind);
    }
    return Error::success();
  }
  if (auto *choice = dyn_cast<SelectInst>(&instruction)) {
    Ref dst = define(instruction);
    unsigned count = wordsOf(instruction.getType()), conditions = elements(x->getType());
    for (unsigned i = 0; i < count; ++i)
      emit(selectWord(), dst + i, ref(x, x->getType()->isVectorTy() ? i / (count / conditions) : 0),
           ref(choice->getTrueValue(), i), ref(choice->getFalseValue(), i));
    return Error::success();
  }
  if (isa<FreezeInst>(instruction)) {
    Ref dst = define(instruction);
    for (unsigned i = 0, count = wordsOf(instruction.getType()); i < count; ++i)
      emit(freeze(), dst + i, ref(x, i));
    return Error::success();
  }
  if (instruction.getOpcode() == Instruction::FNeg) {
    Ref dst = define(instruction);
    for (unsigned e = 0, count = elements(x->getType()); e < count; ++e)
      emit(floatNegate(), dst + e, ref(x, e)).bits = bits;
    return Error::success();
  }
  return unsupported(instruction,
                     "instruction '" + Twine(instruction.getOpcodeName()) + "' is not supported");
}

} // namespace qd::sim

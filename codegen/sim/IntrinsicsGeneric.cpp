//===----------------------------------------------------------------------===//
// Compiles the intrinsics that all targets share.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Compile.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace qd::sim {

namespace {

std::optional<IntegerOp> integerOp(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::ctpop:
    return IntegerOp::Ctpop;
  case Intrinsic::ctlz:
    return IntegerOp::Ctlz;
  case Intrinsic::cttz:
    return IntegerOp::Cttz;
  case Intrinsic::bitreverse:
    return IntegerOp::BitReverse;
  case Intrinsic::bswap:
    return IntegerOp::ByteSwap;
  case Intrinsic::abs:
    return IntegerOp::Abs;
  case Intrinsic::smin:
    return IntegerOp::SMin;
  case Intrinsic::smax:
    return IntegerOp::SMax;
  case Intrinsic::umin:
    return IntegerOp::UMin;
  case Intrinsic::umax:
    return IntegerOp::UMax;
  case Intrinsic::fshl:
    return IntegerOp::FunnelLeft;
  case Intrinsic::fshr:
    return IntegerOp::FunnelRight;
  case Intrinsic::sadd_sat:
    return IntegerOp::SAddSat;
  case Intrinsic::uadd_sat:
    return IntegerOp::UAddSat;
  case Intrinsic::ssub_sat:
    return IntegerOp::SSubSat;
  case Intrinsic::usub_sat:
    return IntegerOp::USubSat;
  case Intrinsic::sshl_sat:
    return IntegerOp::SShlSat;
  case Intrinsic::ushl_sat:
    return IntegerOp::UShlSat;
  case Intrinsic::ucmp:
    return IntegerOp::UCmp;
  case Intrinsic::scmp:
    return IntegerOp::SCmp;
  default:
    return std::nullopt;
  }
}

std::optional<FloatOp> floatOp(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::minnum:
    return FloatOp::MinNum;
  case Intrinsic::maxnum:
    return FloatOp::MaxNum;
  case Intrinsic::minimum:
    return FloatOp::Minimum;
  case Intrinsic::maximum:
    return FloatOp::Maximum;
  case Intrinsic::minimumnum:
    return FloatOp::MinimumNum;
  case Intrinsic::maximumnum:
    return FloatOp::MaximumNum;
  case Intrinsic::copysign:
    return FloatOp::CopySign;
  case Intrinsic::pow:
    return FloatOp::Pow;
  case Intrinsic::atan2:
    return FloatOp::Atan2;
  default:
    return std::nullopt;
  }
}

std::optional<FloatFunction> floatFunction(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::fabs:
    return FloatFunction::Abs;
  case Intrinsic::sqrt:
    return FloatFunction::Sqrt;
  case Intrinsic::floor:
    return FloatFunction::Floor;
  case Intrinsic::ceil:
    return FloatFunction::Ceil;
  case Intrinsic::trunc:
    return FloatFunction::Trunc;
  case Intrinsic::rint:
  case Intrinsic::nearbyint:
    return FloatFunction::Rint;
  case Intrinsic::roundeven:
    return FloatFunction::RoundEven;
  case Intrinsic::round:
    return FloatFunction::Round;
  case Intrinsic::canonicalize:
    return FloatFunction::Canonicalize;
  case Intrinsic::exp:
    return FloatFunction::Exp;
  case Intrinsic::exp2:
    return FloatFunction::Exp2;
  case Intrinsic::exp10:
    return FloatFunction::Exp10;
  case Intrinsic::log:
    return FloatFunction::Log;
  case Intrinsic::log2:
    return FloatFunction::Log2;
  case Intrinsic::log10:
    return FloatFunction::Log10;
  case Intrinsic::sin:
    return FloatFunction::Sin;
  case Intrinsic::cos:
    return FloatFunction::Cos;
  case Intrinsic::tan:
    return FloatFunction::Tan;
  case Intrinsic::asin:
    return FloatFunction::Asin;
  case Intrinsic::acos:
    return FloatFunction::Acos;
  case Intrinsic::atan:
    return FloatFunction::Atan;
  case Intrinsic::sinh:
    return FloatFunction::Sinh;
  case Intrinsic::cosh:
    return FloatFunction::Cosh;
  case Intrinsic::tanh:
    return FloatFunction::Tanh;
  default:
    return std::nullopt;
  }
}

/// The operation that a vector.reduce repeats: an integer opcode, or one of
/// the two kinds of functions.
struct Reduction {
  unsigned opcode = 0;
  std::optional<IntegerOp> integer;
  std::optional<FloatOp> floating;
  bool hasStart = false;
};

std::optional<Reduction> reduction(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::vector_reduce_add:
    return Reduction{Instruction::Add, {}, {}};
  case Intrinsic::vector_reduce_mul:
    return Reduction{Instruction::Mul, {}, {}};
  case Intrinsic::vector_reduce_and:
    return Reduction{Instruction::And, {}, {}};
  case Intrinsic::vector_reduce_or:
    return Reduction{Instruction::Or, {}, {}};
  case Intrinsic::vector_reduce_xor:
    return Reduction{Instruction::Xor, {}, {}};
  case Intrinsic::vector_reduce_smax:
    return Reduction{0, IntegerOp::SMax, {}};
  case Intrinsic::vector_reduce_smin:
    return Reduction{0, IntegerOp::SMin, {}};
  case Intrinsic::vector_reduce_umax:
    return Reduction{0, IntegerOp::UMax, {}};
  case Intrinsic::vector_reduce_umin:
    return Reduction{0, IntegerOp::UMin, {}};
  case Intrinsic::vector_reduce_fadd:
    return Reduction{0, {}, FloatOp::Add, true};
  case Intrinsic::vector_reduce_fmul:
    return Reduction{0, {}, FloatOp::Mul, true};
  case Intrinsic::vector_reduce_fmax:
    return Reduction{0, {}, FloatOp::MaxNum};
  case Intrinsic::vector_reduce_fmin:
    return Reduction{0, {}, FloatOp::MinNum};
  case Intrinsic::vector_reduce_fmaximum:
    return Reduction{0, {}, FloatOp::Maximum};
  case Intrinsic::vector_reduce_fminimum:
    return Reduction{0, {}, FloatOp::Minimum};
  default:
    return std::nullopt;
  }
}

} // namespace

Expected<bool> FunctionCompiler::compileGeneric(const CallBase &call) {
  Intrinsic::ID id = call.getIntrinsicID();
  auto operand = [&](unsigned i) { return call.getArgOperand(i); };
  Type *type = call.arg_empty() ? call.getType() : operand(0)->getType();
  auto kind = format(type);
  unsigned count = elements(type);
  bool isData = type->getScalarType()->isIntegerTy() || type->getScalarType()->isPointerTy() || kind;
  unsigned bits = isData ? scalarBits(type) : 0;

  if (auto op = integerOp(id)) {
    Ref dst = define(call);
    bool hasFlag = id == Intrinsic::ctlz || id == Intrinsic::cttz || id == Intrinsic::abs;
    unsigned arguments = call.arg_size() - hasFlag;
    bool comparesOnly = id == Intrinsic::ucmp || id == Intrinsic::scmp;
    if (bits > 64 && comparesOnly)
      return unsupported(call, "this intrinsic is not supported on integers wider than 64 bits");
    for (unsigned e = 0; e < count; ++e) {
      if (bits > 64) {
        Refs words;
        for (unsigned i = 0; i < arguments; ++i)
          words.append({ref(operand(i), 2 * e), ref(operand(i), 2 * e + 1)});
        Op &emitted = emit(wideHandlers.function, dst + 2 * e);
        emitted.bits = bits;
        emitted.sub = unsigned(*op);
        emitted.flags = hasFlag && immediate(operand(1)).value_or(0);
        setArgs(emitted, words);
        continue;
      }
      Ref a = ref(operand(0), e), b = arguments > 1 ? ref(operand(1), e) : a,
          c = arguments > 2 ? ref(operand(2), e) : a;
      Op &emitted = emit(integerFunction(*op), dst + e, a, b, c);
      emitted.bits = bits;
      emitted.bits2 = comparesOnly ? scalarBits(call.getType()) : 0;
      emitted.flags = hasFlag && immediate(operand(1)).value_or(0);
    }
    return true;
  }
  if (auto op = floatOp(id)) {
    Ref dst = define(call);
    for (unsigned e = 0; e < count; ++e)
      emit(floatBinaryHandler(*kind, *op), dst + e, ref(operand(0), e), ref(operand(1), e));
    return true;
  }
  if (auto function = floatFunction(id)) {
    Ref dst = define(call);
    for (unsigned e = 0; e < count; ++e) {
      Op &op = emit(floatUnaryHandler(), dst + e, ref(operand(0), e));
      op.sub = unsigned(*function);
      op.bits2 = unsigned(*kind);
    }
    return true;
  }
  if (auto reduce = reduction(id)) {
    const Value *vector = operand(reduce->hasStart ? 1 : 0);
    auto element = format(vector->getType());
    unsigned width = scalarBits(vector->getType());
    if (width > 64)
      return unsupported(call, "this intrinsic is not supported on integers wider than 64 bits");
    unsigned length = elements(vector->getType());
    Ref sum = reduce->hasStart ? ref(operand(0)) : ref(vector, 0);
    for (unsigned e = reduce->hasStart ? 0 : 1; e < length; ++e) {
      Handler handler = reduce->floating  ? floatBinaryHandler(*element, *reduce->floating)
                        : reduce->integer ? integerFunction(*reduce->integer)
                                          : integerBinary(reduce->opcode, false);
      Ref next = temp();
      emit(handler, next, sum, ref(vector, e), sum).bits = width;
      sum = next;
    }
    alias(call, {sum});
    return true;
  }

  switch (id) {
  case Intrinsic::fma:
  case Intrinsic::fmuladd: {
    Ref dst = define(call);
    for (unsigned e = 0; e < count; ++e)
      emit(floatFma(), dst + e, ref(operand(0), e), ref(operand(1), e), ref(operand(2), e)).bits2 =
          unsigned(*kind);
    return true;
  }
  case Intrinsic::ldexp:
  case Intrinsic::powi: {
    Ref dst = define(call);
    const Value *exponent = operand(1);
    for (unsigned e = 0; e < count; ++e) {
      Op &op = emit(floatPower(), dst + e, ref(operand(0), e),
                    ref(exponent, exponent->getType()->isVectorTy() ? e : 0));
      op.bits = scalarBits(exponent->getType());
      op.bits2 = unsigned(*kind);
      op.sub = id == Intrinsic::ldexp;
    }
    return true;
  }
  case Intrinsic::frexp: {
    if (count != 1)
      return unsupported(call, "frexp of vectors is not supported");
    Op &op = emit(floatParts(), define(call), ref(operand(0)));
    op.bits = scalarBits(call.getType()->getStructElementType(1));
    op.bits2 = unsigned(*kind);
    return true;
  }
  case Intrinsic::is_fpclass: {
    Ref dst = define(call);
    for (unsigned e = 0; e < count; ++e) {
      Op &op = emit(floatClass(), dst + e, ref(operand(0), e));
      op.imm = *immediate(operand(1));
      op.bits2 = unsigned(*kind);
    }
    return true;
  }
  case Intrinsic::fptosi_sat:
  case Intrinsic::fptoui_sat: {
    unsigned to = scalarBits(call.getType());
    Ref dst = define(call);
    for (unsigned e = 0; e < count; ++e) {
      Op &op = emit(to > 64 ? wideHandlers.fromFloat : floatToInteger(), dst + e * (to > 64 ? 2 : 1),
                    ref(operand(0), e));
      op.bits = to;
      op.bits2 = unsigned(*kind);
      op.sub = 2 | (id == Intrinsic::fptosi_sat);
    }
    return true;
  }
  case Intrinsic::convert_to_fp16:
  case Intrinsic::convert_from_fp16: {
    bool to = id == Intrinsic::convert_to_fp16;
    Op &op = emit(floatConvert(), define(call), ref(operand(0)));
    op.bits = unsigned(to ? Format::Half : *format(call.getType()));
    op.bits2 = unsigned(to ? *kind : Format::Half);
    return true;
  }
  case Intrinsic::sadd_with_overflow:
  case Intrinsic::uadd_with_overflow:
  case Intrinsic::ssub_with_overflow:
  case Intrinsic::usub_with_overflow:
  case Intrinsic::smul_with_overflow:
  case Intrinsic::umul_with_overflow: {
    Refs sums, flags;
    for (unsigned e = 0; e < count; ++e) {
      bool isWide = bits > 64;
      Op &op = isWide ? emit(wideHandlers.overflow, temp(3))
                      : emit(overflowOp(), temp(2), ref(operand(0), e), ref(operand(1), e));
      if (isWide)
        setArgs(op, {ref(operand(0), 2 * e), ref(operand(0), 2 * e + 1), ref(operand(1), 2 * e),
                     ref(operand(1), 2 * e + 1)});
      op.bits = bits;
      op.sub = id == Intrinsic::sadd_with_overflow   ? 0
               : id == Intrinsic::uadd_with_overflow ? 1
               : id == Intrinsic::ssub_with_overflow ? 2
               : id == Intrinsic::usub_with_overflow ? 3
               : id == Intrinsic::smul_with_overflow ? 4
                                                     : 5;
      sums.push_back(op.dst);
      if (isWide)
        sums.push_back(op.dst + 1);
      flags.push_back(op.dst + (isWide ? 2 : 1));
    }
    append_range(sums, flags);
    alias(call, std::move(sums));
    return true;
  }
  case Intrinsic::memcpy:
  case Intrinsic::memcpy_inline:
  case Intrinsic::memmove:
  case Intrinsic::memset:
  case Intrinsic::memset_inline: {
    bool isSet = id == Intrinsic::memset || id == Intrinsic::memset_inline;
    Op &op = emit(memoryHandlers.copy, 0, ref(operand(0)), ref(operand(1)), ref(operand(2)));
    op.space = type->getPointerAddressSpace();
    op.sub = isSet ? 0 : operand(1)->getType()->getPointerAddressSpace();
    op.imm = isSet ? 2 : id == Intrinsic::memmove;
    return true;
  }
  case Intrinsic::expect:
  case Intrinsic::expect_with_probability:
  case Intrinsic::ssa_copy:
  case Intrinsic::launder_invariant_group:
  case Intrinsic::strip_invariant_group:
  case Intrinsic::ptr_annotation:
  case Intrinsic::arithmetic_fence: {
    ArrayRef<Ref> words = refs(operand(0));
    alias(call, Refs(words.begin(), words.end()));
    return true;
  }
  case Intrinsic::ptrmask: {
    Ref dst = define(call);
    for (unsigned e = 0; e < count; ++e)
      emit(integerBinary(Instruction::And, false), dst + e, ref(operand(0), e), ref(operand(1), e)).bits =
          bits;
    return true;
  }
  case Intrinsic::is_constant:
    alias(call, {word(0)});
    return true;
  case Intrinsic::objectsize:
    alias(call, {word(immediate(operand(1)).value_or(0) ? 0 : lowBits(scalarBits(call.getType())))});
    return true;
  case Intrinsic::trap:
  case Intrinsic::debugtrap:
  case Intrinsic::ubsantrap:
    emit(controlHandlers.trap, 0);
    return true;
  case Intrinsic::assume:
  case Intrinsic::lifetime_start:
  case Intrinsic::lifetime_end:
  case Intrinsic::invariant_end:
  case Intrinsic::experimental_noalias_scope_decl:
  case Intrinsic::sideeffect:
  case Intrinsic::donothing:
  case Intrinsic::prefetch:
  case Intrinsic::dbg_declare:
  case Intrinsic::dbg_value:
  case Intrinsic::dbg_label:
  case Intrinsic::dbg_assign:
  case Intrinsic::var_annotation:
  case Intrinsic::pseudoprobe:
    return true;
  default:
    break;
  }
  return false;
}

} // namespace qd::sim

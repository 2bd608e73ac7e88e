//===- NVPTXAtomics.cpp - atomic accesses as PTX -------------------------------------------===//

#include "codegen/NVPTXAtomics.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace qd {

static StringRef getSemantics(AtomicOrdering order) {
  switch (order) {
  case AtomicOrdering::Acquire:
    return "acquire";
  case AtomicOrdering::Release:
    return "release";
  case AtomicOrdering::AcquireRelease:
  case AtomicOrdering::SequentiallyConsistent:
    return "acq_rel";
  default:
    return "relaxed";
  }
}

/// ".relaxed.gpu.global", for an access of `pointer`.
static std::string getQualifiers(const Instruction &access, AtomicOrdering order, SyncScope::ID scope,
                                 const Value *pointer) {
  SmallVector<StringRef> names;
  access.getContext().getSyncScopeNames(names);
  constexpr unsigned sharedSpace = 3;
  return formatv(".{0}.{1}.{2}", getSemantics(order), names[scope] == "block" ? "cta" : "gpu",
                 pointer->getType()->getPointerAddressSpace() == sharedSpace ? "shared" : "global");
}

/// The operation and type as PTX writes them; "" for what it has no instruction for.
static std::string getOperation(AtomicRMWInst::BinOp operation, Type *type) {
  unsigned width = type->getPrimitiveSizeInBits();
  switch (operation) {
  case AtomicRMWInst::Xchg:
    return formatv("exch.b{0}", width);
  case AtomicRMWInst::Add:
    return formatv("add.u{0}", width);
  case AtomicRMWInst::And:
    return formatv("and.b{0}", width);
  case AtomicRMWInst::Or:
    return formatv("or.b{0}", width);
  case AtomicRMWInst::Xor:
    return formatv("xor.b{0}", width);
  case AtomicRMWInst::Max:
    return formatv("max.s{0}", width);
  case AtomicRMWInst::Min:
    return formatv("min.s{0}", width);
  case AtomicRMWInst::UMax:
    return formatv("max.u{0}", width);
  case AtomicRMWInst::UMin:
    return formatv("min.u{0}", width);
  case AtomicRMWInst::FAdd:
    if (width == 16)
      return type->isHalfTy() ? "add.noftz.f16" : "add.noftz.bf16";
    return formatv("add.f{0}", width);
  default:
    return "";
  }
}

/// The register class of a type in constraints.
static char getConstraint(Type *type) {
  if (type->isFloatTy())
    return 'f';
  if (type->isDoubleTy())
    return 'd';
  unsigned width = type->getPrimitiveSizeInBits();
  return width == 16 ? 'h' : width == 32 ? 'r' : 'l';
}

static Value *emitPTX(IRBuilder<> &b, const Twine &text, Type *result, ArrayRef<Value *> operands) {
  SmallVector<Type *> types;
  std::string constraints = result->isVoidTy() ? "" : std::string("=") + getConstraint(result) + ",";
  for (Value *operand : operands) {
    types.push_back(operand->getType());
    constraints += operand->getType()->isPointerTy() ? 'l' : getConstraint(operand->getType());
    constraints += ',';
  }
  auto *type = FunctionType::get(result, types, /*isVarArg=*/false);
  return b.CreateCall(type, InlineAsm::get(type, text.str(), constraints + "~{memory}", /*hasSideEffects=*/true),
                      operands);
}

/// `red` gives no old value; it cannot acquire, for it reads nothing that the thread sees.
static bool canReduce(const AtomicRMWInst &access) {
  return access.use_empty() && access.getOperation() != AtomicRMWInst::Xchg &&
         (access.getOrdering() == AtomicOrdering::Monotonic || access.getOrdering() == AtomicOrdering::Release);
}

static Value *emitRMW(IRBuilder<> &b, AtomicRMWInst &access, AtomicRMWInst::BinOp operation, Value *pointer,
                      Value *value) {
  std::string qualifiers = getQualifiers(access, access.getOrdering(), access.getSyncScopeID(), pointer);
  std::string name = getOperation(operation, value->getType());
  bool isSmallFloat = value->getType()->isHalfTy() || value->getType()->isBFloatTy();
  Value *bits = isSmallFloat ? b.CreateBitCast(value, b.getInt16Ty()) : value;
  if (canReduce(access))
    return emitPTX(b, "red" + qualifiers + "." + name + " [$0], $1;", b.getVoidTy(), {pointer, bits});
  Value *old = emitPTX(b, "atom" + qualifiers + "." + name + " $0, [$1], $2;", bits->getType(), {pointer, bits});
  return isSmallFloat ? b.CreateBitCast(old, value->getType()) : old;
}

/// and, or, xor of fewer than 32 bits are those of the word around them.
static Value *emitBitwise(IRBuilder<> &b, AtomicRMWInst &access) {
  Value *pointer = access.getPointerOperand();
  Type *addressType = b.getInt64Ty(), *type = access.getType(), *word = b.getInt32Ty();
  Value *address = b.CreatePtrToInt(pointer, addressType);
  Value *low = b.CreateAnd(address, 3);
  Value *aligned = b.CreateGEP(b.getInt8Ty(), pointer, b.CreateNeg(low));
  Value *shift = b.CreateShl(b.CreateTrunc(low, word), 3);
  Value *value = b.CreateShl(b.CreateZExt(access.getValOperand(), word), shift);
  if (access.getOperation() == AtomicRMWInst::And) {
    Value *own = b.CreateShl(b.getInt32(maskTrailingOnes<uint32_t>(type->getIntegerBitWidth())), shift);
    value = b.CreateOr(value, b.CreateNot(own));
  }
  Value *old = emitRMW(b, access, access.getOperation(), aligned, value);
  return access.use_empty() ? old : b.CreateTrunc(b.CreateLShr(old, shift), type);
}

static Value *emitRMW(IRBuilder<> &b, AtomicRMWInst &access) {
  AtomicRMWInst::BinOp operation = access.getOperation();
  Value *value = access.getValOperand();
  if (operation == AtomicRMWInst::Sub) {
    operation = AtomicRMWInst::Add;
    value = b.CreateNeg(value);
  }
  if (value->getType()->isIntegerTy() && value->getType()->getIntegerBitWidth() < 32)
    return emitBitwise(b, access);
  return emitRMW(b, access, operation, access.getPointerOperand(), value);
}

static Value *emitSwap16(IRBuilder<> &b, AtomicCmpXchgInst &access) {
  Value *pointer = access.getPointerOperand(), *expected = access.getCompareOperand();
  AtomicOrdering order = access.getMergedOrdering();
  Value *old = emitPTX(b, "atom" + getQualifiers(access, order, access.getSyncScopeID(), pointer) +
                              ".cas.b16 $0, [$1], $2, $3;",
                       b.getInt16Ty(), {pointer, expected, access.getNewValOperand()});
  Value *pair = b.CreateInsertValue(PoisonValue::get(access.getType()), old, 0);
  return b.CreateInsertValue(pair, b.CreateICmpEQ(old, expected), 1);
}

/// Whether `emitRMW` knows the access; the others LLVM makes loops of.
static bool hasInstruction(const AtomicRMWInst &access) {
  Type *type = access.getType();
  AtomicRMWInst::BinOp operation = access.getOperation();
  if (type->isIntegerTy() && type->getIntegerBitWidth() < 32)
    return operation == AtomicRMWInst::And || operation == AtomicRMWInst::Or || operation == AtomicRMWInst::Xor;
  return operation == AtomicRMWInst::Sub || !getOperation(operation, type).empty();
}

void writeAtomicsAsPTX(Module &module) {
  for (Function &function : module) {
    SmallVector<Instruction *> accesses;
    for (Instruction &instruction : instructions(function)) {
      auto *rmw = dyn_cast<AtomicRMWInst>(&instruction);
      auto *swap = dyn_cast<AtomicCmpXchgInst>(&instruction);
      if ((rmw && hasInstruction(*rmw)) || (swap && swap->getCompareOperand()->getType()->isIntegerTy(16)))
        accesses.push_back(&instruction);
    }
    for (Instruction *access : accesses) {
      IRBuilder<> b(access);
      auto *rmw = dyn_cast<AtomicRMWInst>(access);
      Value *result = rmw ? emitRMW(b, *rmw) : emitSwap16(b, *cast<AtomicCmpXchgInst>(access));
      if (!access->use_empty())
        access->replaceAllUsesWith(result);
      access->eraseFromParent();
    }
  }
}

} // namespace qd

// Every instruction and generic intrinsic against LLVM's own constant folding,
// on edge and random values: the same result, and poison where LLVM has it.
#include "Harness.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include <cstring>
#include <random>

using namespace llvm;
using namespace qd::test;

namespace {

constexpr unsigned slot = 32, operands = 3, tuples = 256;

struct Case {
  std::string result;          // type of %r
  std::vector<std::string> in; // types of %a, %b, %c
  std::string text;            // what %r is
};

void PrintTo(const Case &value, std::ostream *stream) { *stream << value.text; }

std::string kernelOf(const Case &test) {
  std::string body = "define ptx_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {\n"
                     "%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%t = zext i32 %tid to i64\n";
  for (unsigned i = 0; i < test.in.size(); ++i) {
    std::string name(1, char('a' + i));
    body += "%o" + name + " = mul i64 %t, " + std::to_string(slot * operands) + "\n%q" + name +
            " = add i64 %o" + name + ", " + std::to_string(slot * i) + "\n%p" + name +
            " = getelementptr i8, ptr addrspace(1) %in, i64 %q" + name + "\n%" + name + " = load " +
            test.in[i] + ", ptr addrspace(1) %p" + name + ", align 1\n";
  }
  body += "%r = " + test.text + "\n%w = mul i64 %t, " + std::to_string(slot) +
          "\n%pr = getelementptr i8, ptr addrspace(1) %out, i64 %w\nstore " + test.result +
          " %r, ptr addrspace(1) %pr, align 1\nret void\n}\n";
  return body;
}

class Values {
public:
  explicit Values(std::string name) : random(std::hash<std::string>()(name)) {}

  Constant *make(Type *type) {
    if (auto *vector = dyn_cast<FixedVectorType>(type)) {
      SmallVector<Constant *> parts;
      for (unsigned i = 0; i < vector->getNumElements(); ++i)
        parts.push_back(make(vector->getElementType()));
      return ConstantVector::get(parts);
    }
    if (type->isIntegerTy())
      return ConstantInt::get(type, integer(type->getIntegerBitWidth()));
    const fltSemantics &semantics = type->getFltSemantics();
    return ConstantFP::get(type, floating(semantics));
  }

private:
  std::mt19937_64 random;

  APInt integer(unsigned bits) {
    switch (random() % 8) {
    case 0:
      return APInt::getSignedMinValue(bits);
    case 1:
      return APInt::getSignedMaxValue(bits);
    case 2:
      return APInt::getAllOnes(bits);
    case 3:
      return APInt(bits, random() % 5, false, true);
    case 4:
      return APInt(bits, random() % bits, false, true);
    case 5:
      return APInt::getOneBitSet(bits, random() % bits);
    default:
      return APInt(128, {random(), random()}).trunc(std::min(bits, 128u));
    }
  }

  APFloat floating(const fltSemantics &semantics) {
    switch (random() % 10) {
    case 0:
      return APFloat::getZero(semantics, random() & 1);
    case 1:
      return APFloat::getInf(semantics, random() & 1);
    case 2:
      return APFloat::getNaN(semantics);
    case 3:
      return APFloat::getLargest(semantics, random() & 1);
    case 4:
      return APFloat::getSmallest(semantics, random() & 1);
    case 5:
      return APFloat::getSmallestNormalized(semantics, random() & 1);
    case 6: {
      unsigned bits = APFloat::semanticsSizeInBits(semantics);
      APFloat any(semantics, APInt(64, random()).trunc(bits));
      return any.isSignaling() ? any.makeQuiet() : any;
    }
    default: {
      APFloat value(std::ldexp(double(int64_t(random())), -63 + int(random() % 24)) +
                    double(random() % 3) / 2);
      bool loses;
      value.convert(semantics, APFloat::rmNearestTiesToEven, &loses);
      return value;
    }
    }
  }
};

void write(const Constant &value, uint8_t *at) {
  Type *type = value.getType();
  if (auto *vector = dyn_cast<FixedVectorType>(type)) {
    unsigned step = vector->getScalarSizeInBits() / 8;
    for (unsigned i = 0; i < vector->getNumElements(); ++i)
      write(*value.getAggregateElement(i), at + i * step);
    return;
  }
  APInt bits = isa<ConstantInt>(value) ? cast<ConstantInt>(value).getValue()
                                       : cast<ConstantFP>(value).getValueAPF().bitcastToAPInt();
  std::memcpy(at, bits.getRawData(), divideCeil(bits.getBitWidth(), 8));
}

bool hasPoison(const Constant &value) {
  if (isa<UndefValue>(value))
    return true;
  for (unsigned i = 0; i < value.getNumOperands(); ++i)
    if (isa<UndefValue>(value.getOperand(i)))
      return true;
  return false;
}

bool same(const Constant &expected, const uint8_t *at) {
  Type *type = expected.getType();
  if (auto *vector = dyn_cast<FixedVectorType>(type)) {
    unsigned step = vector->getScalarSizeInBits() / 8;
    for (unsigned i = 0; i < vector->getNumElements(); ++i)
      if (!same(*expected.getAggregateElement(i), at + i * step))
        return false;
    return true;
  }
  if (auto *structure = dyn_cast<StructType>(type)) {
    for (unsigned i = 0; i < structure->getNumElements(); ++i)
      if (!same(*expected.getAggregateElement(i), at))
        return false;
      else
        at += divideCeil(structure->getElementType(i)->getScalarSizeInBits(), 8);
    return true;
  }
  unsigned bits = type->getScalarSizeInBits();
  uint64_t raw[2] = {0, 0};
  std::memcpy(raw, at, divideCeil(bits, 8));
  APInt found(bits, ArrayRef<uint64_t>(raw, divideCeil(bits, 64)));
  if (auto *number = dyn_cast<ConstantInt>(&expected))
    return number->getValue() == found;
  APFloat floating(type->getFltSemantics(), found);
  const APFloat &wanted = cast<ConstantFP>(expected).getValueAPF();
  return wanted.isNaN() ? floating.isNaN() : wanted.bitwiseIsEqual(floating);
}

class Folding : public testing::TestWithParam<Case> {};

TEST_P(Folding, AgreesWithLLVM) {
  const Case &test = GetParam();
  std::string text = kernelOf(test);
  LLVMContext context;
  SMDiagnostic diagnostic;
  auto module = parseAssemblyString(moduleText("sm_80", text), diagnostic, context);
  ASSERT_TRUE(module) << diagnostic.getMessage().str() << "\n" << text;
  Instruction *instruction = nullptr;
  for (Instruction &candidate : module->getFunction("k")->front())
    if (candidate.getName() == "r")
      instruction = &candidate;
  auto program = load(onChip("sm_80"), text);
  ASSERT_TRUE(bool(program)) << toString(program.takeError());

  Values values(test.text);
  std::vector<uint8_t> in(slot * operands * tuples), out(slot * tuples);
  std::vector<std::vector<Constant *>> inputs;
  std::vector<Constant *> expected;
  unsigned poisoned = 0;
  for (unsigned attempt = 0; expected.size() < tuples && attempt < 8 * tuples; ++attempt) {
    SmallVector<Constant *> replacement;
    std::vector<Constant *> tuple;
    for (const std::string &name : test.in) {
      unsigned position = tuple.size();
      for (Instruction &candidate : module->getFunction("k")->front())
        if (candidate.getName() == std::string(1, char('a' + position)))
          tuple.push_back(values.make(candidate.getType()));
      (void)name;
    }
    for (Value *operand : instruction->operands()) {
      auto *constant = dyn_cast<Constant>(operand);
      replacement.push_back(constant ? constant : tuple[operand->getName()[0] - 'a']);
    }
    Constant *folded;
    if (auto *compare = dyn_cast<CmpInst>(instruction))
      folded = ConstantFoldCompareInstOperands(compare->getPredicate(), replacement[0], replacement[1],
                                               module->getDataLayout());
    else
      folded = ConstantFoldInstOperands(instruction, replacement, module->getDataLayout());
    if (!folded || isa<ConstantExpr>(folded))
      continue;
    uint8_t *place = in.data() + slot * operands * expected.size();
    for (unsigned i = 0; i < tuple.size(); ++i)
      write(*tuple[i], place + slot * i);
    if (hasPoison(*folded)) {
      // LLVM's folding does not look at flags such as nsw, so poison here is
      // never of their doing: run it by itself.
      if (poisoned++ >= 4)
        continue;
      Error error = (*program)->run(
          "k", {1, 1, 1}, {1, 1, 1},
          {qd::SimArg::buffer(out.data(), out.size()), qd::SimArg::buffer(place, slot * operands)});
      EXPECT_TRUE(bool(error)) << test.text << " gave no poison";
      consumeError(std::move(error));
      continue;
    }
    expected.push_back(folded);
    inputs.push_back(tuple);
  }
  ASSERT_GT(expected.size(), 20u) << test.text << ": LLVM folds too few";
  Error error =
      (*program)->run("k", {1, 1, 1}, {uint32_t(expected.size()), 1, 1},
                      {qd::SimArg::buffer(out.data(), out.size()), qd::SimArg::buffer(in.data(), in.size())});
  ASSERT_FALSE(bool(error)) << toString(std::move(error));
  unsigned wrong = 0;
  for (unsigned i = 0; i < expected.size() && wrong < 3; ++i)
    if (!same(*expected[i], out.data() + slot * i)) {
      ++wrong;
      std::string message;
      raw_string_ostream stream(message);
      stream << test.text << " of";
      for (Constant *constant : inputs[i])
        stream << " " << *constant;
      stream << ", expected " << *expected[i] << ", found bytes";
      for (unsigned b = 0; b < 16; ++b)
        stream << " " << unsigned(out[slot * i + b]);
      ADD_FAILURE() << message;
    }
}

std::string mangle(std::string type) {
  if (type == "half")
    return "f16";
  if (type == "bfloat")
    return "bf16";
  if (type == "float")
    return "f32";
  if (type == "double")
    return "f64";
  return type;
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  const char *integers[] = {"i1", "i8", "i13", "i16", "i32", "i64", "i100", "i128"};
  const char *floats[] = {"half", "bfloat", "float", "double"};
  auto add = [&](std::string result, std::vector<std::string> in, std::string text) {
    cases.push_back({result, in, text});
  };
  for (std::string t : integers) {
    for (std::string op :
         {"add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem"})
      if (t != "i1" || (op != "sdiv" && op != "srem")) // -1 / -1 overflows, which the folding overlooks
        add(t, {t, t}, op + " " + t + " %a, %b");
    for (std::string p : {"eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle"})
      add("i1", {t, t}, "icmp " + p + " " + t + " %a, %b");
    add(t, {"i1", t, t}, "select i1 %a, " + t + " %b, " + t + " %c");
    for (std::string f : {"smin", "smax", "umin", "umax", "sadd.sat", "uadd.sat", "ssub.sat", "usub.sat"})
      add(t, {t, t}, "call " + t + " @llvm." + f + "." + t + "(" + t + " %a, " + t + " %b)");
    for (std::string f : {"ctpop", "bitreverse"})
      add(t, {t}, "call " + t + " @llvm." + f + "." + t + "(" + t + " %a)");
    for (std::string f : {"ctlz", "cttz", "abs"})
      for (std::string flag : {"true", "false"})
        add(t, {t}, "call " + t + " @llvm." + f + "." + t + "(" + t + " %a, i1 " + flag + ")");
    for (std::string f : {"fshl", "fshr"})
      add(t, {t, t, t}, "call " + t + " @llvm." + f + "." + t + "(" + t + " %a, " + t + " %b, " + t + " %c)");
    for (std::string f : {"sadd", "uadd", "ssub", "usub", "smul", "umul"})
      if (t == "i8" || t == "i16" || t == "i32" || t == "i64" || t == "i128")
        add("{" + t + ", i1}", {t, t},
            "call {" + t + ", i1} @llvm." + f + ".with.overflow." + t + "(" + t + " %a, " + t + " %b)");
  }
  for (std::string t : {"i16", "i32", "i64", "i128"})
    add(t, {t}, "call " + t + " @llvm.bswap." + t + "(" + t + " %a)");
  for (std::string f : {"scmp", "ucmp"})
    add("i8", {"i32", "i32"}, "call i8 @llvm." + f + ".i8.i32(i32 %a, i32 %b)");
  const std::pair<const char *, const char *> widths[] = {{"i8", "i32"},    {"i32", "i64"},  {"i13", "i64"},
                                                          {"i1", "i32"},    {"i64", "i128"}, {"i32", "i100"},
                                                          {"i100", "i128"}, {"i8", "i13"}};
  for (auto [narrow, wide] : widths) {
    add(wide, {narrow}, std::string("zext ") + narrow + " %a to " + wide);
    add(wide, {narrow}, std::string("sext ") + narrow + " %a to " + wide);
    add(narrow, {wide}, std::string("trunc ") + wide + " %a to " + narrow);
  }
  for (std::string t : floats) {
    for (std::string op : {"fadd", "fsub", "fmul", "fdiv", "frem"})
      add(t, {t, t}, op + " " + t + " %a, %b");
    add(t, {t}, "fneg " + t + " %a");
    for (std::string p : {"oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule",
                          "une", "uno", "true", "false"})
      add("i1", {t, t}, "fcmp " + p + " " + t + " %a, %b");
    for (std::string f : {"minnum", "maxnum", "minimum", "maximum", "minimumnum", "maximumnum", "copysign"})
      add(t, {t, t}, "call " + t + " @llvm." + f + "." + mangle(t) + "(" + t + " %a, " + t + " %b)");
    for (std::string f : {"fabs", "floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round"})
      if (t != "bfloat") // LLVM folds none of these
        add(t, {t}, "call " + t + " @llvm." + f + "." + mangle(t) + "(" + t + " %a)");
    add(t, {t, t, t}, "call " + t + " @llvm.fma." + mangle(t) + "(" + t + " %a, " + t + " %b, " + t + " %c)");
    for (std::string u : floats) {
      unsigned from = t == "double"  ? 64
                      : t == "float" ? 32
                                     : 16,
               to = u == "double"  ? 64
                    : u == "float" ? 32
                                   : 16;
      if (from != to)
        add(u, {t}, std::string(from > to ? "fptrunc " : "fpext ") + t + " %a to " + u);
    }
    for (std::string i : {"i8", "i13", "i32", "i64", "i100", "i128"}) {
      add(i, {t}, "fptosi " + t + " %a to " + i);
      add(i, {t}, "fptoui " + t + " %a to " + i);
      add(t, {i}, "sitofp " + i + " %a to " + t);
      add(t, {i}, "uitofp " + i + " %a to " + t);
      add(i, {t}, "call " + i + " @llvm.fptosi.sat." + i + "." + mangle(t) + "(" + t + " %a)");
      add(i, {t}, "call " + i + " @llvm.fptoui.sat." + i + "." + mangle(t) + "(" + t + " %a)");
    }
    for (std::string mask : {"3", "252", "516", "96", "1023"})
      add("i1", {t}, "call i1 @llvm.is.fpclass." + mangle(t) + "(" + t + " %a, i32 " + mask + ")");
    if (t != "bfloat")
      add(t, {t, "i8"}, "call " + t + " @llvm.ldexp." + mangle(t) + ".i8(" + t + " %a, i8 %b)");
  }
  // Moves between shapes.
  for (auto [from, to] : {std::pair{"<4 x i8>", "i32"},
                          {"i64", "<2 x float>"},
                          {"<2 x i64>", "i128"},
                          {"i128", "<4 x i32>"},
                          {"<4 x half>", "<2 x i32>"},
                          {"double", "<2 x i32>"},
                          {"<2 x i16>", "<4 x i8>"},
                          {"float", "i32"}})
    add(to, {from}, std::string("bitcast ") + from + " %a to " + to);
  add("<4 x i32>", {"<4 x i32>", "<4 x i32>"},
      "shufflevector <4 x i32> %a, <4 x i32> %b, <4 x i32> <i32 6, i32 1, i32 0, i32 7>");
  add("i32", {"<4 x i32>"}, "extractelement <4 x i32> %a, i32 2");
  add("<4 x i32>", {"<4 x i32>", "i32"}, "insertelement <4 x i32> %a, i32 %b, i32 2");
  add("i32", {"<4 x i32>", "i2"}, "extractelement <4 x i32> %a, i2 %b");
  add("<4 x i32>", {"<4 x i32>", "i32", "i2"}, "insertelement <4 x i32> %a, i32 %b, i2 %c");
  add("<4 x i16>", {"<4 x i16>", "<4 x i16>"}, "add <4 x i16> %a, %b");
  add("<2 x float>", {"<2 x float>", "<2 x float>"}, "fmul <2 x float> %a, %b");
  for (std::string f : {"add", "mul", "and", "or", "xor", "smax", "smin", "umax", "umin"})
    add("i32", {"<4 x i32>"}, "call i32 @llvm.vector.reduce." + f + ".v4i32(<4 x i32> %a)");
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Folding, testing::ValuesIn(allCases()),
                         [](const auto &info) { return std::to_string(info.index); });

} // namespace

//===- ElementwiseTest.cpp - every arith and math op on every type and size ---------------------===//

#include "Differential.h"


using namespace qd;
using namespace qd::test;

namespace {
/// One kernel with all ops of a type: inputs a, b (any), s (the op's own second operand), one output an op.
class Sweep {
public:
  Sweep(std::string type) : type(type) {}

  /// `op` uses %a, %b, %c, %safe and %shift.
  void add(const std::string &op, const std::string &resultType) {
    std::string number = std::to_string(outputs.size());
    outputs.push_back(resultType);
    body += "  %r" + number + " = " + op + "\n  qd.store %r" + number + ", %out" + number + "[%i] : !qd.buffer<" +
            resultType + ">\n";
  }

  void check(bool zerosAreEqual) {
    constexpr int threads = 76, n = 152;
    std::vector<Array> arrays = {
        makeArray(type, n, Values::Any, 1),      makeArray(type, n, Values::Any, 2),
        makeArray(type, n, Values::Any, 3),      makeArray(type, n, Values::Positive, 4),
        makeArray(type, n, isFloat(type) ? Values::Small : Values::Shift, 5), makeArray("i1", n, Values::Any, 6)};
    std::string text = "qd.kernel @k(%x0: !qd.buffer<{T}>, %x1: !qd.buffer<{T}>, %x2: !qd.buffer<{T}>, "
                       "%x3: !qd.buffer<{T}>, %x4: !qd.buffer<{T}>, %x5: !qd.buffer<i1>";
    for (size_t i = 0; i < outputs.size(); ++i) {
      text += ", %out" + std::to_string(i) + ": !qd.buffer<" + outputs[i] + ">";
      arrays.push_back(makeArray(outputs[i], n, Values::Zero));
    }
    text += ") block(76) {\n  %i = qd.global_thread_id x : i32\n";
    const char *names[] = {"a", "b", "c", "safe", "shift"};
    for (int i = 0; i < 5; ++i)
      text += std::string("  %") + names[i] + " = qd.load %x" + std::to_string(i) + "[%i] : !qd.buffer<{T}>\n";
    text += "  %p = qd.load %x5[%i] : !qd.buffer<i1>\n" + body + "  qd.return\n}\n";
    text = fill(text, {{"T", type}});
    for (unsigned lanes : allLanes)
      expectLikeInterp(text, lanes, {n / threads, 1, 1}, arrays, zerosAreEqual);
  }

private:
  std::string type, body;
  std::vector<std::string> outputs;
};
} // namespace

class Integers : public testing::TestWithParam<const char *> {};
class Floats : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(All, Integers, testing::Values("i1", "i8", "i16", "i32", "i64"),
                         [](const auto &info) { return std::string(info.param); });
INSTANTIATE_TEST_SUITE_P(All, Floats, testing::Values("f16", "bf16", "f32", "f64"),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(Integers, Arithmetic) {
  std::string type = GetParam(), t = " : " + type;
  Sweep sweep(type);
  for (const char *op : {"addi", "subi", "muli", "andi", "ori", "xori", "minsi", "minui", "maxsi", "maxui"})
    sweep.add(std::string("arith.") + op + " %a, %b" + t, type);
  for (const char *predicate : {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"})
    sweep.add(std::string("arith.cmpi ") + predicate + ", %a, %b" + t, "i1");
  sweep.add("arith.select %p, %a, %b" + t, type);
  if (type != "i1") {
    for (const char *op : {"divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"})
      sweep.add(std::string("arith.") + op + " %a, %safe" + t, type);
    for (const char *op : {"shli", "shrsi", "shrui"})
      sweep.add(std::string("arith.") + op + " %a, %shift" + t, type);
    for (const char *op : {"ctpop", "ctlz", "cttz", "absi"})
      sweep.add(std::string("math.") + op + " %a" + t, type);
  }
  sweep.check(false);
}

TEST_P(Integers, Conversions) {
  std::string type = GetParam();
  Sweep sweep(type);
  for (const char *to : {"i1", "i8", "i16", "i32", "i64"}) {
    if (getBits(to) > getBits(type)) {
      sweep.add("arith.extsi %a : " + type + " to " + to, to);
      sweep.add("arith.extui %a : " + type + " to " + to, to);
    }
    if (getBits(to) < getBits(type))
      sweep.add("arith.trunci %a : " + type + " to " + to, to);
  }
  for (const char *to : {"f16", "bf16", "f32", "f64"}) {
    sweep.add("arith.sitofp %a : " + type + " to " + to, to);
    sweep.add("arith.uitofp %a : " + type + " to " + to, to);
    if (getBits(to) == getBits(type))
      sweep.add("arith.bitcast %a : " + type + " to " + to, to);
  }
  sweep.check(false);
}

TEST_P(Floats, Arithmetic) {
  std::string type = GetParam(), t = " : " + type;
  Sweep sweep(type);
  for (const char *op : {"addf", "subf", "mulf", "divf", "minimumf", "maximumf"})
    sweep.add(std::string("arith.") + op + " %a, %b" + t, type);
  sweep.add("arith.negf %a" + t, type);
  for (const char *op : {"floor", "ceil", "trunc", "round", "roundeven", "sqrt", "absf"})
    sweep.add(std::string("math.") + op + " %a" + t, type);
  sweep.add("math.fma %a, %b, %c" + t, type);
  sweep.add("math.copysign %a, %b" + t, type);
  for (const char *predicate : {"oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule",
                                "une", "uno"})
    sweep.add(std::string("arith.cmpf ") + predicate + ", %a, %b" + t, "i1");
  for (const char *op : {"isnan", "isinf", "isfinite", "isnormal"})
    sweep.add(std::string("math.") + op + " %a" + t, "i1");
  sweep.add("arith.select %p, %a, %b" + t, type);
  sweep.check(false);
}

TEST_P(Floats, NumberMinimumAndMaximum) {
  std::string type = GetParam(), t = " : " + type;
  Sweep sweep(type);
  sweep.add("arith.minnumf %a, %b" + t, type);
  sweep.add("arith.maxnumf %a, %b" + t, type);
  sweep.check(/*zerosAreEqual=*/true);
}

TEST_P(Floats, Conversions) {
  std::string type = GetParam();
  Sweep sweep(type);
  for (const char *to : {"f16", "bf16", "f32", "f64"}) {
    if (getBits(to) > getBits(type))
      sweep.add("arith.extf %a : " + type + " to " + to, to);
    if (getBits(to) < getBits(type))
      sweep.add("arith.truncf %a : " + type + " to " + to, to);
  }
  for (const char *to : {"i8", "i16", "i32", "i64"}) {
    sweep.add("arith.fptosi %shift : " + type + " to " + to, to);
    sweep.add("arith.fptoui %safe : " + type + " to " + to, to);
    if (getBits(to) == getBits(type))
      sweep.add("arith.bitcast %a : " + type + " to " + to, to);
  }
  sweep.check(false);
}

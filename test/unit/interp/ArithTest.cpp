//===- ArithTest.cpp - arithmetic, memory and its checks on the interpreter ------------------------===//

#include "Program.h"

#include <cmath>
#include <limits>

using namespace qd::test;

namespace {

/// Computes `op` on %a and %b, which are elements 0 and 1 of a buffer of `type`, and returns %r of `resultType`.
/// `error` receives the launch's error.
template <typename R, typename T>
R compute(const std::string &op, const std::string &type, const std::string &resultType, T a, T b,
          std::string *error = nullptr) {
  std::vector<T> x = {a, b};
  std::vector<R> y(1);
  std::string text = "qd.kernel @k(%x: !qd.buffer<" + type + ">, %y: !qd.buffer<" + resultType + ">) block(1) {\n" +
                     "%a = qd.load %x[0] : !qd.buffer<" + type + ">\n%b = qd.load %x[1] : !qd.buffer<" + type + ">\n" +
                     op + "\nqd.store %r, %y[0] : !qd.buffer<" + resultType + ">\nqd.return\n}\n";
  std::string message = Program(text).buffer(x).buffer(y).run();
  if (error)
    *error = message;
  else
    EXPECT_EQ(message, "") << op;
  return y[0];
}

int32_t int32(const std::string &op, int32_t a, int32_t b) {
  return compute<int32_t>("%r = " + op + " %a, %b : i32", "i32", "i32", a, b);
}

constexpr int32_t smallest = std::numeric_limits<int32_t>::min();

TEST(Arith, integers) {
  EXPECT_EQ(int32("arith.addi", 2147483647, 1), smallest);
  EXPECT_EQ(int32("arith.subi", 3, 5), -2);
  EXPECT_EQ(int32("arith.muli", 65537, 65537), 131073);
  EXPECT_EQ(int32("arith.divsi", -7, 2), -3);
  EXPECT_EQ(int32("arith.divui", -1, 2), 2147483647);
  EXPECT_EQ(int32("arith.remsi", -7, 2), -1);
  EXPECT_EQ(int32("arith.remui", -1, 10), 5);
  EXPECT_EQ(int32("arith.ceildivsi", -7, 2), -3);
  EXPECT_EQ(int32("arith.ceildivsi", 7, 2), 4);
  EXPECT_EQ(int32("arith.ceildivui", 7, 2), 4);
  EXPECT_EQ(int32("arith.floordivsi", -7, 2), -4);
  EXPECT_EQ(int32("arith.shli", 1, 31), smallest);
  EXPECT_EQ(int32("arith.shrsi", -8, 1), -4);
  EXPECT_EQ(int32("arith.shrui", -8, 1), 2147483644);
  EXPECT_EQ(int32("arith.minsi", -1, 1), -1);
  EXPECT_EQ(int32("arith.minui", -1, 1), 1);
  EXPECT_EQ(int32("arith.maxsi", -1, 1), 1);
  EXPECT_EQ(int32("arith.maxui", -1, 1), -1);
  EXPECT_EQ(int32("arith.andi", 12, 10), 8);
  EXPECT_EQ(int32("arith.ori", 12, 10), 14);
  EXPECT_EQ(int32("arith.xori", 12, 10), 6);
  EXPECT_EQ(int32("math.ipowi", -3, 3), -27);
  EXPECT_EQ(int32("math.ipowi", -1, -3), -1);
}

TEST(Arith, extended) {
  auto high = [](const char *op) {
    return compute<int32_t>(std::string("%l, %r = ") + op + " %a, %b : i32", "i32", "i32", -2, 3);
  };
  EXPECT_EQ(high("arith.mulsi_extended"), -1);
  EXPECT_EQ(high("arith.mului_extended"), 2);
  EXPECT_EQ(compute<int32_t>("%s, %c = arith.addui_extended %a, %b : i32, i1\n%r = arith.extui %c : i1 to i32", "i32",
                             "i32", -2, 3), 1);
}

TEST(Arith, counts) {
  auto unary = [](const char *op, int64_t a) {
    return compute<int64_t>(std::string("%r = ") + op + " %a : i64", "i64", "i64", a, int64_t(0));
  };
  EXPECT_EQ(unary("math.ctpop", -1), 64);
  EXPECT_EQ(unary("math.ctlz", 1), 63);
  EXPECT_EQ(unary("math.ctlz", 0), 64);
  EXPECT_EQ(unary("math.cttz", 8), 3);
  EXPECT_EQ(unary("math.cttz", 0), 64);
  EXPECT_EQ(unary("math.absi", std::numeric_limits<int64_t>::min()), std::numeric_limits<int64_t>::min());
}

TEST(Arith, poison) {
  auto message = [](const std::string &op, int32_t a, int32_t b) {
    std::string error;
    compute<int32_t>("%r = " + op, "i32", "i32", a, b, &error);
    return error.find("stores poison") != std::string::npos;
  };
  EXPECT_TRUE(message("arith.divsi %a, %b : i32", 1, 0));
  EXPECT_TRUE(message("arith.divsi %a, %b : i32", smallest, -1));
  EXPECT_TRUE(message("arith.remui %a, %b : i32", 1, 0));
  EXPECT_TRUE(message("arith.shli %a, %b : i32", 1, 32));
  EXPECT_TRUE(message("arith.addi %a, %b overflow<nsw> : i32", 2147483647, 1));
  EXPECT_FALSE(message("arith.addi %a, %b overflow<nuw> : i32", 2147483647, 1));
  EXPECT_TRUE(message("arith.divui %a, %b exact : i32", 7, 2));
  EXPECT_FALSE(message("arith.shli %a, %b : i32", 1, 31));
  // The value that select leaves aside may be poison.
  EXPECT_FALSE(message("arith.constant 0 : i32\n%q = arith.divsi %a, %b : i32\n%t = arith.constant true\n"
                       "%w = arith.select %t, %a, %q : i32", 1, 0));
}

TEST(Arith, floatsRoundOnce) {
  auto f32 = [](const char *op, float a, float b) {
    return compute<float>(std::string("%r = ") + op + " %a, %b : f32", "f32", "f32", a, b);
  };
  EXPECT_EQ(f32("arith.addf", 16777216.0f, 1.0f), 16777216.0f);
  EXPECT_EQ(f32("arith.divf", 1.0f, 3.0f), 1.0f / 3.0f);
  EXPECT_EQ(f32("arith.mulf", 1e-30f, 1e-10f), 1e-30f * 1e-10f); // subnormal
  EXPECT_EQ(f32("arith.remf", -7.5f, 2.0f), -1.5f);
  EXPECT_EQ(f32("arith.minnumf", NAN, 2.0f), 2.0f);
  EXPECT_TRUE(std::isnan(f32("arith.minimumf", NAN, 2.0f)));
  EXPECT_TRUE(std::signbit(f32("arith.minimumf", 0.0f, -0.0f)));
  EXPECT_EQ(f32("math.copysign", 3.0f, -0.0f), -3.0f);
  EXPECT_EQ(f32("math.powf", 2.0f, 10.0f), 1024.0f);
  // f16: 2048 + 1 ties to even.
  uint16_t big = 0x6800, one = 0x3c00;
  EXPECT_EQ(compute<uint16_t>("%r = arith.addf %a, %b : f16", "f16", "f16", big, one), big);
}

TEST(Arith, mathIsExactWhereItCanBe) {
  auto f64 = [](const char *op, double a) {
    return compute<double>(std::string("%r = ") + op + " %a : f64", "f64", "f64", a, 0.0);
  };
  EXPECT_EQ(f64("math.sqrt", 2), std::sqrt(2.0));
  EXPECT_EQ(f64("math.floor", -1.5), -2);
  EXPECT_EQ(f64("math.ceil", -1.5), -1);
  EXPECT_EQ(f64("math.trunc", -1.5), -1);
  EXPECT_EQ(f64("math.round", 2.5), 3);
  EXPECT_EQ(f64("math.roundeven", 2.5), 2);
  EXPECT_EQ(f64("math.absf", -2.5), 2.5);
  EXPECT_EQ(compute<double>("%r = math.fma %a, %b, %a : f64", "f64", "f64", 0.1, 10.0), std::fma(0.1, 10.0, 0.1));
  EXPECT_EQ(compute<int8_t>("%p = math.isnan %a : f64\n%r = arith.extui %p : i1 to i8", "f64", "i8", (double)NAN, 0.0),
            1);
}

TEST(Arith, conversions) {
  EXPECT_EQ(compute<int32_t>("%r = arith.fptosi %a : f32 to i32", "f32", "i32", -7.9f, 0.0f), -7);
  std::string error;
  compute<int32_t>("%r = arith.fptosi %a : f32 to i32", "f32", "i32", 2147483648.0f, 0.0f, &error);
  EXPECT_NE(error, "");
  EXPECT_EQ(compute<float>("%r = arith.uitofp %a : i32 to f32", "i32", "f32", -1, 0), 4294967296.0f);
  EXPECT_EQ(compute<float>("%r = arith.sitofp %a : i32 to f32", "i32", "f32", -1, 0), -1.0f);
  EXPECT_EQ(compute<int32_t>("%r = arith.bitcast %a : f32 to i32", "f32", "i32", 1.0f, 0.0f), 0x3f800000);
  EXPECT_EQ(compute<float>("%r = arith.truncf %a : f64 to f32", "f64", "f32", 0.1, 0.0), 0.1f);
  EXPECT_EQ(compute<int64_t>("%r = arith.extsi %a : i32 to i64", "i32", "i64", -5, 0), -5);
  EXPECT_EQ(compute<int64_t>("%r = arith.extui %a : i32 to i64", "i32", "i64", -5, 0), 4294967291);
  EXPECT_EQ(compute<uint16_t>("%r = arith.truncf %a : f32 to bf16", "f32", "bf16", 1.00390625f, 0.0f), 0x3f80);
}

TEST(Memory, boundsAndPredicates) {
  const char *text = R"(qd.kernel @k(%x: !qd.buffer<f32> readonly, %y: !qd.buffer<f32>, %n: i32) block(64) {
    %i = qd.thread_id x : i32
    %p = arith.cmpi slt, %i, %n : i32
    %zero = arith.constant -1.0 : f32
    %v = qd.load %x[%i] if %p else %zero : !qd.buffer<f32>
    qd.store %v, %y[%i] : !qd.buffer<f32>
    qd.return
  })";
  std::vector<float> x = iota<float>(40), y(64);
  EXPECT_EQ(Program(text).buffer(x).buffer(y).scalar(40).run(), "");
  EXPECT_EQ(y[39], 39);
  EXPECT_EQ(y[40], -1);
  EXPECT_EQ(Program(text).buffer(x).buffer(y).scalar(41).run(),
            "test.qir:5:10: 'qd.load' op subscript 40 is out of bounds of %x, which has 40 elements (kernel 'k', block "
            "(0, 0, 0), thread (40, 0, 0))");
}

TEST(Memory, uninitializedSharedMemory) {
  const char *text = R"(qd.kernel @k(%y: !qd.buffer<i32>) block(2) {
    %s = qd.shared.alloc : !qd.shared<4xi32>
    %i = qd.thread_id x : i32
    qd.store %i, %s[%i] : !qd.shared<4xi32>
    qd.block.sync
    %v = qd.load %s[2] : !qd.shared<4xi32>
    qd.store %v, %y[%i] : !qd.buffer<i32>
    qd.return
  })";
  std::vector<int32_t> y(2);
  EXPECT_EQ(Program(text).buffer(y).run(),
            "test.qir:6:10: 'qd.load' op reads element 2 of the shared array before it is written (kernel 'k', block "
            "(0, 0, 0), thread (0, 0, 0))");
}

TEST(Memory, sizesAndBools) {
  const char *text = R"(qd.kernel @k(%b: !qd.buffer<i1>, %y: !qd.buffer<i64>) block(1) {
    %n = qd.size %b : !qd.buffer<i1> -> i64
    qd.store %n, %y[0] : !qd.buffer<i64>
    %v = qd.load %b[2] : !qd.buffer<i1>
    qd.store %v, %b[0] : !qd.buffer<i1>
    qd.return
  })";
  std::vector<uint8_t> b = {0, 0, 1};
  std::vector<int64_t> y(1);
  EXPECT_EQ(Program(text).buffer(b).buffer(y).run(), "");
  EXPECT_EQ(y[0], 3);
  EXPECT_EQ(b[0], 1);
  b[2] = 7;
  EXPECT_EQ(
      Program(text).buffer(b).buffer(y).run(),
      "test.qir:4:10: 'qd.load' op reads a byte of 7 as i1 from %b, expected 0 or 1 (kernel 'k', block (0, 0, 0), "
      "thread (0, 0, 0))");
}

TEST(Load, unknownOpsAndTypes) {
  EXPECT_EQ(
      Program("qd.kernel @k() block(1) {\n%i = arith.constant 0 : index\nqd.return\n}").diagnostics,
      "'arith.constant' op has a result of type 'index', expected i1, i8, i16, i32, i64, f16, bf16, f32, f64 or a "
      "vector of 2, 3, 4, 8 or 16 of them in a kernel\n");
  EXPECT_EQ(Program("qd.kernel @k() block(1) {\n%i = arith.constant 0 : i32\n"
                    "scf.execute_region {\nscf.yield\n}\nqd.return\n}").diagnostics,
            "'scf.execute_region' op is not one that the interpreter runs\n");
  EXPECT_EQ(
      Program("qd.kernel @k() block(1) {\nqd.return\n}", 32, "poisson").diagnostics,
      "unknown check 'poisson', expected all, none, poison, divergence, uninitialized, promises, races or steps=N\n");
}

TEST(Load, launchesAreChecked) {
  std::vector<int32_t> x(1);
  const char *text = "qd.kernel @k(%x: !qd.buffer<i32>) block(1) {\nqd.return\n}";
  EXPECT_EQ(Program(text).run(), "kernel 'k' takes 1 arguments, found 0");
  EXPECT_EQ(Program(text).scalar(1).run(), "argument 'x' of kernel 'k' is a buffer, found a scalar");
  EXPECT_EQ(Program("qd.kernel @other() block(1) {\nqd.return\n}").run(), "the module has no kernel 'k'");
}

} // namespace

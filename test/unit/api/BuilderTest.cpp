//===- BuilderTest.cpp - kernels without text, in C++ and C -------------------------------------------------------===//

#include "compiler/Builder.h"
#include "compiler/Compiler.h"
#include "compiler/qdc.h"

#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <memory>

using namespace qd;

static constexpr const char *buffer = "!qd.buffer<f32>";
static constexpr const char *load = "operandSegmentSizes = array<i32: 1, 1, 0, 0>, "
                                    "static_indices = array<i64: -9223372036854775808>";
static constexpr const char *store = "operandSegmentSizes = array<i32: 1, 1, 1, 0>, "
                                     "static_indices = array<i64: -9223372036854775808>";

static CompileResult compileText(const std::string &text, const char *emit = "qir", const char *target = "nvptx") {
  CompileOptions options;
  options.targets = {target};
  options.emit = emit;
  options.cache = CachePolicy::Off;
  return compile(text, "built", options);
}

/// The sum of four lanes, times n, where the thread is below n; branches, a loop and an op with an empty region.
static std::string buildSums() {
  Builder b;
  std::vector<Value> args =
      b.beginKernel("sums", {{"x", buffer, 1, 16}, {"y", buffer}, {"n", "i32"}}, {64}, "resizable");
  Value i = b.op("qd.global_thread_id", {}, "i32", "dim = #qd<dim x>");
  Value in = b.op("arith.cmpi", {i, args[2]}, "i1", "predicate = 2 : i64");
  Value zero = b.floating("f32", 0), start = b.integer("i32", 0), one = b.integer("i32", 1);
  Value v = b.beginOp("scf.if", {in}, {"f32"})[0];
  b.beginRegion();
  b.op("scf.yield", {b.op("qd.load", {args[0], i}, "f32", load)});
  b.endRegion();
  b.beginRegion();
  b.op("scf.yield", {zero});
  b.endRegion();
  b.endOp();
  Value sum = b.beginOp("qd.subgroup.reduce_all", {v}, {"f32"},
                        "kind = #qd<kind add>, operandSegmentSizes = array<i32: 1, 0>, tile = 4 : i32")[0];
  b.beginRegion();
  b.endRegion();
  b.endOp();
  Value total = b.beginOp("scf.for", {start, args[2], one, zero}, {"f32"})[0];
  std::vector<Value> carried = b.beginRegion({"i32", "f32"});
  b.op("scf.yield", {b.op("arith.addf", {carried[1], sum}, "f32")});
  b.endRegion();
  b.endOp();
  b.op("qd.store", {total, args[1], i}, "", store);
  b.endKernel();
  EXPECT_EQ(b.getError(), "");
  return b.finish();
}

/// What is null is empty, and refused where it is compiled.
TEST(Builder, NullPointers) {
  std::unique_ptr<qdcBuilder_, decltype(&qdcBuilderFree)> b(qdcBuilderCreate(), qdcBuilderFree);
  qdcBuilderBeginKernel(b.get(), nullptr, nullptr, nullptr, nullptr, 1, nullptr, 1, nullptr, nullptr);
  qdcBuilderOp(b.get(), nullptr, nullptr, 1, nullptr, nullptr, 1, nullptr);
  qdcBuilderInteger(b.get(), nullptr, 1);
  qdcBuilderFloat(b.get(), nullptr, 1);
  qdcBuilderEndKernel(b.get());
  size_t size;
  const char *text = qdcBuilderFinish(b.get(), &size);
  qdcCompileOptions options;
  qdcInitCompileOptions(&options);
  std::unique_ptr<qdcResult_, decltype(&qdcResultFree)> result(qdcCompile(text, size, nullptr, &options), qdcResultFree);
  EXPECT_FALSE(qdcResultOk(result.get()));
}

TEST(Builder, ForEveryTarget) {
  std::string text = buildSums();
  for (const char *target : {"nvptx", "amdgcn", "spirv", "cpu"}) {
    CompileResult result = compileText(text, "", target);
    EXPECT_TRUE(result.ok) << result.diagnostics;
  }
  std::string printed = compileText(text).data;
  EXPECT_NE(
      printed.find("qd.kernel @sums(%x: !qd.buffer<f32> readonly align(16), %y: !qd.buffer<f32>, %n: i32) block(64) "
                   "resizable"),
      std::string::npos)
      << printed;
}

TEST(Builder, Runs) {
  std::string text = buildSums();
  for (const char *device : {"interp", "cpu"}) {
    qdcHostOptions options;
    qdcInitHostOptions(&options);
    options.device = device;
    char *said = nullptr;
    qdcHostModule module = qdcHostLoad(text.data(), text.size(), "built", &options, &said);
    ASSERT_NE(module, nullptr) << said;
    alignas(16) float x[64], y[64] = {};
    for (unsigned i = 0; i < 64; ++i)
      x[i] = float(i);
    qdcHostArg args[] = {
        {QDC_ARG_BUFFER, x, 64, 0, {}}, {QDC_ARG_BUFFER, y, 64, 0, {}}, {QDC_ARG_SCALAR, nullptr, 0, 6, {}}};
    uint32_t grid[3] = {1, 1, 1};
    ASSERT_EQ(qdcHostLaunch(module, "sums", grid, args, 3, &said), 0) << said;
    // Six times 0 + 1 + 2 + 3, 4 + 5, and nothing.
    EXPECT_EQ(y[0], 36) << device;
    EXPECT_EQ(y[7], 54) << device;
    EXPECT_EQ(y[8], 0) << device;
    qdcHostUnload(module);
  }
}

TEST(Builder, Constants) {
  double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const char *type : {"f16", "bf16", "f32", "f64"})
    for (double value : {0.0, -0.0, 1.5, -1e-3, 65504.0, inf, -inf, nan, -nan}) {
      Builder b;
      b.beginKernel("k", {}, {1});
      b.floating(type, value);
      b.endKernel();
      CompileResult result = compileText(b.finish());
      EXPECT_TRUE(result.ok) << type << " " << value << ": " << result.diagnostics;
      EXPECT_NE(result.data.find(std::string(" : ") + type), std::string::npos) << result.data;
    }
  Builder b;
  b.beginKernel("k", {}, {8, 4, 2});
  b.integer("i1", 1);
  b.integer("i8", -128);
  b.integer("i32", -2147483648ll);
  b.integer("i64", std::numeric_limits<int64_t>::min());
  b.floating("f32", 0.1);
  b.floating("f32", inf);
  b.endKernel();
  CompileResult result = compileText(b.finish());
  for (const char *part : {"arith.constant true", "arith.constant -128 : i8", "arith.constant -2147483648 : i32",
                           "arith.constant -9223372036854775808 : i64", "arith.constant 1.000000e-01 : f32",
                           "0x7F800000 : f32", "block(8, 4, 2)"})
    EXPECT_NE(result.data.find(part), std::string::npos) << part << "\n" << result.diagnostics << result.data;
}

TEST(Builder, DiagnosticsAreAtTheFrontendsPlaces) {
  Builder b;
  std::vector<Value> args = b.beginKernel("k", {{"x", buffer}}, {64});
  b.setLocation("model \"a\".py", 12, 7);
  b.op("qd.store", {args[0], args[0], args[0]}, "", store);
  b.endKernel();
  CompileResult result = compileText(b.finish());
  EXPECT_FALSE(result.ok);
  ASSERT_FALSE(result.messages.empty());
  EXPECT_EQ(result.messages[0].file, "model \"a\".py") << result.diagnostics;
  EXPECT_EQ(result.messages[0].line, 12u);
  EXPECT_EQ(result.messages[0].column, 7u);
}

TEST(Builder, WrongCalls) {
  auto expectError = [](const char *error, void (*wrong)(Builder &)) {
    Builder b;
    wrong(b);
    CompileResult result = compileText(b.finish());
    EXPECT_EQ(b.getError(), error);
    EXPECT_FALSE(result.ok);
  };
  expectError("op 'qd.kernel' is not closed", [](Builder &b) { b.beginKernel("k", {}, {1}); });
  expectError("an op ends that has not begun", [](Builder &b) { b.endOp(); });
  expectError("a region ends that has not begun", [](Builder &b) { b.endRegion(); });
  expectError("a region begins outside an op", [](Builder &b) { b.beginRegion({"i32"}); });
  expectError("op 'arith.addi': operand 1 is no value", [](Builder &b) {
    b.beginKernel("k", {}, {1});
    b.op("arith.addi", {b.integer("i32", 1), Value()}, "i32");
    b.endKernel();
  });
  expectError("op 'arith.negf': operand 0 is no value", [](Builder &b) { b.op("arith.negf", {{77}}, "f32"); });
  expectError("a kernel begins inside an op", [](Builder &b) {
    b.beginKernel("k", {}, {1});
    b.beginKernel("l", {}, {1});
  });
  expectError("op 'qd.return' stands between the regions of 'scf.if'", [](Builder &b) {
    b.beginKernel("k", {}, {1});
    b.beginOp("scf.if", {b.integer("i1", 1)}, {});
    b.endKernel();
  });
  expectError("op 'arith.addi': operand 1 belongs to a region that has ended", [](Builder &b) {
    b.beginKernel("k", {}, {1});
    b.beginOp("scf.if", {b.integer("i1", 1)}, {});
    b.beginRegion();
    Value inside = b.integer("i32", 1);
    b.op("arith.addi", {inside, inside}, "i32");
    b.endRegion();
    b.beginRegion();
    b.op("arith.addi", {b.integer("i32", 1), inside}, "i32");
  });
  expectError("op 'arith.negf': operand 0 belongs to a region that has ended", [](Builder &b) {
    b.beginKernel("k", {}, {1});
    Value i = b.integer("i32", 1);
    b.beginOp("scf.for", {i, i, i}, {});
    std::vector<Value> arguments = b.beginRegion({"i32"});
    b.op("arith.addi", {i, arguments[0]}, "i32");
    b.endRegion();
    b.endOp();
    b.op("arith.negf", {arguments[0]}, "i32");
  });
  expectError("op 'qd.store': operand 0 belongs to a region that has ended", [](Builder &b) {
    std::vector<Value> arguments = b.beginKernel("k", {{"x", "i32"}}, {1});
    b.endKernel();
    b.beginKernel("l", {}, {1});
    b.op("qd.store", {arguments[0]});
  });
  expectError("op 'scf.yield': operand 0 is a result of an op that is not closed yet", [](Builder &b) {
    b.beginKernel("k", {}, {1});
    std::vector<Value> results = b.beginOp("scf.if", {b.integer("i1", 1)}, {"i32"});
    b.beginRegion();
    b.op("scf.yield", {results[0]});
  });
  // What is no type, op or attribute is the compiler's to say.
  Builder b;
  b.beginKernel("k", {{"x", "no type"}}, {0}, "}{");
  b.op("no such op", {}, "", "\"");
  b.endKernel();
  EXPECT_FALSE(compileText(b.finish()).ok);
}

TEST(Builder, InC) {
  qdcBuilder b = qdcBuilderCreate();
  const char *names[] = {"x", "n"}, *types[] = {buffer, "i32"}, *i32[] = {"i32"}, *i1[] = {"i1"};
  const uint32_t access[] = {QDC_ACCESS_NOALIAS, 0}, block[] = {32};
  qdcValue args[2], i, in;
  qdcBuilderSetLocation(b, "frontend.c", 1, 1);
  qdcBuilderBeginKernel(b, "fill", names, types, access, 2, block, 1, nullptr, args);
  qdcBuilderOp(b, "qd.global_thread_id", nullptr, 0, "dim = #qd<dim x>", i32, 1, &i);
  qdcValue compared[] = {i, args[1]};
  qdcBuilderOp(b, "arith.cmpi", compared, 2, "predicate = 2 : i64", i1, 1, &in);
  EXPECT_NE(qdcBuilderInteger(b, "i32", 1), 0u);
  qdcValue seven = qdcBuilderFloat(b, "f32", 7);
  qdcBuilderBeginOp(b, "scf.if", &in, 1, nullptr, nullptr, 0, nullptr);
  qdcBuilderBeginRegion(b, nullptr, 0, nullptr);
  qdcValue stored[] = {seven, args[0], i};
  qdcBuilderOp(b, "qd.store", stored, 3, store, nullptr, 0, nullptr);
  qdcBuilderOp(b, "scf.yield", nullptr, 0, nullptr, nullptr, 0, nullptr);
  qdcBuilderEndRegion(b);
  qdcBuilderBeginRegion(b, nullptr, 0, nullptr);
  qdcBuilderEndRegion(b);
  qdcBuilderEndOp(b);
  qdcBuilderEndKernel(b);
  EXPECT_STREQ(qdcBuilderError(b), "");
  size_t size = 0;
  const char *text = qdcBuilderFinish(b, &size);
  EXPECT_EQ(size, strlen(text));
  qdcHostOptions options;
  qdcInitHostOptions(&options);
  options.device = "interp";
  options.bind = "n=3";
  char *said = nullptr;
  qdcHostModule module = qdcHostLoad(text, size, "built", &options, &said);
  ASSERT_NE(module, nullptr) << said << text;
  float x[8] = {};
  qdcHostArg arg = {QDC_ARG_BUFFER, x, 8, 0, {}};
  uint32_t grid[3] = {1, 1, 1};
  EXPECT_EQ(qdcHostLaunch(module, "fill", grid, &arg, 1, &said), 0) << said;
  EXPECT_EQ(x[2], 7);
  EXPECT_EQ(x[3], 0);
  qdcHostUnload(module);
  qdcBuilderEndOp(b);
  EXPECT_STREQ(qdcBuilderError(b), "an op ends that has not begun");
  qdcBuilderFree(b);
  qdcBuilderFree(nullptr);
}

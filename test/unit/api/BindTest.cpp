//===- BindTest.cpp - arguments bound to constants, in C++ and C --------------------------------------------------===//

#include "Kernels.h"

#include "compiler/qdc.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace qd;

static constexpr const char *kernels = R"(
qd.kernel @fill(%x: !qd.buffer<i32>, %n: i32, %flag: i1, %small: i8, %scale: f32,
               %y: !qd.buffer<i32> align(16)) block(32) {
  %i = qd.global_thread_id x : i32
  %in = arith.cmpi slt, %i, %n : i32
  scf.if %in {
    %s = arith.fptosi %scale : f32 to i32
    %w = arith.extui %small : i8 to i32
    %v = arith.addi %s, %w : i32
    %u = arith.select %flag, %v, %n : i32
    qd.store %u, %x[%i] : !qd.buffer<i32>
    qd.store %u, %y[%i] : !qd.buffer<i32>
  }
  qd.return
}
qd.kernel @other(%n: i64) block(32) {
  qd.return
}
)";

static CompileResult compileBound(const char *bind, const char *emit = "qir") {
  CompileOptions options;
  options.targets = {"nvptx"};
  options.emit = emit;
  options.bind = bind;
  return compile(kernels, "test.qir", options);
}

TEST(Bind, ConstantsTakeThePlaceOfArguments) {
  CompileResult result = compileBound("fill.n=10,flag=true,small=0xff,scale=-2.5");
  ASSERT_TRUE(result.ok) << result.diagnostics;
  for (const char *part :
       {"@fill(%x: !qd.buffer<i32>, %y: !qd.buffer<i32> align(16)) block(32)", "arith.constant 10 : i32",
        "arith.constant true", "arith.constant -1 : i8", "arith.constant -2.500000e+00 : f32", "@other(%n: i64)"})
    EXPECT_NE(result.data.find(part), std::string::npos) << part << "\n" << result.data;
  // A name alone is of both kernels.
  result = compileBound("n=10");
  ASSERT_TRUE(result.ok) << result.diagnostics;
  EXPECT_NE(result.data.find("@other()"), std::string::npos) << result.data;
  EXPECT_NE(result.data.find("arith.constant 10 : i64"), std::string::npos) << result.data;
  // What is bound is neither in the code nor in its interface.
  result = compileBound("n=10,scale=1,small=1,flag=0", "ptx");
  ASSERT_TRUE(result.ok) << result.diagnostics;
  EXPECT_EQ(result.variants.at(0).interface.find("\"n\""), std::string::npos);
  EXPECT_EQ(result.data.find("ld.param.b32"), std::string::npos) << result.data;
}

TEST(Bind, LimitsOfTypes) {
  for (const char *bind : {"small=255", "small=-128", "fill.n=4294967295", "fill.n=-2147483648",
                           "other.n=18446744073709551615", "other.n=-9223372036854775808", "flag=1", "flag=false",
                           "scale=3.4e38", "scale=inf", "scale=nan", "scale=1e-50", "scale=7"})
    EXPECT_TRUE(compileBound(bind).ok) << bind << ": " << compileBound(bind).diagnostics;
}

TEST(Bind, Errors) {
  struct Row {
    const char *bind, *error;
  };
  static constexpr Row rows[] = {
      {"m=1", "error: binding 'm=1': no kernel has an argument 'm'\n"},
      {"fill.m=1", "error: binding 'fill.m=1': kernel 'fill' has no argument 'm'\n"},
      {"full.n=1", "error: binding 'full.n=1': the module has no kernel 'full'\n"},
      {"x=1", "error: binding 'x=1': argument 'x' of kernel 'fill' is a buffer, expected a scalar\n"},
      {"n=1,n=1", "error: binding 'n=1': argument 'n' of kernel 'fill' is bound twice\n"},
      {"n=1,other.n=2", "error: binding 'other.n=2': argument 'n' of kernel 'other' is bound twice\n"},
      {"small=256",
       "error: binding 'small=256': argument 'small' of kernel 'fill' has type i8, expected an integer from "
       "-128 to 255, found '256'\n"},
      {"small=-129",
       "error: binding 'small=-129': argument 'small' of kernel 'fill' has type i8, expected an integer from "
       "-128 to 255, found '-129'\n"},
      {"flag=2", "error: binding 'flag=2': argument 'flag' of kernel 'fill' has type i1, expected true, false, 0 or 1, "
                 "found '2'\n"},
      {"scale=1e39",
       "error: binding 'scale=1e39': argument 'scale' of kernel 'fill' has type f32, expected a number of "
       "at most 3.40282347E+38, inf or nan, found '1e39'\n"},
      {"other.n=18446744073709551616",
       "error: binding 'other.n=18446744073709551616': argument 'n' of kernel 'other' has type i64, expected an "
       "integer from -9223372036854775808 to 18446744073709551615, found '18446744073709551616'\n"},
      {"n", "error: binding 'n' is not of the form ARGUMENT=VALUE or KERNEL.ARGUMENT=VALUE\n"},
      {"n=", "error: binding 'n=' is not of the form ARGUMENT=VALUE or KERNEL.ARGUMENT=VALUE\n"},
      {".n=1", "error: binding '.n=1' is not of the form ARGUMENT=VALUE or KERNEL.ARGUMENT=VALUE\n"},
      {"=1", "error: binding '=1' is not of the form ARGUMENT=VALUE or KERNEL.ARGUMENT=VALUE\n"},
  };
  for (const Row &row : rows) {
    CompileResult result = compileBound(row.bind);
    EXPECT_FALSE(result.ok) << row.bind;
    EXPECT_EQ(result.diagnostics, row.error);
  }
  for (const char *value : {"1.5", "0x", "--1", "-", "1x", "+1", "1 ", "true", "0b1"})
    EXPECT_FALSE(compileBound((std::string("fill.n=") + value).c_str()).ok) << value;
  for (const char *value : {"x", "e", ".", "-", "0x", "1.5f"})
    EXPECT_FALSE(compileBound((std::string("scale=") + value).c_str()).ok) << value;
}

TEST(Bind, CachedByValue) {
  CompileOptions options;
  options.targets = {"nvptx"};
  options.cache = CachePolicy::Memory;
  const char *qdcCache = getenv("QDC_CACHE");
  unsetenv("QDC_CACHE");
  for (const char *bind : {"fill.n=1", "fill.n=2"}) {
    options.bind = bind;
    EXPECT_FALSE(compile(kernels, "test.qir", options).isCached);
    EXPECT_TRUE(compile(kernels, "test.qir", options).isCached);
  }
  if (qdcCache)
    setenv("QDC_CACHE", qdcCache, 1);
}

TEST(Bind, OnHostDevices) {
  for (const char *device : {"interp", "cpu", "sim:sm_80", "sim:gfx942"}) {
    qdcHostOptions options;
    qdcInitHostOptions(&options);
    options.device = device;
    options.bind = "fill.n=3,flag=1,small=200,scale=7";
    char *text = nullptr;
    qdcHostModule module = qdcHostLoad(kernels, strlen(kernels), "test.qir", &options, &text);
    ASSERT_NE(module, nullptr) << (text ? text : "");
    alignas(16) int32_t x[4] = {}, y[4] = {};
    qdcHostArg args[] = {{QDC_ARG_BUFFER, x, 4, 0, {}}, {QDC_ARG_BUFFER, y, 4, 0, {}}};
    uint32_t grid[3] = {1, 1, 1};
    EXPECT_EQ(qdcHostLaunch(module, "fill", grid, args, 2, &text), 0) << (text ? text : "");
    EXPECT_EQ(x[2], 207) << device;
    EXPECT_EQ(y[2], 207) << device;
    EXPECT_EQ(x[3], 0) << device;
    qdcHostUnload(module);
    options.bind = "m=3";
    EXPECT_EQ(qdcHostLoad(kernels, strlen(kernels), "test.qir", &options, &text), nullptr);
    EXPECT_STREQ(text, "error: binding 'm=3': no kernel has an argument 'm'\n");
    qdcFreeString(text);
  }
}

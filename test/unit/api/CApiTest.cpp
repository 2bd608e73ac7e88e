//===- CApiTest.cpp - qdc.h -----------------------------------------------------------------------===//

#include "Kernels.h"

#include "compiler/qdc.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {
struct Compiled {
  bool ok;
  std::string data, diagnostics;
};

struct ModuleDeleter {
  void operator()(qdcHostModule module) const { qdcHostUnload(module); }
};
using Module = std::unique_ptr<std::remove_pointer_t<qdcHostModule>, ModuleDeleter>;
} // namespace

static Compiled compile(const qdcCompileOptions *options, const char *qir = sumKernel) {
  qdcResult result = qdcCompile(qir, strlen(qir), "test.qir", options);
  size_t size = 0;
  auto *data = static_cast<const char *>(qdcResultData(result, &size));
  Compiled compiled{qdcResultOk(result) != 0, std::string(data, size), qdcResultDiagnostics(result)};
  qdcResultFree(result);
  return compiled;
}

static std::string take(char *text) {
  std::string copy = text ? text : "";
  qdcFreeString(text);
  return copy;
}

static Module load(const char *device, std::string &diagnostics, const char *qir = sumKernel, unsigned size = 0) {
  qdcHostOptions options;
  qdcInitHostOptions(&options);
  options.device = device;
  options.subgroupSize = size;
  options.threads = 2;
  char *text = nullptr;
  Module module(qdcHostLoad(qir, strlen(qir), "test.qir", &options, &text));
  diagnostics = take(text);
  return module;
}

TEST(CApi, Version) { EXPECT_EQ(qdcApiVersion(), unsigned(QDC_API_VERSION)); }

TEST(CApi, Defaults) {
  qdcCompileOptions options;
  qdcInitCompileOptions(&options);
  EXPECT_EQ(options.structSize, sizeof options);
  EXPECT_STREQ(options.emit, "qdb");
  EXPECT_EQ(options.targets, nullptr);
  EXPECT_EQ(options.optLevel, 2u);
  qdcHostOptions host;
  qdcInitHostOptions(&host);
  EXPECT_EQ(host.structSize, sizeof host);
}

TEST(CApi, CompilesWhatTheCppInterfaceDoes) {
  qdcCompileOptions options;
  qdcInitCompileOptions(&options);
  options.targets = "nvptx:sm_90";
  options.emit = "ptx";
  Compiled ptx = compile(&options);
  ASSERT_TRUE(ptx.ok) << ptx.diagnostics;
  EXPECT_EQ(ptx.data, compileFor("nvptx:sm_90", "ptx").data);

  options.targets = "nvptx:sm_90,amdgcn:gfx942,spirv@32";
  options.emit = nullptr;
  Compiled bundle = compile(&options);
  ASSERT_TRUE(bundle.ok) << bundle.diagnostics;
  qd::CompileOptions same;
  same.targets = {"nvptx:sm_90", "amdgcn:gfx942", "spirv@32"};
  EXPECT_EQ(bundle.data, qd::compile(sumKernel, "test.qir", same).data);
}

TEST(CApi, DebugAddsLines) {
  qdcCompileOptions options;
  qdcInitCompileOptions(&options);
  options.targets = "nvptx:sm_90";
  options.emit = "ptx";
  EXPECT_EQ(options.debug, 0u);
  EXPECT_EQ(compile(&options).data.find(".loc"), std::string::npos);
  options.debug = 1;
  EXPECT_NE(compile(&options).data.find("\t.loc\t1 4 8\n"), std::string::npos);
  // A program that does not know the field, nor the word before it, which keeps the field out of older padding.
  options.structSize = offsetof(qdcCompileOptions, debug);
  EXPECT_EQ(compile(&options).data.find(".loc"), std::string::npos);
}

TEST(CApi, CompileErrors) {
  const char *notSetUp = "error: options were not set up by qdcInitCompileOptions\n";
  EXPECT_EQ(compile(nullptr).diagnostics, notSetUp);
  qdcCompileOptions options;
  qdcInitCompileOptions(&options);
  options.structSize = 4;
  EXPECT_EQ(compile(&options).diagnostics, notSetUp);

  qdcInitCompileOptions(&options);
  options.targets = "";
  Compiled none = compile(&options);
  EXPECT_FALSE(none.ok);
  EXPECT_NE(none.diagnostics.find("error: no target"), std::string::npos);
  options.targets = "nvptx";
  Compiled bad = compile(&options, "qd.kernel @k(");
  EXPECT_FALSE(bad.ok);
  EXPECT_EQ(bad.data, "");
  EXPECT_NE(bad.diagnostics.find("test.qir:1:"), std::string::npos);
}

TEST(CApi, NamelessInput) {
  qdcCompileOptions options;
  qdcInitCompileOptions(&options);
  options.targets = "nvptx";
  qdcResult result = qdcCompile("x", 1, nullptr, &options);
  EXPECT_FALSE(qdcResultOk(result));
  EXPECT_NE(strstr(qdcResultDiagnostics(result), "<input>:1:1"), nullptr) << qdcResultDiagnostics(result);
  qdcResultFree(result);
}

TEST(CApi, RunsOnEveryHostDevice) {
  for (const char *device : {"interp", "cpu", "sim:sm_80", "sim:gfx942"}) {
    std::string diagnostics;
    Module module = load(device, diagnostics);
    ASSERT_TRUE(module) << device << ": " << diagnostics;
    EXPECT_NE(strstr(qdcHostInterface(module.get()), "\"sum\""), nullptr);
    std::vector<float> x(128), y(128, -1);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i);
    qdcHostArg args[] = {{QDC_ARG_BUFFER, x.data(), int64_t(x.size()), 0, {}},
                         {QDC_ARG_BUFFER, y.data(), int64_t(y.size()), 0, {}}};
    uint32_t grid[3] = {2, 1, 1};
    char *text = nullptr;
    int failed = qdcHostLaunch(module.get(), "sum", grid, args, 2, &text);
    ASSERT_FALSE(failed) << device << ": " << take(text);
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(y[i], float(4 * (i / 4 * 4) + 6)) << device << " " << i;
  }
}

TEST(CApi, LoadErrors) {
  std::string diagnostics;
  EXPECT_FALSE(load("tpu", diagnostics));
  EXPECT_EQ(diagnostics, "error: unknown host device 'tpu', expected cpu, interp or sim:CHIP\n");
  EXPECT_FALSE(load("sim", diagnostics));
  EXPECT_EQ(diagnostics, "error: device sim needs a chip, as in sim:sm_80 or sim:gfx942\n");
  EXPECT_FALSE(load("sim:sm_1", diagnostics));
  EXPECT_NE(diagnostics.find("unknown chip 'sm_1' for target nvptx"), std::string::npos);
  EXPECT_FALSE(load("sim:mi300", diagnostics));
  EXPECT_NE(diagnostics.find("unknown chip 'mi300' for device sim, expected one of targets nvptx and amdgcn"),
            std::string::npos);
  EXPECT_FALSE(load("interp", diagnostics, sumKernel, 7));
  EXPECT_NE(diagnostics.find("7 lanes"), std::string::npos);
  EXPECT_FALSE(load("interp", diagnostics, "qd.kernel @k("));
  EXPECT_NE(diagnostics.find("test.qir:1:"), std::string::npos);
  EXPECT_FALSE(qdcHostLoad(sumKernel, strlen(sumKernel), nullptr, nullptr, nullptr));
}

TEST(CApi, NullPointers) {
  qdcCompileOptions options;
  qdcInitCompileOptions(&options);
  std::unique_ptr<qdcResult_, decltype(&qdcResultFree)> result(qdcCompile(nullptr, 10, nullptr, &options), qdcResultFree);
  EXPECT_FALSE(qdcResultOk(result.get()));
  EXPECT_STREQ(qdcResultDiagnostics(result.get()), "error: a program of 10 bytes at a null pointer\n");
  EXPECT_EQ(qdcResultFindVariant(result.get(), nullptr), nullptr);

  qdcHostOptions hostOptions;
  qdcInitHostOptions(&hostOptions);
  hostOptions.device = "interp";
  char *text = nullptr;
  EXPECT_FALSE(qdcHostLoad(nullptr, 3, nullptr, &hostOptions, &text));
  EXPECT_STREQ(text, "error: a program of 3 bytes at a null pointer\n");
  qdcFreeString(text);
  qdcHostModule module = qdcHostLoad(sumKernel, strlen(sumKernel), nullptr, &hostOptions, nullptr);
  ASSERT_TRUE(module);
  uint32_t grid[3] = {1, 1, 1};
  auto errorOf = [&](const char *kernel, const uint32_t *grid, size_t numArgs) {
    char *text = nullptr;
    EXPECT_TRUE(qdcHostLaunch(module, kernel, grid, nullptr, numArgs, &text));
    std::string said = text ? text : "";
    qdcFreeString(text);
    return said;
  };
  EXPECT_EQ(errorOf(nullptr, grid, 0), "the kernel's name is null");
  EXPECT_EQ(errorOf("sum", nullptr, 0), "the grid is null");
  EXPECT_EQ(errorOf("sum", grid, 2), "the arguments are null");
  qdcHostUnload(module);
}

/// As a compile of the same: an empty file is no program.
TEST(CApi, NoKernels) {
  for (const char *device : {"cpu", "interp", "sim:sm_80"}) {
    qdcHostOptions options;
    qdcInitHostOptions(&options);
    options.device = device;
    char *text = nullptr;
    EXPECT_FALSE(qdcHostLoad("", 0, "a.qir", &options, &text)) << device;
    EXPECT_STREQ(text, "a.qir:0:0: error: expected at least one qd.kernel\n");
    qdcFreeString(text);
  }
}

TEST(CApi, LaunchErrors) {
  for (const char *device : {"interp", "cpu", "sim:sm_80"}) {
    std::string diagnostics;
    Module module = load(device, diagnostics);
    ASSERT_TRUE(module) << device << ": " << diagnostics;
    uint32_t grid[3] = {1, 1, 1};
    char *text = nullptr;
    EXPECT_TRUE(qdcHostLaunch(module.get(), "nope", grid, nullptr, 0, &text)) << device;
    EXPECT_NE(take(text).find("nope"), std::string::npos) << device;
    text = nullptr;
    EXPECT_TRUE(qdcHostLaunch(module.get(), "sum", grid, nullptr, 0, &text)) << device;
    EXPECT_NE(take(text), "") << device;
    // Callers that do not care for the text need not take it.
    EXPECT_TRUE(qdcHostLaunch(module.get(), "nope", grid, nullptr, 0, nullptr)) << device;
  }
}

TEST(CApi, ManyModulesAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<unsigned> wrong{0};
  for (unsigned i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      std::string diagnostics;
      Module module = load(i % 2 ? "cpu" : "interp", diagnostics);
      std::vector<float> x(64, 1), y(64);
      qdcHostArg args[] = {{QDC_ARG_BUFFER, x.data(), 64, 0, {}}, {QDC_ARG_BUFFER, y.data(), 64, 0, {}}};
      uint32_t grid[3] = {1, 1, 1};
      if (!module || qdcHostLaunch(module.get(), "sum", grid, args, 2, nullptr) || y[63] != 4)
        ++wrong;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(CApi, ResizesBlocks) {
  const char *qir = "qd.kernel @k() block(64) resizable {\n  qd.return\n}\n";
  qdcCompileOptions options;
  qdcInitCompileOptions(&options);
  options.targets = "nvptx:sm_90";
  options.emit = "ptx";
  options.blocks = "k=32x4";
  Compiled resized = compile(&options, qir);
  EXPECT_TRUE(resized.ok) << resized.diagnostics;
  EXPECT_NE(resized.data.find(".reqntid 32, 4"), std::string::npos) << resized.data;
  options.blocks = "sum=32";
  EXPECT_EQ(compile(&options, qir).diagnostics, "error: block size 'sum=32': the module has no kernel 'sum'\n");

  qdcHostOptions host;
  qdcInitHostOptions(&host);
  host.device = "cpu";
  host.blocks = "k=16";
  char *text = nullptr;
  Module module(qdcHostLoad(qir, strlen(qir), "test.qir", &host, &text));
  std::string diagnostics = take(text);
  ASSERT_TRUE(module) << diagnostics;
  EXPECT_NE(std::string(qdcHostInterface(module.get())).find("\"block\":[16,1,1]"), std::string::npos);
}

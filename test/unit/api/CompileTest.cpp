//===- CompileTest.cpp - qd::compile: outputs, errors, determinism, threads -----------------------===//

#include "Kernels.h"

#include "ir/Targets.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <thread>

using namespace qd;

static bool contains(const std::string &text, llvm::StringRef part) { return llvm::StringRef(text).contains(part); }

namespace {
/// What an output of a target holds.
struct OutputRow {
  const char *target, *emit, *part;
};
} // namespace

TEST(Compile, EveryOutputOfEveryTarget) {
  static constexpr OutputRow rows[] = {
      {"", "qir", "qd.kernel @sum"},
      {"nvptx", "qir", "qd.subgroup.reduce_all"},
      {"nvptx", "expanded", "qd.subgroup.shuffle_xor"},
      {"nvptx", "llvm", "llvm.nvvm.shfl"},
      {"nvptx", "asm", "shfl.sync"},
      {"nvptx", "ptx", ".target sm_80"},
      {"nvptx", "", ".target sm_80"},
      {"nvptx", "stats", "sm_80"},
      {"nvptx", "stats-json", "\"instructions\""},
      {"nvptx", "qdb", ".target sm_80"},
      {"amdgcn", "expanded", "qd.subgroup.reduce_all"},
      {"amdgcn", "llvm", "llvm.amdgcn"},
      {"amdgcn", "asm", ".amdhsa_kernel sum"},
      {"amdgcn", "hsaco", "sum.kd"},
      {"amdgcn", "", "sum.kd"},
      {"amdgcn", "stats", "gfx90a (wave64)"},
      {"amdgcn", "qdb", "sum.kd"},
      {"spirv", "expanded", "qd.subgroup.shuffle_xor"},
      {"spirv", "spirv", "sum"},
      {"spirv", "spirv-asm", "OpGroupNonUniform"},
      {"spirv", "", "sum"},
      {"spirv", "stats", "spirv (32 lanes)"},
      {"spirv", "qdb", "spirv64-vulkan"},
      {"cpu", "expanded", "qd.subgroup.shuffle_xor"},
      {"cpu", "llvm", "define"},
      {"cpu", "asm", "kernel.sum"},
      {"cpu", "", "kernel.sum"},
      {"interp", "expanded", "qd.kernel @sum"},
  };
  for (const OutputRow &row : rows) {
    CompileResult result = compileFor(row.target, row.emit);
    EXPECT_TRUE(result.ok) << row.target << " " << row.emit << ": " << result.diagnostics;
    EXPECT_EQ(result.diagnostics, "") << row.target << " " << row.emit;
    EXPECT_TRUE(contains(result.data, row.part)) << row.target << " " << row.emit << " lacks " << row.part;
  }
}

TEST(Compile, OutputsThatATargetLacks) {
  static constexpr OutputRow rows[] = {
      {"nvptx", "hsaco", "error: target nvptx has no 'hsaco' output"},
      {"nvptx", "spirv", "error: target nvptx has no 'spirv' output"},
      {"amdgcn", "ptx", "error: target amdgcn has no 'ptx' output"},
      {"amdgcn", "cubin", "error: target amdgcn has no 'cubin' output"},
      {"spirv", "llvm", "error: target spirv has no 'llvm' output"},
      {"spirv", "ptx", "error: target spirv has no 'ptx' output"},
      {"cpu", "ptx", "error: target cpu has no 'ptx' output"},
      {"cpu", "stats", "error: target cpu has no 'stats' output"},
      {"interp", "asm", "error: target interp has no 'asm' output"},
      {"cpu:aarch64", "asm", "error: target cpu:aarch64 has no 'asm' output, expected 'llvm' or 'expanded'"},
      {"cpu:aarch64", "hsaco", "error: target cpu:aarch64 has no 'hsaco' output, expected 'llvm' or 'expanded'"},
      {"cpu:aarch64", "stats", "error: target cpu:aarch64 has no 'stats' output, expected 'llvm' or 'expanded'"},
      {"cpu:aarch64@16", "qdb", "error: target cpu:aarch64 has no 'qdb' output, expected 'llvm' or 'expanded'"},
      {"cpu", "qdb", "error: target cpu runs from a bundle's QIR; leave it out"},
  };
  for (const OutputRow &row : rows) {
    CompileResult result = compileFor(row.target, row.emit);
    EXPECT_FALSE(result.ok) << row.target << " " << row.emit;
    EXPECT_EQ(result.data, "");
    EXPECT_EQ(result.diagnostics, std::string(row.part) + "\n");
  }
}

/// Calls `test` with each chip at each of its sizes, as `-target=` names them.
static void forEachTarget(llvm::function_ref<void(const Chip &chip, const std::string &target)> test) {
  for (const Chip &chip : getChips())
    for (unsigned size = 4; size <= 64; size *= 2)
      if (chip.hasSubgroupSize(size))
        test(chip, llvm::formatv("{0}:{1}@{2}", getBackendName(chip.backend), chip.name, size));
}

TEST(Compile, EveryChipAtTheLevelsThatDiffer) {
  forEachTarget([](const Chip &chip, const std::string &target) {
    if (chip.backend == Backend::Interp)
      return;
    for (unsigned level : {0u, 2u}) {
      CompileOptions options;
      options.targets = {target};
      options.optLevel = level;
      CompileResult result = compile(sumKernel, "test.qir", options);
      EXPECT_TRUE(result.ok) << target << ": " << result.diagnostics;
      EXPECT_FALSE(result.data.empty()) << target;
    }
  });
}

/// An output is either there or refused in one line.
TEST(Compile, EveryChipTimesEveryOutput) {
  forEachTarget([](const Chip &chip, const std::string &target) {
    for (const EmitKind &kind : getEmitKinds()) {
      CompileResult result = compileFor(target.c_str(), kind.name);
      EXPECT_NE(result.ok, result.data.empty()) << target << " " << kind.name;
      if (result.ok)
        continue;
      llvm::StringRef said = result.diagnostics;
      EXPECT_TRUE(said.starts_with("error: ") && said.count('\n') == 1)
          << target << " " << kind.name << ": " << said.str();
      bool needsPtxas = chip.backend == Backend::NVPTX && llvm::StringRef(kind.name) == "cubin";
      EXPECT_TRUE(said.contains(llvm::formatv("has no '{0}' output", kind.name).str()) ||
                  said.contains("leave it out") || (needsPtxas && said.contains("ptxas")))
          << target << " " << kind.name << ": " << said.str();
    }
  });
}

TEST(Compile, Cubin) {
  CompileResult result = compileFor("nvptx:sm_90", "cubin");
  if (!result.ok) {
    EXPECT_EQ(result.diagnostics, "error: output 'cubin' needs NVIDIA's ptxas, which is neither on PATH nor in "
                                  "CUDA_HOME or /usr/local/cuda; a driver also takes PTX\n");
    return;
  }
  EXPECT_TRUE(llvm::StringRef(result.data).starts_with("\x7f"
                                                       "ELF"));
  EXPECT_EQ(compileFor("nvptx:sm_90", "cubin").data, result.data);
}

TEST(Compile, CubinSaysWhatFailed) {
  ASSERT_EQ(setenv("QDC_PTXAS", "/bin/false", 1), 0);
  CompileResult failing = compileFor("nvptx:sm_90", "cubin");
  ASSERT_EQ(setenv("QDC_PTXAS", "/does/not/exist", 1), 0);
  CompileResult absent = compileFor("nvptx:sm_90", "cubin");
  // Registers are then unknown, and nothing else.
  CompileResult stats = compileFor("nvptx:sm_90", "stats");
  unsetenv("QDC_PTXAS");
  EXPECT_FALSE(failing.ok);
  EXPECT_EQ(failing.diagnostics, "error: '/bin/false' failed on the PTX for sm_90\n");
  EXPECT_FALSE(absent.ok);
  EXPECT_TRUE(contains(absent.diagnostics, "error: cannot run '/does/not/exist'")) << absent.diagnostics;
  EXPECT_TRUE(stats.ok);
}

TEST(Compile, BadInput) {
  struct Row {
    const char *qir, *error;
  };
  static constexpr Row rows[] = {
      {"nonsense", "test.qir:1:1: error: custom op 'nonsense' is unknown"},
      {"qd.kernel @k() block(0) { qd.return }", "error: 'qd.kernel' op expected block dimensions from 1 to 1024"},
      {"qd.kernel @k() block(32) { qd.nope }", "qd.nope"},
      {"qd.kernel @k(", "test.qir:1:"},
      {"ML\xefRjunk", "test.qir:1:1: error: this is bytecode without a checksum, as MLIR's tools write it; qdc takes"},
      {"\xff\xfe\x00", "test.qir:1:1: error"},
  };
  for (const Row &row : rows) {
    CompileResult result = compileFor("nvptx", "ptx", row.qir);
    EXPECT_FALSE(result.ok) << row.qir;
    EXPECT_TRUE(contains(result.diagnostics, row.error)) << row.qir << " gives " << result.diagnostics;
  }
}

/// MLIR's reader does not survive all damage: none reaches it.
TEST(Compile, DamagedBytecode) {
  CompileResult whole = compileFor("", "bytecode");
  ASSERT_TRUE(whole.ok) << whole.diagnostics;
  auto compileBytes = [](const std::string &bytes) {
    CompileOptions options;
    options.targets = {"nvptx"};
    return compile(bytes, "test.qbc", options);
  };
  EXPECT_EQ(compileBytes(whole.data).data, compileFor("nvptx", "ptx").data);

  auto expectRefused = [&](const std::string &bytes, size_t place) {
    CompileResult result = compileBytes(bytes);
    EXPECT_FALSE(result.ok) << "at " << place;
    ASSERT_EQ(result.messages.size(), 1u) << "at " << place;
    llvm::StringRef said = result.messages[0].text;
    // A file that does not begin as bytecode is taken for text.
    EXPECT_TRUE(said.contains("bytecode")) << "at " << place << ": " << said.str();
  };
  for (size_t i = 0; i < whole.data.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string flipped = whole.data;
      flipped[i] ^= 1 << bit;
      expectRefused(flipped, i);
    }
    if (i)
      expectRefused(whole.data.substr(0, i), i);
    expectRefused(whole.data.substr(0, i) + whole.data.substr(i + 1), i);
  }
  expectRefused(whole.data + '\0', whole.data.size());
}

// Subgroup sizes that nobody asked for by name are left out of a bundle where the kernel does not allow them.
TEST(Compile, BundleLeavesOutSizes) {
  const char *text = R"(
qd.kernel @k(%x: !qd.buffer<i32>) block(32) {
  %i = qd.thread_index : i32
  %v = qd.load %x[%i] : !qd.buffer<i32>
  %c = arith.constant 0 : i32
  %p = arith.cmpi sgt, %v, %c : i32
  %q = qd.subgroup.any %p
  scf.if %q {
    %s = qd.subgroup.reduce_all add %v tile(8) : i32
    qd.store %s, %x[%i] : !qd.buffer<i32>
  }
  qd.return
}
)";
  CompileResult all = compileFor("spirv", "qdb", text);
  ASSERT_TRUE(all.ok) << all.diagnostics;
  EXPECT_TRUE(contains(all.diagnostics, "warning: left out of the bundle: 'qd.subgroup.reduce_all' op tile of 8 lanes "
                                        "exceeds the subgroup of 4 on spirv (4 lanes)"))
      << all.diagnostics;
  CompileResult one = compileFor("spirv@4", "qdb", text);
  EXPECT_FALSE(one.ok);
}

TEST(Compile, NoInput) {
  CompileResult result = compileFor("nvptx", "ptx", "");
  EXPECT_FALSE(result.ok);
  EXPECT_TRUE(contains(result.diagnostics, "error: expected at least one qd.kernel")) << result.diagnostics;
}

TEST(Compile, BadOptions) {
  auto errorOf = [](auto change) {
    CompileOptions options;
    options.targets = {"nvptx"};
    change(options);
    CompileResult result = compile(sumKernel, "test.qir", options);
    EXPECT_FALSE(result.ok);
    return result.diagnostics;
  };
  EXPECT_TRUE(contains(errorOf([](CompileOptions &o) { o.emit = "exe"; }),
                       "error: unknown output 'exe' of target nvptx, expected one of qir, bytecode, expanded"));
  EXPECT_TRUE(contains(errorOf([](CompileOptions &o) {
                         o.targets = {"nvptx", "cpu"};
                         o.emit = "exe";
                       }),
                       "error: unknown output 'exe', expected one of qir, bytecode, expanded"));
  EXPECT_EQ(errorOf([](CompileOptions &o) { o.optLevel = 4; }),
            "error: optimisation level 4 is not one of 0, 1, 2, 3\n");
  EXPECT_EQ(errorOf([](CompileOptions &o) { o.divergent = "maybe"; }),
            "error: unknown divergence policy 'maybe', expected error, warn or allow\n");
  EXPECT_EQ(errorOf([](CompileOptions &o) { o.remarks = "inline"; }),
            "error: unknown pass 'inline' to report on, expected expand\n");
  EXPECT_EQ(errorOf([](CompileOptions &o) { o.subgroupSize = 8; }),
            "error: sm_80 has no subgroups of 8 lanes, expected 32\n");
  EXPECT_TRUE(contains(errorOf([](CompileOptions &o) { o.targets.clear(); }), "error: no target"));
  EXPECT_TRUE(contains(errorOf([](CompileOptions &o) {
                         o.targets = {"nvptx", "amdgcn"};
                         o.emit = "asm";
                       }),
                       "error: output 'asm' takes one target, found 2"));
}

TEST(Compile, StatsOfSeveralTargets) {
  CompileOptions options;
  options.targets = {"nvptx:sm_90", "amdgcn:gfx1100", "spirv@8"};
  options.emit = "stats";
  CompileResult result = compile(sumKernel, "test.qir", options);
  ASSERT_TRUE(result.ok) << result.diagnostics;
  for (const char *name : {"sm_90", "gfx1100 (wave32)", "spirv (8 lanes)"})
    EXPECT_TRUE(contains(result.data, name)) << result.data;
}

TEST(Compile, SameInputGivesSameBytes) {
  for (const char *emit : {"qdb", "asm"})
    for (const char *target : {"nvptx", "amdgcn", "spirv"}) {
      if (llvm::StringRef(target) == "spirv" && llvm::StringRef(emit) == "asm")
        emit = "spirv";
      CompileOptions options;
      options.targets = {target};
      options.emit = emit;
      CompileResult first = compile(sumKernel, "test.qir", options);
      ASSERT_TRUE(first.ok) << first.diagnostics;
      EXPECT_EQ(first.data, compile(sumKernel, "test.qir", options).data) << target << " " << emit;
      // Neither where the input lies nor where the process stands shows.
      EXPECT_EQ(first.data, compile(sumKernel, "/some/where/else/test.qir", options).data) << target << " " << emit;
      llvm::SmallString<128> here;
      ASSERT_FALSE(llvm::sys::fs::current_path(here));
      ASSERT_FALSE(llvm::sys::fs::set_current_path("/"));
      EXPECT_EQ(first.data, compile(sumKernel, "test.qir", options).data) << target << " " << emit;
      ASSERT_FALSE(llvm::sys::fs::set_current_path(here));
    }
}

TEST(Compile, StrippedBundleHasNoQIR) {
  CompileOptions options;
  options.targets = {"nvptx"};
  options.emit = "qdb";
  CompileResult whole = compile(sumKernel, "test.qir", options);
  options.stripQir = true;
  CompileResult stripped = compile(sumKernel, "test.qir", options);
  ASSERT_TRUE(whole.ok && stripped.ok);
  EXPECT_LT(stripped.data.size(), whole.data.size());
  EXPECT_EQ(whole.data.substr(0, stripped.data.size()), stripped.data);
}

/// lld and option parsing are global in LLVM: many compilations at once must neither crash nor mix.
TEST(Compile, SixteenThreadsAtOnce) {
  static constexpr const char *targets[] = {"nvptx:sm_90", "amdgcn:gfx942", "amdgcn:gfx1100", "spirv@8"};
  std::vector<CompileResult> expected;
  for (const char *target : targets)
    expected.push_back(compileFor(target, ""));
  std::vector<std::thread> threads;
  std::atomic<unsigned> wrong{0};
  for (unsigned i = 0; i < 16; ++i)
    threads.emplace_back([&, i] {
      for (unsigned round = 0; round < 4; ++round) {
        unsigned which = (i + round) % std::size(targets);
        CompileResult result = compileFor(targets[which], "");
        wrong += !result.ok || result.data != expected[which].data;
        // An error in one thread stays there.
        wrong += compileFor(targets[which], "", "qd.kernel @k(").ok;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0u);
}

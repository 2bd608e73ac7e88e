//===- ResultTest.cpp - diagnostics and variants one by one, in C++ and C; options of other versions --------------===//

#include "Kernels.h"

#include "compiler/qdc.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>

using namespace qd;

namespace {
struct Free {
  void operator()(qdcResult result) const { qdcResultFree(result); }
};
using Result = std::unique_ptr<qdcResult_, Free>;
} // namespace

static Result compileInC(const char *qir, const char *targets, const char *emit = "qdb") {
  qdcCompileOptions options;
  qdcInitCompileOptions(&options);
  options.targets = targets;
  options.emit = emit;
  options.statistics = 1;
  return Result(qdcCompile(qir, strlen(qir), "test.qir", &options));
}

static constexpr const char *divergentKernel = R"(qd.kernel @k(%x: !qd.buffer<i32>) block(64) {
  %i = qd.thread_id x : i32
  %c1 = arith.constant 1 : i32
  %odd = arith.cmpi eq, %i, %c1 : i32
  scf.if %odd {
    %v = qd.subgroup.reduce_all add %i : i32
    qd.store %v, %x[%i] : !qd.buffer<i32>
  }
  qd.return
}
)";

TEST(Messages, SyntaxError) {
  CompileResult result = compileFor("nvptx", "ptx", "qd.kernel @k() block(4) {\n  qd.nonsense\n}\n");
  EXPECT_FALSE(result.ok);
  ASSERT_EQ(result.messages.size(), 1u) << result.diagnostics;
  const Message &message = result.messages[0];
  EXPECT_EQ(message.severity, Severity::Error);
  EXPECT_EQ(message.file, "test.qir");
  EXPECT_EQ(message.line, 2u);
  EXPECT_EQ(message.column, 3u);
  EXPECT_EQ(message.excerpt, "  qd.nonsense");
  EXPECT_NE(message.text.find("nonsense"), std::string::npos) << message.text;
  EXPECT_EQ(message.text.find("error"), std::string::npos) << message.text;
  EXPECT_TRUE(message.notes.empty());
}

TEST(Messages, NotesPointAtOtherPlaces) {
  CompileResult result = compileFor("nvptx", "ptx", divergentKernel);
  EXPECT_FALSE(result.ok);
  ASSERT_EQ(result.messages.size(), 1u) << result.diagnostics;
  EXPECT_EQ(result.messages[0].line, 6u);
  ASSERT_FALSE(result.messages[0].notes.empty()) << result.diagnostics;
  const Message &note = result.messages[0].notes[0];
  EXPECT_EQ(note.severity, Severity::Note);
  EXPECT_EQ(note.file, "test.qir");
  EXPECT_GT(note.line, 0u);
  EXPECT_NE(note.excerpt, "");
}

TEST(Messages, WarningsOfASuccess) {
  CompileOptions options;
  options.targets = {"nvptx"};
  options.emit = "ptx";
  options.divergent = "warn";
  CompileResult result = compile(divergentKernel, "test.qir", options);
  EXPECT_TRUE(result.ok) << result.diagnostics;
  ASSERT_EQ(result.messages.size(), 1u) << result.diagnostics;
  EXPECT_EQ(result.messages[0].severity, Severity::Warning);
}

/// What is found before the input is parsed has a place, too.
TEST(Messages, BeforeParsing) {
  struct {
    std::string qir;
    unsigned line, column;
    const char *text;
  } rows[] = {
      {"// text\nqd" + std::string("\0kernel", 7), 2, 3, "expected QIR as text or bytecode, found a zero byte at 10"},
      {"\n\n " + std::string(300, '('), 3, 258, "nested more than 256 levels deep"},
      {"\nmodule attributes {qd.version = 7 : i32} {}", 2, 20,
       "written for QIR version 7, this release reads up to version 1"},
      {"\x10\xFF\x10\xAD", 1, 1, "this is a compiled bundle, expected QIR; qdc-run runs bundles"},
      {std::string("\x7F" "ELF\2\1\1\0", 8), 1, 1,
       "this is an ELF file, as code objects (hsaco) and cubins are, expected QIR; devices load bundles, as --emit=qdb "
       "makes them"},
  };
  for (const auto &row : rows) {
    CompileOptions options;
    options.targets = {"nvptx"};
    CompileResult result = compile(row.qir, "test.qir", options);
    ASSERT_EQ(result.messages.size(), 1u) << row.text;
    EXPECT_EQ(result.messages[0].file, "test.qir");
    EXPECT_EQ(result.messages[0].line, row.line);
    EXPECT_EQ(result.messages[0].column, row.column);
    EXPECT_EQ(result.messages[0].text, row.text);
    EXPECT_EQ(result.diagnostics, "test.qir:" + std::to_string(row.line) + ":" + std::to_string(row.column) +
                                      ": error: " + row.text + "\n");
  }
}

/// What MLIR's parser says speaks of the program, and of nothing that only programs on MLIR have.
TEST(Messages, OfTheParser) {
  struct Row {
    const char *line, *text, *note = "";
  };
  constexpr const char *dialects = "the dialects are arith, builtin, func, math, qd, scf, vector";
  static constexpr Row rows[] = {
      {"%v = foo.bar %i : i32", "custom op 'foo.bar' is unknown", dialects},
      {"%v = arith.constant 1e999 : f32", "custom op 'e999' is unknown", dialects},
      {"%v = qd.nope %i : i32", "custom op 'qd.nope' is unknown"},
      {"nope", "custom op 'nope' is unknown", dialects},
      {"%v = \"qd.nope\"(%i) : (i32) -> i32", "op 'qd.nope' is unknown"},
      {"%v = \"foo.bar\"(%i) : (i32) -> i32", "the op's dialect is unknown"},
      {"%v = qd.load %x[%i] : !foo.bar", "type !\"foo\"<\"bar\"> is unknown"},
      {"%v = arith.addi %i, %i {a = #foo.bar} : i32", "attribute #\"foo\"<\"bar\"> is unknown"},
      {"%v = arith.addi %i, %i : !scf.bar", "dialect 'scf' has no type of its own"},
      {"%v = arith.addi %i, %i {a = #scf.bar} : i32", "dialect 'scf' has no attribute of its own"},
      {"%v = arith.addi %i, %i : int", "expected a type"},
      {"%v = arith.addi %i, %i overflow<foo> : i32", "custom op 'arith.addi' expected one of none, nsw, nuw"},
      {"%v = \"qd.global_thread_id\"() <{dim = #qd<dim w>}> : () -> i32", "expected one of x, y, z"},
      {"qd.kernel @l() block(32) { qd.return }", "'qd.kernel' op expected at the top of the module"},
      {"%v = arith.addi %i, %i : i32 i32", "expected an op"},
  };
  for (const Row &row : rows) {
    std::string text = "qd.kernel @k(%x: !qd.buffer<f32>) block(32) {\n  %i = qd.global_thread_id x : i32\n  ";
    CompileResult result = compileFor("nvptx", "ptx", (text + row.line + "\n  qd.return\n}\n").c_str());
    ASSERT_FALSE(result.messages.empty()) << row.line;
    EXPECT_EQ(result.messages[0].text, row.text);
    EXPECT_EQ(result.messages[0].line, 3u) << row.text;
    EXPECT_EQ(result.messages[0].notes.empty() ? "" : result.messages[0].notes[0].text, row.note) << row.text;
    EXPECT_NE(result.diagnostics.find(std::string(": error: ") + row.text + "\n"), std::string::npos);
    for (const char *word : {"::", "MLIR", "-allow", "http", "unregistered"})
      EXPECT_EQ(result.diagnostics.find(word), std::string::npos) << result.diagnostics;
  }
}

TEST(Messages, WithoutAPlace) {
  CompileResult result = compileFor("", "ptx");
  ASSERT_EQ(result.messages.size(), 1u);
  EXPECT_EQ(result.messages[0].file, "");
  EXPECT_EQ(result.messages[0].line, 0u);
  EXPECT_EQ(result.messages[0].text, "no target: name one with -target=nvptx, amdgcn, spirv or cpu");
}

TEST(Messages, InC) {
  Result result = compileInC(divergentKernel, "nvptx");
  EXPECT_FALSE(qdcResultOk(result.get()));
  ASSERT_EQ(qdcResultNumDiagnostics(result.get()), 1u);
  const qdcDiagnostic *diagnostic = qdcResultDiagnostic(result.get(), 0);
  EXPECT_EQ(diagnostic->severity, uint32_t(QDC_SEVERITY_ERROR));
  EXPECT_EQ(diagnostic->line, 6u);
  EXPECT_STREQ(diagnostic->file, "test.qir");
  EXPECT_STREQ(diagnostic->excerpt, "    %v = qd.subgroup.reduce_all add %i : i32");
  ASSERT_GE(diagnostic->numNotes, 1u);
  const qdcDiagnostic *note = qdcResultNote(result.get(), 0, 0);
  EXPECT_EQ(note->severity, uint32_t(QDC_SEVERITY_NOTE));
  EXPECT_EQ(qdcResultNote(result.get(), 0, diagnostic->numNotes), nullptr);
  EXPECT_EQ(qdcResultNote(result.get(), 1, 0), nullptr);
  EXPECT_EQ(qdcResultDiagnostic(result.get(), 1), nullptr);
  EXPECT_EQ(qdcResultNumVariants(result.get()), 0u);
}

TEST(Messages, OfHostModules) {
  qdcHostOptions options;
  qdcInitHostOptions(&options);
  options.device = "cpu";
  qdcResult said = nullptr;
  EXPECT_EQ(qdcHostCompile("qd.kernel", 9, "test.qir", &options, &said), nullptr);
  Result failed(said);
  EXPECT_FALSE(qdcResultOk(said));
  ASSERT_EQ(qdcResultNumDiagnostics(said), 1u);
  EXPECT_EQ(qdcResultDiagnostic(said, 0)->line, 1u);

  qdcHostModule module = qdcHostCompile(sumKernel, strlen(sumKernel), "test.qir", &options, &said);
  Result fine(said);
  EXPECT_NE(module, nullptr);
  EXPECT_TRUE(qdcResultOk(said));
  EXPECT_EQ(qdcResultNumDiagnostics(said), 0u);
  qdcHostUnload(module);
}

TEST(Variants, OfABundle) {
  Result result = compileInC(sumKernel, "nvptx:sm_90,amdgcn:gfx942,spirv");
  ASSERT_TRUE(qdcResultOk(result.get())) << qdcResultDiagnostics(result.get());
  const qdcVariant *ptx = qdcResultFindVariant(result.get(), "nvptx:sm_90");
  ASSERT_NE(ptx, nullptr);
  EXPECT_STREQ(ptx->target, "nvptx:sm_90@32");
  EXPECT_STREQ(ptx->kind, "ptx");
  EXPECT_EQ(std::string(static_cast<const char *>(ptx->code), ptx->codeSize), compileFor("nvptx:sm_90", "ptx").data);
  EXPECT_NE(strstr(ptx->interface_, "\"sum\""), nullptr);
  EXPECT_NE(strstr(ptx->statistics, "\"instructions\""), nullptr) << ptx->statistics;
  const qdcVariant *hsaco = qdcResultFindVariant(result.get(), "amdgcn");
  ASSERT_NE(hsaco, nullptr);
  EXPECT_EQ(std::string(static_cast<const char *>(hsaco->code), hsaco->codeSize),
            compileFor("amdgcn:gfx942", "hsaco").data);
  EXPECT_NE(strstr(hsaco->statistics, "\"instructions\""), nullptr);
  // Vulkan: one for each size, from 4 lanes on.
  EXPECT_EQ(qdcResultNumVariants(result.get()), 2u + 5u);
  EXPECT_NE(qdcResultFindVariant(result.get(), "spirv"), nullptr);
  EXPECT_EQ(qdcResultFindVariant(result.get(), "nvptx:sm_9"), nullptr);
  EXPECT_EQ(qdcResultFindVariant(result.get(), "cpu"), nullptr);
  EXPECT_EQ(qdcResultVariant(result.get(), 7), nullptr);
}

TEST(Variants, OfASingleOutput) {
  for (auto [target, emit] : {std::pair("nvptx", "ptx"), std::pair("amdgcn", "asm"), std::pair("spirv", "spirv"),
                              std::pair("cpu", "asm"), std::pair("nvptx", "expanded")}) {
    Result result = compileInC(sumKernel, target, emit);
    ASSERT_TRUE(qdcResultOk(result.get())) << qdcResultDiagnostics(result.get());
    ASSERT_EQ(qdcResultNumVariants(result.get()), 1u);
    const qdcVariant *variant = qdcResultVariant(result.get(), 0);
    size_t size = 0;
    EXPECT_EQ(variant->code, qdcResultData(result.get(), &size));
    EXPECT_EQ(variant->codeSize, size);
    EXPECT_STREQ(variant->kind, emit);
    EXPECT_EQ(variant->statistics[0] == 0, strcmp(target, "cpu") == 0) << target;
  }
  EXPECT_TRUE(compileFor("nvptx", "qir").variants.empty());
  EXPECT_TRUE(compileFor("nvptx", "stats").variants.empty());
  EXPECT_EQ(compileFor("nvptx", "ptx").variants.at(0).statistics, "");
}

/// What a program built against another release hands in.
TEST(Options, OfOtherVersions) {
  struct Newer {
    qdcCompileOptions known;
    uint64_t unknown;
  } newer;
  qdcInitCompileOptionsSized(&newer.known, sizeof newer);
  EXPECT_EQ(newer.known.structSize, sizeof newer);
  EXPECT_EQ(newer.unknown, 0u);
  newer.known.targets = "nvptx";
  Result fine(qdcCompile(sumKernel, strlen(sumKernel), nullptr, &newer.known));
  EXPECT_TRUE(qdcResultOk(fine.get())) << qdcResultDiagnostics(fine.get());
  newer.unknown = 1;
  Result refused(qdcCompile(sumKernel, strlen(sumKernel), nullptr, &newer.known));
  EXPECT_FALSE(qdcResultOk(refused.get()));

  // The function behind the macro writes what the first release had, and no byte more.
  qdcCompileOptions older;
  memset(&older, 0x5a, sizeof older);
  (qdcInitCompileOptions)(&older);
  EXPECT_EQ(older.structSize, offsetof(qdcCompileOptions, divergent));
  EXPECT_EQ(*reinterpret_cast<const unsigned char *>(&older.divergent), 0x5a);
  older.targets = "nvptx";
  Result old(qdcCompile(sumKernel, strlen(sumKernel), nullptr, &older));
  EXPECT_TRUE(qdcResultOk(old.get())) << qdcResultDiagnostics(old.get());
}

TEST(Options, Texts) {
  EXPECT_EQ(qdcVersionText(), getVersionText());
  char *targets = qdcDescribeTargets();
  EXPECT_EQ(targets, describeTargets());
  qdcFreeString(targets);
  qdcFreeString(nullptr);
  qdcResultFree(nullptr);
  qdcHostUnload(nullptr);
}

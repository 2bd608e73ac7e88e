//===- BlockOpsTest.cpp - ops of a block compute what they mean, at their cost --------------===//
//
// Purpose: runs kernels of block ops in the interpreter, as written and expanded, and compares every bit that they
// store: blocks of one thread to 1024, of whole subgroups and not, kinds and regions, in straight code and in loops.
// What is expanded runs with all checks, races included. Then counts barriers and shared bytes.
//
//===----------------------------------------------------------------------===//

#include "ExpandedKernel.h"

#include "ir/Kind.h"
#include "passes/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace qd;
using namespace qd::test;

namespace {

/// What makes %r of %v, which may use %t, %p and %h (i1, few of them true), %c0, %c1 and %c3.
struct Case {
  std::string text;
  std::string type;        ///< of the values
  std::string result = ""; ///< of %r, where that is another
  bool isSmall = false;    ///< values whose sums are exact in each order
  bool onFirst = false;    ///< thread 0 alone has a result

  StringRef getResult() const { return result.empty() ? type : result; }
};

/// Affine maps: their order counts.
std::string makeAffine(StringRef op, StringRef behind = "", StringRef types = "") {
  return llvm::formatv(R"(%r, %r2 = qd.block.{0} (%v, %t){1} : i32, i32{2} combine (%la, %lb), (%ha, %hb) {{
    %a = arith.muli %la, %ha : i32
    %b = arith.muli %lb, %ha : i32
    %c = arith.addi %b, %hb : i32
    qd.yield %a, %c : i32, i32
  })",
                       op, behind, types);
}

std::vector<Case> makeRegions() {
  return {{makeAffine("reduce"), "i32", "", false, true},
          {makeAffine("reduce_all"), "i32"},
          {makeAffine("inclusive_scan"), "i32"},
          {makeAffine("exclusive_scan", " identity(%c1, %c0)"), "i32"},
          {makeAffine("segmented_scan", " head %h", ", i1"), "i32"},
          {makeAffine("segmented_scan exclusive", " head %h identity(%c1, %c0)", ", i1"), "i32"}};
}

std::vector<Case> makeVotes() {
  return {{"%r = qd.block.sync_all %p", "i32", "i1"},
          {"%r = qd.block.sync_any %h", "i32", "i1"},
          {"%r = qd.block.sync_count %p", "i32"},
          {"%r = qd.block.broadcast %v, 0 : i32", "i32"},
          {"%last = arith.constant LAST : i32\n  %r = qd.block.broadcast %v, %last : i32", "i32"},
          {"%r = qd.block.elect", "i32", "i1"}};
}

std::vector<Case> makeKinds(StringRef type, Kind kind) {
  bool isSmall = type.contains('f') && (kind == Kind::add || kind == Kind::mul);
  std::string k = stringifyKind(kind).str(), t = type.str();
  return {{"%r = qd.block.reduce " + k + " %v : " + t, t, "", isSmall, true},
          {"%r = qd.block.reduce_all " + k + " %v : " + t, t, "", isSmall},
          {"%r = qd.block.inclusive_scan " + k + " %v : " + t, t, "", isSmall},
          {"%r = qd.block.exclusive_scan " + k + " %v : " + t, t, "", isSmall},
          {"%r = qd.block.segmented_scan " + k + " %v head %h : " + t + ", i1", t, "", isSmall},
          {"%r = qd.block.segmented_scan exclusive " + k + " %v head %h : " + t + ", i1", t, "", isSmall}};
}

std::string replaceAll(std::string text, StringRef from, StringRef to) {
  for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to.str());
  return text;
}

std::string getShape(unsigned threads) {
  if (threads % 8 == 0)
    return llvm::formatv("{0}, 2, 4", threads / 8);
  return threads % 3 == 0 ? llvm::formatv("{0}, 3", threads / 3).str() : std::to_string(threads);
}

/// A kernel that stores the op's result; with `rounds`, the op goes round a loop on its own results, in nested control
/// flow.
std::string makeKernel(const Case &test, unsigned threads, bool rounds) {
  std::string op = replaceAll(test.text, "LAST", std::to_string(threads - 1));
  std::string body = op;
  if (rounds)
    body = llvm::formatv(R"(%r = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %first) -> {0} : i32 {{
    %q = scf.for %j = %c0 to %i step %c1 iter_args(%w = %v) -> {0} : i32 {{
      {1}
      scf.yield %r : {0}
    }
    %z = scf.if %u -> {0} {{
      {2}
      scf.yield %r : {0}
    } else {{
      scf.yield %q : {0}
    }
    scf.yield %z : {0}
  })",
                         test.type, replaceAll(op, "%v", "%w"), replaceAll(op, "%v", "%q"));
  std::string store = "qd.store %r, %out[%t] : !qd.buffer<{0}>";
  if (test.onFirst)
    store = "%lead = qd.block.elect\n  qd.store %r, %out[%t] if %lead : !qd.buffer<{0}>";
  return llvm::formatv(R"(
qd.kernel @k(%x: !qd.buffer<{0}> readonly, %ps: !qd.buffer<i1> readonly, %hs: !qd.buffer<i1> readonly, %u: i1,
             %out: !qd.buffer<{1}>) block({2}) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %t = qd.thread_index : i32
  %{3} = qd.load %x[%t] : !qd.buffer<{0}>
  %p = qd.load %ps[%t] : !qd.buffer<i1>
  %h = qd.load %hs[%t] : !qd.buffer<i1>
  {4}
  {5}
  qd.return
}
)",
                       test.type, test.getResult(), getShape(threads), rounds ? "first" : "v", body,
                       llvm::formatv(store.c_str(), test.getResult()).str());
}

class Runner {
public:
  Runner() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
  }

  MLIRContext context;
  unsigned numCompared = 0;

  /// With `chip`, what is expanded is so for that.
  void compare(const Case &test, unsigned threads, unsigned size, bool rounds = false, const char *chip = nullptr) {
    std::string text = makeKernel(test, threads, rounds);
    SCOPED_TRACE(llvm::formatv("{0} threads, {1} lanes", threads, size).str());
    Target target = llvm::cantFail(findTarget("interp", size));
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    std::vector<uint8_t> expected = run(*module, test, threads, target, "");
    PassManager passes(&context);
    passes.addPass(createExpandCollectivesPass(chip ? llvm::cantFail(findTarget(chip)) : target));
    ASSERT_TRUE(succeeded(passes.run(*module))) << text;
    // Expansions read elements that nobody has written where nobody uses them.
    EXPECT_EQ(run(*module, test, threads, target, "poison,divergence,promises,races"), expected) << text;
    ++numCompared;
  }

private:
  std::vector<uint8_t> run(ModuleOp module, const Case &test, unsigned threads, const Target &target,
                           const std::string &checks) {
    std::mt19937_64 random(threads * 131 + target.subgroupSize);
    unsigned bytes = (getBits(test.type) + 7) / 8, outBytes = (getBits(test.getResult()) + 7) / 8;
    std::vector<uint8_t> x(threads * bytes), p(threads), h(threads), out(threads * outBytes, 0xcd);
    for (unsigned i = 0; i < threads; ++i) {
      uint64_t bits = random();
      if (test.isSmall)
        bits = test.type == "f64" ? (i % 3 ? 0x3ff0000000000000 : 0xbff0000000000000) : i % 3 ? 0x3f800000 : 0xbf800000;
      else if (test.type == "i1")
        bits &= 1;
      else if (unsigned fraction = llvm::StringSwitch<unsigned>(test.type)
                                       .Case("f16", 10)
                                       .Case("bf16", 7)
                                       .Case("f32", 23)
                                       .Case("f64", 52)
                                       .Default(0))
        bits &= ~(uint64_t(1) << fraction); // no NaN: which one comes out is open
      memcpy(&x[i * bytes], &bits, bytes);
      p[i] = i + 1 < threads || random() % 2;
      h[i] = random() % 50 == 0;
    }
    HostOptions options;
    options.checks = checks;
    std::unique_ptr<HostProgram> program = createInterpProgram(module, target, options);
    if (!program)
      return {};
    HostArg args[] = {{true, x.data(), threads, 0},
                      {true, p.data(), threads, 0},
                      {true, h.data(), threads, 0},
                      {false, nullptr, 0, 1},
                      {true, out.data(), threads, 0}};
    llvm::Error error = program->launch("k", {1, 1, 1}, args);
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
    return out;
  }
};

const unsigned sizes[] = {4, 8, 16, 32, 64};
const unsigned blocks[] = {1, 2, 3, 5, 24, 31, 32, 33, 40, 64, 65, 96, 100, 128, 250, 256, 257};
const unsigned largeBlocks[] = {511, 768, 993, 1000, 1023, 1024};

void sweep(ArrayRef<Case> cases, ArrayRef<unsigned> threads, bool rounds) {
  Runner runner;
  for (unsigned size : sizes)
    for (unsigned block : threads)
      for (const Case &test : cases) {
        if (rounds && test.getResult() != test.type)
          continue;
        runner.compare(test, block, size, rounds);
        if (::testing::Test::HasFailure())
          return;
      }
  EXPECT_GT(runner.numCompared, 0u);
}

TEST(BlockOps, RegionsInAllShapes) { sweep(makeRegions(), blocks, false); }
TEST(BlockOps, RegionsInLargeBlocks) { sweep(makeRegions(), largeBlocks, false); }
TEST(BlockOps, RegionsInLoops) {
  std::vector<Case> cases = makeRegions();
  llvm::erase_if(cases, [](const Case &test) { return test.onFirst; });
  sweep(cases, {1, 24, 33, 100, 128, 250}, true);
}

TEST(BlockOps, VotesInAllShapes) { sweep(makeVotes(), blocks, false); }
TEST(BlockOps, VotesInLargeBlocks) { sweep(makeVotes(), largeBlocks, false); }
TEST(BlockOps, VotesInLoops) { sweep(makeVotes(), {1, 24, 33, 100, 250}, true); }

TEST(BlockOps, SumsInAllShapes) {
  sweep(makeKinds("i32", Kind::add), blocks, false);
  sweep(makeKinds("f32", Kind::add), blocks, false);
  sweep(makeKinds("i64", Kind::maxsi), largeBlocks, false);
}

TEST(BlockOps, AllKindsAndTypes) {
  Runner runner;
  for (const char *type : {"i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"})
    for (unsigned k = 0; k <= getMaxEnumValForKind(); ++k) {
      Kind kind = Kind(k);
      StringRef name = type;
      if (!isLegalKind(kind, mlir::parseType(name, &runner.context)))
        continue;
      bool isSum = kind == Kind::add || kind == Kind::mul;
      bool isMinOrMax = name.contains('f') && !isSum;
      // Halves round sums; random bits hold zeros of both signs, of which numbers leave the sign open.
      if ((isSum && name.ends_with("f16")) || (isMinOrMax && kind != Kind::minimumf && kind != Kind::maximumf))
        continue;
      for (const Case &test : makeKinds(name, kind))
        for (auto [threads, size] : {std::pair(200u, 32u), {100u, 4u}, {72u, 64u}})
          runner.compare(test, threads, size);
    }
  EXPECT_GT(runner.numCompared, 500u);
}

/// What NVIDIA's chips alone get: totals by lanes, tiles of 64-bit values, counters in halves of words.
TEST(BlockOps, Warps) {
  Runner runner;
  for (const char *chip : {"nvptx:sm_70", "nvptx:sm_90"})
    for (unsigned threads : {163u, 192u, 200u, 256u, 288u, 293u, 384u, 512u, 553u, 640u, 768u, 1000u, 1001u, 1024u}) {
      for (auto [type, kind] : {std::pair("i32", Kind::add),
                                {"i32", Kind::mul},
                                {"i16", Kind::minsi},
                                {"f32", Kind::add},
                                {"f32", Kind::minimumf},
                                {"i64", Kind::add},
                                {"i64", Kind::xori},
                                {"f64", Kind::add},
                                {"f64", Kind::maximumf}})
        for (const Case &test : makeKinds(type, kind))
          if (StringRef(test.text).contains("clusive_scan")) {
            runner.compare(test, threads, 32, false, chip);
            if (threads < 300 && !test.isSmall) // sums of sums are not exact
              runner.compare(test, threads, 32, true, chip);
          }
      for (const char *keys : {"%v, %t", "%v, %t, %v", "%t, %v, %v, %t, %v, %v, %v, %t"})
        for (unsigned bits : {1u, 4u, 8u}) {
          unsigned count = llvm::count(StringRef(keys), ',');
          std::string results = "%r";
          for (unsigned i = 0; i < count; ++i)
            results += ", %r" + std::to_string(i);
          Case rank{
              llvm::formatv("{0} = qd.block.radix_rank ({1}) radix_bits({2}) begin(3) : i32", results, keys, bits),
              "i32"};
          runner.compare(rank, threads, 32, threads == 256, chip);
        }
    }
  EXPECT_GT(runner.numCompared, 400u);
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

struct Cost {
  const char *op;
  unsigned barriers;
};
const Cost costs[] = {{"reduce add %v0 : f32", 1},
                      {"reduce_all add %v0 : f32", 2},
                      {"inclusive_scan add %v0 : f32", 1},
                      {"exclusive_scan add %v0 : f32", 1},
                      {"broadcast %v0, 0 : f32", 1}};

std::string makeCostKernel(const char *op, unsigned threads) {
  return test::makeKernel(threads, {{"f32", {}}}, llvm::formatv("%r = qd.block.{0}", op), {{"%r", "f32"}});
}

TEST(BlockOps, Barriers) {
  for (const char *target : {"nvptx:sm_70", "nvptx:sm_90", "amdgcn:gfx90a", "amdgcn:gfx1100", "spirv@4", "spirv@16"})
    for (unsigned threads : {3u, 24u, 64u, 256u, 1000u, 1024u})
      for (const Cost &cost : costs) {
        ExpandedKernel kernel(makeCostKernel(cost.op, threads), target);
        Target parsed = llvm::cantFail(findTarget(target));
        SCOPED_TRACE(llvm::formatv("{0}, {1} threads, {2}", target, threads, cost.op).str());
        if (threads <= parsed.subgroupSize) {
          EXPECT_TRUE(kernel.isPlain());
          continue;
        }
        unsigned found = kernel.count("qd.block.sync") + kernel.count("qd.block.sync_shared");
        EXPECT_GE(found, 1u);
        EXPECT_LE(found, cost.barriers);
        // Where each subgroup has enough lanes for the results of all, it needs no second one.
        if (threads % parsed.subgroupSize == 0 && threads <= parsed.subgroupSize * parsed.subgroupSize)
          EXPECT_EQ(found, 1u);
      }
}

/// Scans of 64-bit values by tiles wait twice.
TEST(BlockOps, BarriersOfWideScans) {
  for (const char *op :
       {"inclusive_scan add %v0 : f64", "exclusive_scan add %v0 : f64", "inclusive_scan maxnumf %v0 : f64"})
    for (auto [target, threads, barriers] : {std::tuple("nvptx:sm_70", 64u, 1u),
                                             {"nvptx:sm_70", 128u, 1u},
                                             {"nvptx:sm_70", 256u, 2u},
                                             {"nvptx:sm_90", 384u, 2u},
                                             {"nvptx:sm_90", 1024u, 2u},
                                             {"nvptx:sm_90", 1000u, 1u},
                                             {"amdgcn:gfx90a", 256u, 1u},
                                             {"spirv@32", 256u, 1u}}) {
      std::string body = llvm::formatv("%r = qd.block.{0}", op);
      ExpandedKernel kernel(test::makeKernel(threads, {{"f64", {}}}, body, {{"%r", "f64"}}), target);
      EXPECT_EQ(kernel.count("qd.block.sync") + kernel.count("qd.block.sync_shared"), barriers)
          << target << ", " << threads << ", " << op;
    }
}

/// No loop over the block is written out.
TEST(BlockOps, SizeOfTheExpansion) {
  for (const char *target : {"nvptx:sm_80", "amdgcn:gfx90a", "spirv@4", "spirv@32"})
    for (const Cost &cost : costs) {
      ExpandedKernel kernel(makeCostKernel(cost.op, 1024), target);
      std::string text = kernel.str();
      EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 110) << target << "\n" << text;
    }
}

unsigned countVoteBarriers(const char *op, const char *type, unsigned threads, const char *target) {
  std::string body = llvm::formatv("%p = arith.cmpf ogt, %v0, %v0 : f32\n  %r = qd.block.{0} %p", op);
  ExpandedKernel kernel(test::makeKernel(threads, {{"f32", {}}}, body, {{"%r", type}}), target);
  return kernel.count("qd.block.sync") + kernel.count(std::string("qd.block.") + op);
}

TEST(BlockOps, BarriersOfVotes) {
  for (auto [op, type] : {std::pair("sync_all", "i1"), {"sync_any", "i1"}, {"sync_count", "i32"}})
    for (unsigned threads : {3u, 32u, 40u, 256u, 1000u, 1024u}) {
      EXPECT_EQ(countVoteBarriers(op, type, threads, "nvptx:sm_80"), 1u);
      for (const char *target : {"amdgcn:gfx90a", "amdgcn:gfx1100", "spirv@4", "spirv@32", "cpu@8"}) {
        unsigned found = countVoteBarriers(op, type, threads, target);
        EXPECT_TRUE(found == 1 || found == 2) << found;
      }
    }
}

/// No barrier more for a loop, whatever it is.
TEST(BlockOps, BarriersInLoops) {
  const char *loops[] = {
      R"(%r = scf.for %k = %c0 to %c8 step %c1 iter_args(%a = %v0) -> f32 : i32 {{
    %b = qd.block.{0}
    scf.yield %b : f32
  })",
      R"(%n, %r = scf.while (%k = %c0, %a = %v0) : (i32, f32) -> (i32, f32) {{
    %more = arith.cmpi slt, %k, %c8 : i32
    scf.condition(%more) %k, %a : i32, f32
  } do {{
  ^bb0(%k: i32, %a: f32):
    %b = qd.block.{0}
    %next = arith.addi %k, %c1 : i32
    scf.yield %next, %b : i32, f32
  })"};
  for (auto [op, type, barriers] :
       {std::tuple("reduce_all add %a : f32", "f32", 1u), {"inclusive_scan add %a : f32", "f32", 1u},
        {"inclusive_scan add %a : f64", "f64", 2u}, {"broadcast %a, 0 : f32", "f32", 1u}})
    for (std::string loop : loops) {
      loop = replaceAll(loop, "f32", type);
      std::string body =
          "%c0 = arith.constant 0 : i32\n  %c1 = arith.constant 1 : i32\n  %c8 = arith.constant 8 : i32\n  ";
      body += llvm::formatv(loop.c_str(), op).str();
      std::string text = test::makeKernel(256, {{type, {}}}, body, {{"%r", type}});
      ExpandedKernel kernel(text, "nvptx:sm_80");
      EXPECT_EQ(kernel.count("qd.block.sync"), barriers) << kernel.str();
    }
}

} // namespace

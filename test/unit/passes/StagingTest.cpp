//===- StagingTest.cpp - wide tiles never race for their shared memory ------------------===//
//
// Purpose: random kernels with wide tiles and block ops in nested loops and branches, expanded. The interpreter finds
// no race in them, however often the loops go round; and they compute what they did.
//
//===----------------------------------------------------------------------===//

#include "codegen/HostProgram.h"
#include "passes/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace qd;

namespace {

/// Writes a kernel that carries one i32 through random ops.
class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  std::string makeKernel() {
    std::string body = makeBlock("%v", 0, 6);
    return llvm::formatv(R"(
qd.kernel @k(%n: i32, %u: i1, %x: !qd.buffer<i32>, %y: !qd.buffer<i32>) block(64) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = qd.thread_index : i32
  %c21 = arith.constant 21 : i32
  %rest = arith.remui %t, %c21 : i32
  %h = arith.cmpi eq, %rest, %c1 : i32
  %v = qd.load %x[%t] : !qd.buffer<i32>
{0}
  qd.store {1}, %y[%t] : !qd.buffer<i32>
  qd.return
}
)",
                         body, last);
  }

private:
  unsigned pick(unsigned n) { return random() % n; }
  std::string fresh() { return "%a" + std::to_string(numNames++); }

  /// Ops that make `last` of `value`.
  std::string makeBlock(std::string value, unsigned depth, unsigned length) {
    std::string text;
    for (unsigned i = 0; i < length; ++i) {
      text += makeOp(value, depth);
      value = last;
    }
    last = value;
    return text;
  }

  std::string makeOp(const std::string &value, unsigned depth) {
    unsigned choice = pick(depth < 3 ? 10 : 7);
    std::string name = fresh();
    std::string text;
    if (choice == 0) {
      text = "qd.block.sync\n";
      name = value;
    } else if (choice < 7) {
      const char *ops[] = {
          "{0} = qd.subgroup.shuffle_up {1}, 1 tile({2}) : i32\n",
          "{0} = qd.subgroup.shuffle_xor {1}, 3 tile({2}) : i32\n",
          "{0} = qd.subgroup.broadcast {1}, 1 tile({2}) : i32\n",
          "{0} = qd.subgroup.reduce_all add {1} tile({2}) : i32\n",
          "{0} = qd.subgroup.shuffle {1}, %t tile({2}) : i32\n",
          "{0} = qd.subgroup.shuffle_down {1}, 5 tile({2}) : i32\n",
          "{0} = qd.subgroup.exclusive_scan maxui {1} tile({2}) : i32\n",
          "{0} = qd.subgroup.segmented_scan add {1} head %h tile({2}) : i32, i1\n",
          "{0} = qd.subgroup.segmented_reduce_all xori {1} head %h tile({2}) : i32, i1\n",
          "{0} = qd.block.broadcast {1}, 7 : i32\n",
          "{0} = qd.block.reduce_all add {1} : i32\n",
          "{0} = qd.block.exclusive_scan maxui {1} : i32\n",
          "{0}p = arith.trunci {1} : i32 to i1\n{0} = qd.block.sync_count {0}p\n",
          R"({0}, {0}s = qd.subgroup.inclusive_scan ({1}, %t) tile({2}) : i32, i32 combine (%la, %lb), (%ha, %hb) {{
               %ra = arith.muli %la, %ha : i32
               %rb = arith.addi %lb, %hb : i32
               qd.yield %ra, %rb : i32, i32
             }
          )"};
      text = llvm::formatv(ops[pick(std::size(ops))], name, value, 8 << pick(4));
    } else if (choice < 9) {
      std::string carried = fresh();
      std::string body = makeBlock(carried, depth + 1, 1 + pick(3));
      text = llvm::formatv("{0} = scf.for %i{5} = %c0 to %n step %c1 iter_args({1} = {2}) -> i32 : i32 {{\n{3}"
                           "scf.yield {4} : i32\n}\n",
                           name, carried, value, body, last, name.substr(1));
    } else {
      std::string thenBody = makeBlock(value, depth + 1, pick(3)), thenLast = last;
      std::string elseBody = makeBlock(value, depth + 1, pick(3)), elseLast = last;
      text = llvm::formatv("{0} = scf.if %u -> i32 {{\n{1}scf.yield {2} : i32\n} else {{\n{3}scf.yield {4} : i32\n}\n",
                           name, thenBody, thenLast, elseBody, elseLast);
    }
    last = name;
    return text;
  }

  std::mt19937 random;
  unsigned numNames = 0;
  std::string last;
};

/// The results, or what the interpreter's `checks` find.
std::string run(ModuleOp module, const Target &target, int32_t rounds, bool condition, const std::string &checks = "") {
  HostOptions options;
  options.checks = checks;
  std::unique_ptr<HostProgram> program = createInterpProgram(module, target, options);
  if (!program)
    return "not loaded";
  std::vector<int32_t> x(64), y(64);
  for (int i = 0; i < 64; ++i)
    x[i] = i * 2654435761u;
  HostArg args[] = {{false, nullptr, 0, uint64_t(rounds)},
                    {false, nullptr, 0, condition},
                    {true, x.data(), 64, 0},
                    {true, y.data(), 64, 0}};
  if (llvm::Error error = program->launch("k", {1, 1, 1}, args))
    return llvm::toString(std::move(error));
  std::string text;
  for (int32_t value : y)
    text += std::to_string(value) + " ";
  return text;
}

TEST(Staging, RandomControlFlow) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  const std::pair<int32_t, bool> ways[] = {{0, true}, {1, false}, {2, true}, {3, false}};
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::string text = Generator(seed).makeKernel();
    for (unsigned size : {4u, 32u}) {
      Target target = llvm::cantFail(findTarget("interp", size));
      OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
      ASSERT_TRUE(module) << text;
      std::vector<std::string> expected;
      for (auto [rounds, condition] : ways)
        expected.push_back(run(*module, target, rounds, condition));
      PassManager passes(&context);
      passes.addPass(createExpandCollectivesPass(target));
      ASSERT_TRUE(succeeded(passes.run(*module))) << text;
      for (auto [way, result] : llvm::zip_equal(ways, expected))
        EXPECT_EQ(run(*module, target, way.first, way.second, "all"), result) << text;
      if (::testing::Test::HasFailure())
        return;
    }
  }
}

/// The test's own judge: one barrier in a loop of writes and reads is too few.
TEST(Staging, RacesAreFound) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
qd.kernel @k(%n: i32, %u: i1, %x: !qd.buffer<i32>, %y: !qd.buffer<i32>) block(64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = qd.thread_index : i32
  %s = qd.shared.alloc : !qd.shared<64xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    qd.store %t, %s[%t] : !qd.shared<64xi32>
    qd.block.sync
    %v = qd.load %s[%i] : !qd.shared<64xi32>
  }
  qd.return
}
)",
                                                             &context);
  ASSERT_TRUE(module);
  std::string found = run(*module, llvm::cantFail(findTarget("interp", 32)), 2, true, "all");
  EXPECT_NE(found.find("race"), std::string::npos) << found;
}

/// Where shared memory is short, a barrier stands in for the second array, and for the second half in a loop.
TEST(Staging, LittleSharedMemory) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  Target target = llvm::cantFail(findTarget("nvptx:sm_75"));
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
qd.kernel @row(%x: !qd.buffer<i32>) block(1024) {
  %t = qd.thread_index : i32
  %s = qd.shared.alloc : !qd.shared<15000xi32>
  %a = qd.subgroup.shuffle_up %t, 1 tile(64) : i32
  %b = qd.subgroup.shuffle_up %a, 1 tile(64) : i32
  %c = qd.subgroup.shuffle_up %b, 1 tile(64) : i32
  qd.store %c, %x[%t] : !qd.buffer<i32>
  qd.return
}
qd.kernel @loop(%n: i32, %x: !qd.buffer<i32>) block(512) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = qd.thread_index : i32
  %s = qd.shared.alloc : !qd.shared<15600xi32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> i32 : i32 {
    %b = qd.subgroup.shuffle_up %a, 1 tile(64) : i32
    scf.yield %b : i32
  }
  qd.store %r, %x[%t] : !qd.buffer<i32>
  qd.return
}
)",
                                                             &context);
  ASSERT_TRUE(module);
  PassManager passes(&context);
  passes.addPass(createExpandCollectivesPass(target));
  ASSERT_TRUE(succeeded(passes.run(*module)));
  auto count = [](KernelOp kernel) {
    std::pair<unsigned, unsigned> counts; // arrays, barriers
    kernel.walk([&](Operation *op) {
      counts.first += isa<SharedAllocOp>(op);
      counts.second += isa<BlockSyncOp>(op);
    });
    return counts;
  };
  auto kernels = module->getOps<KernelOp>();
  EXPECT_EQ(count(*kernels.begin()), std::pair(2u, 5u));
  EXPECT_EQ(count(*std::next(kernels.begin())), std::pair(2u, 2u));
}

/// A turn goes through loops and branches only where it may end up either way.
TEST(Staging, TurnsThatAreKnown) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  auto countCarried = [&](StringRef body) {
    std::string text = llvm::formatv(R"(
qd.kernel @k(%n: i32, %u: i1, %x: !qd.buffer<i32>) block(64) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = qd.thread_index : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %t) -> i32 : i32 {{
    {0}
    scf.yield %a : i32
  }
  qd.store %r, %x[%t] : !qd.buffer<i32>
  qd.return
}
)",
                                     body);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    PassManager passes(&context);
    passes.addPass(createExpandCollectivesPass(llvm::cantFail(findTarget("nvptx"))));
    EXPECT_TRUE(succeeded(passes.run(*module)));
    unsigned carried = 0;
    module->walk([&](Operation *op) {
      if (isa<scf::ForOp, scf::IfOp>(op))
        carried += llvm::count_if(op->getResultTypes(), [](Type type) { return type.isInteger(1); });
    });
    return carried;
  };
  // A use a round, and two of them.
  EXPECT_EQ(countCarried("%a = qd.block.broadcast %v, 1 : i32"), 1u);
  EXPECT_EQ(countCarried("%b = qd.block.broadcast %v, 1 : i32\n %a = qd.block.broadcast %b, 2 : i32"), 0u);
  // On one side of a branch, and on both.
  EXPECT_EQ(countCarried(R"(%a = scf.if %u -> i32 {
      %b = qd.block.broadcast %v, 1 : i32
      scf.yield %b : i32
    } else {
      scf.yield %v : i32
    })"),
            2u);
  EXPECT_EQ(countCarried(R"(%a = scf.if %u -> i32 {
      %b = qd.block.broadcast %v, 1 : i32
      scf.yield %b : i32
    } else {
      %b = qd.block.broadcast %v, 2 : i32
      scf.yield %b : i32
    })"),
            1u);
}

} // namespace

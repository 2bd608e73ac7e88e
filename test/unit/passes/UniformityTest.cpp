//===- UniformityTest.cpp - what is called uniform is uniform --------------------------===//
//
// Purpose: random kernels, of which the interpreter shows every value in every thread: where the analysis calls one
// uniform in a subgroup or block, its threads agree.
//
//===----------------------------------------------------------------------===//

#include "codegen/HostProgram.h"
#include "passes/Uniformity.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace qd;

namespace {

/// Writes a kernel of random ops that stores each of its top-level values.
class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  /// With `isPartial`, no op reads another lane that may be missing.
  std::string makeKernel(StringRef block, unsigned threads, bool isPartial) {
    readsAnyLane = !isPartial;
    ints = {"%t", "%tx", "%ty", "%lane", "%b", "%n", "%c0", "%c3", "%size", "%m", "%w"};
    bools = {"%u"};
    std::string body;
    for (unsigned i = 0; i < 24; ++i)
      body += makeOp(0);
    std::string stores;
    unsigned slot = 0;
    for (const std::string &value : ints) {
      if (value[1] != 'a')
        continue;
      stores += llvm::formatv("  %s{0} = arith.constant {1} : i32\n  %i{0} = arith.addi %s{0}, %at : i32\n"
                              "  qd.store {2}, %y[%i{0}] : !qd.buffer<i32>\n",
                              slot, slot * 2 * threads, value);
      ++slot;
    }
    return llvm::formatv(R"(
qd.kernel @k(%n: i32, %u: i1, %x: !qd.buffer<i32> readonly, %y: !qd.buffer<i32>) block({0}) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %threads = arith.constant {1} : i32
  %t = qd.thread_index : i32
  %tx = qd.thread_id x : i32
  %ty = qd.thread_id y : i32
  %lane = qd.subgroup.lane_id : i32
  %b = qd.block_id x : i32
  %size = qd.subgroup.size : i32
  %m = qd.load %x[%b] : !qd.buffer<i32>
  %start = arith.muli %b, %threads : i32
  %at = arith.addi %start, %t : i32
  %w = qd.load %x[%at] : !qd.buffer<i32>
{2}{3}  qd.return
}
)",
                         block, threads, body, stores);
  }

private:
  unsigned pick(unsigned n) { return random() % n; }
  const std::string &pickInt() { return ints[pick(ints.size())]; }
  const std::string &pickBool() { return bools[pick(bools.size())]; }

  std::string makeOp(unsigned depth) {
    std::string name = "%a" + std::to_string(numNames++);
    const std::string a = pickInt(), b = pickInt(), p = pickBool();
    std::string text;
    auto binary = [&](const char *op) { return llvm::formatv("{0} = arith.{1} {2}, {3} : i32\n", name, op, a, b).str(); };
    auto withConstant = [&](const char *op, int constant) {
      return llvm::formatv("%k{0} = arith.constant {1} : i32\n{2} = arith.{3} {4}, %k{0} : i32\n", name.substr(1),
                           constant, name, op, a)
          .str();
    };
    switch (pick(depth < 2 ? 14 : 11)) {
    case 0: text = binary("addi"); break;
    case 1: text = binary("xori"); break;
    case 2: text = withConstant("shrui", 1 + pick(5)); break;
    case 3: text = withConstant("divsi", 1 << pick(6)); break;
    case 4: text = withConstant("andi", -(1 << pick(6))); break;
    case 5: {
      const char *predicates[] = {"slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge", "eq"};
      std::string condition = "%p" + std::to_string(numNames);
      text = llvm::formatv("%k{0} = arith.constant {1} : i32\n%p{0} = arith.cmpi {2}, {3} : i32\n"
                           "{4} = arith.extui %p{0} : i1 to i32\n",
                           numNames, int(pick(6) * 8) - int(pick(2)), predicates[pick(9)],
                           llvm::formatv(pick(2) ? "{0}, %k{1}" : "%k{1}, {0}", a, numNames).str(), name);
      if (depth == 0)
        bools.push_back(condition);
      break;
    }
    case 6: text = llvm::formatv("{0} = arith.select {1}, {2}, {3} : i32\n", name, p, a, b); break;
    case 7: text = llvm::formatv("{0} = qd.subgroup.broadcast {1}, {2} : i32\n", name, a, readsAnyLane && pick(2) ? b : "0"); break;
    case 8: text = llvm::formatv("{0} = qd.subgroup.reduce_all add {1} {2} : i32\n", name, a, pick(2) ? "" : "tile(4)"); break;
    case 9:
      text = llvm::formatv("%o{0} = qd.subgroup.ballot {1} : i64\n{2} = arith.trunci %o{0} : i64 to i32\n", numNames, p, name);
      break;
    case 10:
      text = llvm::formatv("%o{0} = qd.subgroup.any {1} {2}\n{3} = arith.extui %o{0} : i1 to i32\n", numNames, p,
                           pick(2) ? "" : "tile(4)", name);
      break;
    default: text = makeControl(name, a, b, p, depth); break;
    }
    ints.push_back(name);
    return text;
  }

  /// Collective ops under a divergent condition have no meaning: only arithmetic stands inside.
  std::string makeControl(const std::string &name, const std::string &a, const std::string &b, const std::string &p,
                          unsigned depth) {
    std::string id = name.substr(1);
    if (pick(2))
      return llvm::formatv("{0} = scf.if {1} -> i32 {{\n%x{2} = arith.addi {3}, %c1 : i32\nscf.yield {4} : i32\n} else {{\n"
                           "scf.yield {5} : i32\n}\n",
                           name, p, id, a, pick(2) ? "%x" + id : b, b);
    return llvm::formatv("%h{0} = arith.andi {1}, %c3 : i32\n"
                         "{2} = scf.for %j{0} = {3} to %h{0} step %c1 iter_args(%d{0} = {4}) -> i32 : i32 {{\n"
                         "%z{0} = arith.{5} : i32\nscf.yield %z{0} : i32\n}\n",
                         id, a, name, pick(2) ? "%c0" : "%h" + id, b,
                         pick(2) ? "addi %d" + id + ", %j" + id : "xori %n, " + a);
  }

  std::mt19937 random;
  unsigned numNames = 0;
  bool readsAnyLane = true;
  std::vector<std::string> ints, bools;
};

TEST(Uniformity, ClaimsHold) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  constexpr unsigned size = 8;
  Target target = llvm::cantFail(findTarget("interp", size));
  struct Shape { const char *block; unsigned threads; };
  const Shape shapes[] = {{"24", 24}, {"8, 3", 24}, {"6, 4", 24}, {"20", 20}, {"8", 8}, {"4", 4}, {"1, 16", 16}};
  unsigned numSubgroupClaims = 0, numBlockClaims = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Shape shape = shapes[seed % std::size(shapes)];
    std::string text = Generator(seed).makeKernel(shape.block, shape.threads, shape.threads % size);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    KernelOp kernel = *module->getOps<KernelOp>().begin();
    SmallVector<Value> stored;
    for (auto store : kernel.getBodyBlock().getOps<StoreOp>())
      stored.push_back(store.getValue());

    unsigned count = 2 * shape.threads;
    std::vector<int32_t> x(count), y(count * stored.size());
    std::mt19937 random(seed);
    for (int32_t &value : x)
      value = int32_t(random() % 64);
    HostOptions options;
    options.checks = "none";
    std::unique_ptr<HostProgram> program = createInterpProgram(*module, target, options);
    ASSERT_TRUE(program) << text;
    HostArg args[] = {{false, nullptr, 0, 10},
                      {false, nullptr, 0, 1},
                      {true, x.data(), int64_t(x.size()), 0},
                      {true, y.data(), int64_t(y.size()), 0}};
    llvm::Error error = program->launch("k", {2, 1, 1}, args);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error)) << text;

    for (unsigned assumed : {size, 0u}) {
      UniformityAnalysis analysis(kernel, assumed);
      for (auto [slot, value] : llvm::enumerate(stored)) {
        const int32_t *values = &y[slot * count];
        bool inSubgroup = analysis.isUniform(value, Scope::subgroup), inBlock = analysis.isUniform(value, Scope::block);
        EXPECT_TRUE(inSubgroup || !inBlock);
        numSubgroupClaims += inSubgroup;
        numBlockClaims += inBlock;
        for (unsigned block = 0; block < 2; ++block)
          for (unsigned t = 1; t < shape.threads; ++t) {
            const int32_t *own = values + block * shape.threads;
            if (inSubgroup) {
              ASSERT_EQ(own[t], own[t - t % size]) << "slot " << slot << " of a subgroup, size " << assumed << text;
            }
            if (inBlock) {
              ASSERT_EQ(own[t], own[0]) << "slot " << slot << " of a block, size " << assumed << text;
            }
          }
      }
    }
  }
  EXPECT_GE(numSubgroupClaims, 2000u);
  EXPECT_GE(numBlockClaims, 1000u);
}

} // namespace

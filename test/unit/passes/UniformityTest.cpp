//===- UniformityTest.cpp - what is called uniform is uniform --------------------------===//
//
// Purpose: random kernels, of which the interpreter shows every value in every thread, at every subgroup size: where
// the analysis calls one uniform in a subgroup, block or group of lanes, its threads agree.
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
    ints = {"%t", "%tx", "%ty", "%lane", "%b", "%n", "%c0", "%c3", "%size", "%m", "%w", "%id", "%num", "%log"};
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
  %id = qd.subgroup.subgroup_id : i32
  %num = qd.subgroup.num_subgroups : i32
  %log = qd.subgroup.log2_size : i32
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
    auto binary = [&](const char *op) {
      return llvm::formatv("{0} = arith.{1} {2}, {3} : i32\n", name, op, a, b).str();
    };
    auto withConstant = [&](const char *op, int constant) {
      return llvm::formatv("%k{0} = arith.constant {1} : i32\n{2} = arith.{3} {4}, %k{0} : i32\n", name.substr(1),
                           constant, name, op, a)
          .str();
    };
    auto subgroup = [&](const char *op) { return llvm::formatv("{0} = qd.subgroup.{1} : i32\n", name, op).str(); };
    // Lane masks and votes, as i32.
    auto mask = [&](const std::string &op, const char *type) {
      return llvm::formatv("%o{0} = qd.subgroup.{1}\n{2} = arith.{3} %o{0} : {4} to i32\n", numNames, op, name,
                           StringRef(type) == "i1" ? "extui" : "trunci", type)
          .str();
    };
    const char *tile = pick(2) ? "" : " tile(4)";
    switch (pick(30)) {
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
    case 7:
      text = llvm::formatv("{0} = qd.subgroup.broadcast {1}, {2} : i32\n", name, a, readsAnyLane && pick(2) ? b : "0");
      break;
    case 8:
      text = llvm::formatv("{0} = qd.subgroup.reduce_all add {1} {2} : i32\n", name, a, pick(2) ? "" : "tile(4)");
      break;
    case 9:
      text = llvm::formatv("%o{0} = qd.subgroup.ballot {1} : i64\n{2} = arith.trunci %o{0} : i64 to i32\n", numNames, p,
                           name);
      break;
    case 10:
      text = llvm::formatv("%o{0} = qd.subgroup.any {1} {2}\n{3} = arith.extui %o{0} : i1 to i32\n", numNames, p,
                           pick(2) ? "" : "tile(4)", name);
      break;
    case 11: text = subgroup(("rotate " + a + ", " + (readsAnyLane ? pick(2) ? b : "5" : "0")).c_str()); break;
    case 12: text = subgroup(("shuffle " + a + ", " + (readsAnyLane ? b : "0") + tile).c_str()); break;
    case 13: text = subgroup(("shuffle_down " + a + ", 1 tile(4)").c_str()); break;
    case 14: text = subgroup(((pick(2) ? "inclusive_scan add " : "exclusive_scan maxsi ") + a + tile).c_str()); break;
    case 15: text = subgroup(("bitonic_sort " + a + tile).c_str()); break;
    case 16:
      text = llvm::formatv("%k{0}, {1} = qd.subgroup.bitonic_sort_kv {2}, {3}{4} : i32, i32\n", numNames, name, a, b,
                           tile);
      break;
    case 17: text = mask("match_any " + a + tile + " : i32", "i64"); break;
    case 18:
      text = llvm::formatv("%o{0}, %e{0} = qd.subgroup.match_all {1}{2} : i32\n{3} = arith.trunci %o{0} : i64 to i32\n",
                           numNames, a, tile, name);
      break;
    case 19: text = mask("all_equal " + a + tile + " : i32", "i1"); break;
    case 20: text = subgroup(("ballot_first_n " + p + ", 7").c_str()); break;
    case 21:
      text = llvm::formatv("%o{0} = arith.andi {1}, %c3 : i32\n{2} = qd.subgroup.lanemask_ge{3} : i32\n", numNames, a,
                           name, pick(2) ? " %o" + std::to_string(numNames) : " tile(4)");
      break;
    case 22: text = mask("active_mask : i64", "i64"); break;
    case 23: {
      // A region's operation may take part in values that all lanes share.
      const char *uniform[] = {"%n", "%c3", "%b"};
      text = llvm::formatv("{0} = qd.subgroup.reduce_all ({1}){2} identity(%c0) : i32 combine (%l{4}), (%r{4}) {{\n"
                           "%q{4} = arith.xori %l{4}, %r{4} : i32\n%v{4} = arith.addi %q{4}, {3} : i32\n"
                           "qd.yield %v{4} : i32\n}\n",
                           name, a, tile, uniform[pick(3)], name.substr(1));
      break;
    }
    case 24:
      text = pick(2) ? llvm::formatv("{0} = qd.subgroup.segmented_reduce_all add {1} head {2}{3} : i32, i1\n", name, a,
                                     p, tile)
                           .str()
                     : llvm::formatv("{0} = qd.assume_uniform {1}, block : i32\n", name, pick(2) ? "%m" : "%n").str();
      break;
    case 25:
      if (pick(2))
        text = llvm::formatv("%d{0}, %e{0} = qd.unpack_bits {1} : i32\n{2} = qd.pack_bits %e{0}, {3} : i32\n", numNames,
                             a, name, p);
      else if (depth > 0)
        text = binary("addi");
      else if (pick(2))
        text = llvm::formatv("{0} = qd.block.{1} {2} : i32\n", name, pick(2) ? "reduce_all add" : "inclusive_scan xori",
                             a);
      else
        text =
            llvm::formatv("{0} = qd.block.{1}\n", name, pick(2) ? "broadcast " + a + ", 3 : i32" : "sync_count " + p);
      break;
    default: text = depth < 2 ? makeControl(name, a, b, p) : binary("addi"); break;
    }
    ints.push_back(name);
    return text;
  }

  /// Under a divergent condition there is arithmetic, and what knows its members.
  std::string makeControl(const std::string &name, const std::string &a, const std::string &b, const std::string &p) {
    std::string id = name.substr(1);
    if (pick(3) == 0) {
      std::string members = " members(%m" + id + ")";
      const std::string ops[] = {"ballot " + pickBool() + members + " : i64", "match_any " + a + members + " : i32",
                                 "active_mask : i64"};
      return llvm::formatv("{0} = scf.if {1} -> i32 {{\n%m{2} = qd.subgroup.active_mask : i64\n"
                           "%o{2} = qd.subgroup.{3}\n%x{2} = arith.trunci %o{2} : i64 to i32\nscf.yield %x{2} : i32\n"
                           "} else {{\nscf.yield {4} : i32\n}\n",
                           name, p, id, ops[pick(3)], b);
    }
    if (pick(2))
      return llvm::formatv(
          "{0} = scf.if {1} -> i32 {{\n%x{2} = arith.addi {3}, %c1 : i32\nscf.yield {4} : i32\n} else {{\n"
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
  struct Shape { const char *block; unsigned threads; };
  const Shape shapes[] = {{"24", 24},    {"8, 3", 24}, {"6, 4", 24},   {"20", 20}, {"8", 8},    {"4", 4},
                          {"1, 16", 16}, {"64", 64},   {"32, 4", 128}, {"96", 96}, {"192", 192}};
  unsigned numSubgroupClaims = 0, numBlockClaims = 0, numGroupClaims = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    unsigned size = 4u << seed % 5;
    Target target = llvm::cantFail(findTarget("interp", size));
    Shape shape = shapes[seed / 5 % std::size(shapes)];
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

    auto expectGroupsAgree = [&](unsigned slot, unsigned lanes, const std::string &claim) {
      for (unsigned block = 0; block < 2; ++block)
        for (unsigned t = 0; t < shape.threads; ++t) {
          const int32_t *own = &y[slot * count + block * shape.threads];
          ASSERT_EQ(own[t], own[t - t % lanes]) << "slot " << slot << " in a " << claim << " at size " << size << text;
        }
    };
    for (unsigned assumed : {size, 0u})
      for (unsigned lanes : {0u, 4u, 16u}) {
        UniformityAnalysis analysis(kernel, assumed, lanes);
        for (auto [slot, value] : llvm::enumerate(stored)) {
          bool inGroup = analysis.isUniform(value, Scope::subgroup), inBlock = analysis.isUniform(value, Scope::block);
          EXPECT_TRUE(inGroup || !inBlock);
          (lanes ? numGroupClaims : numSubgroupClaims) += inGroup;
          numBlockClaims += inBlock;
          std::string claim = llvm::formatv("{0} assuming {1}", lanes ? "group" : "subgroup", assumed);
          if (inGroup)
            expectGroupsAgree(slot, lanes ? lanes : size, claim);
          if (inBlock)
            expectGroupsAgree(slot, shape.threads, "block, " + claim);
          if (HasFatalFailure())
            return;
        }
      }
  }
  EXPECT_GE(numSubgroupClaims, 2000u);
  EXPECT_GE(numBlockClaims, 1000u);
  EXPECT_GE(numGroupClaims, 2000u);
}

} // namespace

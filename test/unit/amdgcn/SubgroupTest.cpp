//===- SubgroupTest.cpp - subgroup ops on every chip -------------------------------===//
//
// Compiles every data movement for every type, tile and chip; carries the optimised LLVM IR out lane by lane and
// compares with the op's definition; and assembles the emitted text again, which must give the emitted bytes.
//
//===----------------------------------------------------------------------===//

#include "Assembler.h"
#include "QirModule.h"

#include "codegen/sim/Sim.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <random>
#include <set>

using namespace llvm;

namespace qd::test {
namespace {

/// How the lane operand is given.
enum class Operand { Literal, Varying, Uniform };

/// One kernel: an op on values of one type.
struct Case {
  const char *op;
  const char *type;
  int tile; ///< 0 for none
  Operand operand;
  int n; ///< the literal or uniform operand
  bool poisonEdge = false;
};

unsigned getBytes(StringRef type) {
  return type == "i1" || type == "i8" ? 1 : type.ends_with("16") ? 2 : type.ends_with("32") ? 4 : 8;
}

std::string printKernel(const Case &c, unsigned number, const std::string &block) {
  std::string operand = StringRef(c.op) == "broadcast_first" ? ""
                        : c.operand == Operand::Literal      ? ", " + std::to_string(c.n)
                        : c.operand == Operand::Uniform      ? ", %n"
                                                             : ", %l";
  std::string tile = c.tile ? " tile(" + std::to_string(c.tile) + ")" : "";
  return formatv(R"(
qd.kernel @k{0}(%x: !qd.buffer<{1}>, %y: !qd.buffer<{1}>, %lanes: !qd.buffer<i32>, %defined: !qd.buffer<i1>,
              %n: i32) block({2}) {{
  %i = qd.thread_index : i32
  %v = qd.load %x[%i] : !qd.buffer<{1}>
  %l = qd.load %lanes[%i] : !qd.buffer<i32>
  %p = qd.load %defined[%i] : !qd.buffer<i1>
  %r = qd.subgroup.{3} %v{4}{5}{6} : {1}
  qd.store %r, %y[%i] if %p : !qd.buffer<{1}>
  qd.return
}
)",
                 number, c.type, block, c.op, operand, tile, c.poisonEdge ? " poison_edge" : "");
}

/// The lane of the wave that `lane` reads by the op's definition; none past an edge without a guarantee.
std::optional<int> getSource(const Case &c, int lane, int operand, int size) {
  StringRef op = c.op;
  int tile = c.tile ? c.tile : size, base = lane & ~(tile - 1), source;
  if (op == "shuffle" || op == "broadcast")
    return base + (operand & (tile - 1));
  if (op == "broadcast_first")
    return base;
  if (op == "shuffle_xor")
    return lane ^ (operand & (tile - 1));
  source = op == "shuffle_up" ? lane - operand : lane + operand;
  if (source >= base && source < base + tile)
    return source;
  return c.poisonEdge ? std::nullopt : std::optional(lane);
}

/// Every op, each with every type (where `allTypes`), tile and kind of operand. LaneMoveTest has all constants.
std::vector<Case> getCases(int size, bool allTypes) {
  static constexpr const char *types[] = {"i32", "i1", "i8", "i16", "i64", "f16", "bf16", "f32", "f64"};
  std::vector<Case> cases;
  for (const char *op : {"shuffle", "broadcast", "shuffle_xor", "shuffle_up", "shuffle_down", "broadcast_first"}) {
    if (StringRef(op) == "broadcast_first") {
      cases.push_back({op, "i32", 0, Operand::Literal, 0});
      cases.push_back({op, "f64", 8, Operand::Literal, 0});
      continue;
    }
    for (const char *type : ArrayRef(types).take_front(allTypes ? std::size(types) : 1)) {
      cases.push_back({op, type, 0, Operand::Varying, 0});
      cases.push_back({op, type, 8, Operand::Literal, 3});
      cases.push_back({op, type, 0, Operand::Uniform, 5});
    }
    bool isShift = StringRef(op) == "shuffle_up" || StringRef(op) == "shuffle_down";
    for (int lanes = 2; lanes <= size; lanes *= 2) {
      int tile = lanes < size ? lanes : 0;
      cases.push_back({op, "i32", tile, Operand::Varying, 0});
      cases.push_back({op, "i64", tile, Operand::Uniform, lanes + 1});
      for (int n : std::set<int>{0, 1, std::min(3, lanes - 1), lanes / 2, lanes - 1}) {
        cases.push_back({op, n == 1 ? "f64" : "i32", tile, Operand::Literal, n});
        if (isShift && n)
          cases.push_back({op, "i32", tile, Operand::Literal, n, true});
      }
    }
  }
  return cases;
}

/// Runs one case and compares with the definition.
void check(SimProgram &program, const Case &c, unsigned number, unsigned threads, int size,
           std::array<uint32_t, 3> block, std::mt19937 &random) {
  unsigned bytes = getBytes(c.type);
  std::vector<uint8_t> x(threads * bytes), y(threads * bytes, 0xaa), defined(threads);
  std::vector<int32_t> lanes(threads);
  for (uint8_t &byte : x)
    byte = StringRef(c.type) == "i1" ? random() & 1 : random();
  std::vector<int> sources(threads, -1);
  int tile = c.tile ? c.tile : size;
  for (int i = 0; i < int(threads); ++i) {
    // Shuffles take the lane modulo the tile, shifts go past the edge.
    int base = i & ~(size - 1), operand = c.operand == Operand::Varying ? random() % (2 * tile) : c.n;
    lanes[i] = c.operand == Operand::Varying ? operand : random();
    std::optional<int> source = getSource(c, i - base, operand, size);
    defined[i] = source && base + *source < int(threads);
    if (defined[i])
      sources[i] = base + *source;
  }
  Error error = program.run("k" + std::to_string(number), {1, 1, 1}, block,
                            {SimArg::buffer(x.data(), x.size()), SimArg::buffer(y.data(), y.size()),
                             SimArg::buffer(lanes.data(), 4 * threads), SimArg::buffer(defined.data(), threads),
                             SimArg::scalar(uint32_t(c.n))});
  ASSERT_FALSE(bool(error)) << toString(std::move(error));
  for (unsigned i = 0; i < threads; ++i)
    if (defined[i])
      for (unsigned byte = 0; byte < bytes; ++byte)
        ASSERT_EQ(y[i * bytes + byte], x[sources[i] * bytes + byte]) << "thread " << i << " reads " << sources[i];
}

struct Shape {
  std::array<uint32_t, 3> block;
  std::string text;
};

/// Only lanes below `active` reach the shuffles; a frontend may allow that.
void checkDivergent(const Target &target, int active) {
  std::string text = formatv(R"(
qd.kernel @k(%x: !qd.buffer<i32>, %lanes: !qd.buffer<i32>, %y: !qd.buffer<i32>, %z: !qd.buffer<i32>) block(64) {{
  %i = qd.thread_index : i32
  %lane = qd.subgroup.lane_id : i32
  %n = arith.constant {0} : i32
  %v = qd.load %x[%i] : !qd.buffer<i32>
  %l = qd.load %lanes[%i] : !qd.buffer<i32>
  %p = arith.cmpi slt, %lane, %n : i32
  scf.if %p {{
    %r = qd.subgroup.shuffle %v, %l : i32
    qd.store %r, %y[%i] : !qd.buffer<i32>
    %q = qd.subgroup.shuffle_xor %v, 4 : i32
    %four = arith.constant 4 : i32
    %partner = arith.xori %lane, %four : i32
    %met = arith.cmpi slt, %partner, %n : i32
    qd.store %q, %z[%i] if %met : !qd.buffer<i32>
  }
  qd.return
}
)",
                             active);
  QirModule module(text, target);
  ASSERT_TRUE(module.lowered) << module.errors;
  SimOptions options;
  options.chip = target.chip->name.str();
  options.waveSize = target.subgroupSize;
  options.checkSharedStores = false;
  Expected<std::unique_ptr<SimProgram>> program = SimProgram::create(*module.lowered, options);
  ASSERT_TRUE(bool(program)) << toString(program.takeError());
  std::vector<int32_t> x(64), lanes(64), y(64, -1), z(64, -1);
  int size = int(target.subgroupSize);
  std::mt19937 random(active);
  for (int i = 0; i < 64; ++i) {
    x[i] = 1000 + i;
    lanes[i] = random() % active;
  }
  Error error = (*program)->run("k", {1, 1, 1}, {64, 1, 1},
                                {SimArg::buffer(x.data(), 256), SimArg::buffer(lanes.data(), 256),
                                 SimArg::buffer(y.data(), 256), SimArg::buffer(z.data(), 256)});
  ASSERT_FALSE(bool(error)) << toString(std::move(error));
  for (int i = 0; i < 64; ++i) {
    int lane = i % size, base = i - lane;
    EXPECT_EQ(y[i], lane < active ? x[base + lanes[i]] : -1) << i;
    if (lane < active && (lane ^ 4) < active)
      EXPECT_EQ(z[i], x[i ^ 4]) << i;
  }
}

/// Sums of distinct powers and products: every lane's value counts once.
void checkReductions(const Target &target, unsigned threads) {
  std::string text = formatv(R"(
qd.kernel @k(%x: !qd.buffer<i64>, %y: !qd.buffer<i64>, %z: !qd.buffer<i64>) block({0}) {{
  %i = qd.thread_index : i32
  %v = qd.load %x[%i] : !qd.buffer<i64>
  %sum = qd.subgroup.reduce_all add %v : i64
  qd.store %sum, %y[%i] : !qd.buffer<i64>
  %product = qd.subgroup.reduce mul %v : i64
  %first = qd.subgroup.elect
  qd.store %product, %z[%i] if %first : !qd.buffer<i64>
  qd.return
}
)",
                             threads);
  QirModule module(text, target);
  ASSERT_TRUE(module.lowered) << module.errors;
  SimOptions options;
  options.chip = target.chip->name.str();
  options.waveSize = target.subgroupSize;
  Expected<std::unique_ptr<SimProgram>> program = SimProgram::create(*module.lowered, options);
  ASSERT_TRUE(bool(program)) << toString(program.takeError());
  std::vector<uint64_t> x(threads), y(threads), z(threads);
  std::mt19937_64 random(threads);
  for (uint64_t &value : x)
    value = random() | 1;
  Error error = (*program)->run("k", {1, 1, 1}, {threads, 1, 1},
                                {SimArg::buffer(x.data(), 8 * threads), SimArg::buffer(y.data(), 8 * threads),
                                 SimArg::buffer(z.data(), 8 * threads)});
  ASSERT_FALSE(bool(error)) << toString(std::move(error));
  for (unsigned base = 0; base < threads; base += target.subgroupSize) {
    unsigned end = std::min(base + target.subgroupSize, threads);
    uint64_t sum = 0, product = 1;
    for (unsigned i = base; i < end; ++i) {
      sum += x[i];
      product *= x[i];
    }
    for (unsigned i = base; i < end; ++i)
      EXPECT_EQ(y[i], sum) << i;
    EXPECT_EQ(z[base], product) << base;
  }
}

void sweep(const Target &target, const Shape &shape, bool allTypes) {
  int size = int(target.subgroupSize);
  unsigned threads = shape.block[0] * shape.block[1] * shape.block[2];
  std::vector<Case> cases = getCases(size, allTypes);
  // A tile may not straddle the block's end, other than the subgroup itself.
  erase_if(cases, [&](const Case &c) { return c.tile && threads % c.tile != 0; });
  std::string text;
  for (auto [i, c] : enumerate(cases))
    text += printKernel(c, i, shape.text);
  QirModule module(text, target);
  ASSERT_TRUE(module.lowered) << module.errors;

  SimOptions options;
  options.chip = target.chip->name.str();
  options.waveSize = target.subgroupSize;
  Expected<std::unique_ptr<SimProgram>> program = SimProgram::create(*module.lowered, options);
  ASSERT_TRUE(bool(program)) << toString(program.takeError());
  std::mt19937 random(size);
  for (auto [i, c] : enumerate(cases)) {
    SCOPED_TRACE(target.str() + printKernel(c, i, shape.text));
    check(**program, c, i, threads, size, shape.block, random);
    if (testing::Test::HasFatalFailure())
      return;
  }

  std::unique_ptr<llvm::Module> copy = CloneModule(*module.lowered), other = CloneModule(*module.lowered);
  Expected<std::string> object = emitAMDGCN(*copy, target, AMDGCNOutput::Object, {});
  ASSERT_TRUE(bool(object)) << toString(object.takeError());
  Expected<std::string> assembly = emitAMDGCN(*other, target, AMDGCNOutput::Assembly, {});
  ASSERT_TRUE(bool(assembly)) << toString(assembly.takeError());
  std::string assembled = assemble(*assembly, target);
  ASSERT_EQ(assembled.substr(1, 3), "ELF") << target.str() << ": " << assembled.substr(0, 2000);
  EXPECT_TRUE(getText(assembled) == getText(*object)) << target.str();
}

class Subgroup : public testing::TestWithParam<Target> {};

TEST_P(Subgroup, WholeWaves) { sweep(GetParam(), {{128, 1, 1}, "128"}, true); }
TEST_P(Subgroup, PartialLastWave) { sweep(GetParam(), {{200, 1, 1}, "200"}, false); }
TEST_P(Subgroup, ThreeDimensions) { sweep(GetParam(), {{4, 9, 3}, "4, 9, 3"}, false); }

TEST_P(Subgroup, DivergentFlow) {
  for (int active : {5, 29, int(GetParam().subgroupSize) - 3})
    checkDivergent(GetParam(), active);
}

TEST_P(Subgroup, Reductions) {
  for (unsigned threads : {16, 64, 100, 192})
    checkReductions(GetParam(), threads);
}

INSTANTIATE_TEST_SUITE_P(Chips, Subgroup, testing::ValuesIn(getTargets()), [](const auto &info) {
  return info.param.chip->name.str() + "_" + std::to_string(info.param.subgroupSize);
});

} // namespace
} // namespace qd::test

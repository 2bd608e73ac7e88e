//===- ExpandCollectivesTest.cpp - expansions compute what the ops mean -------------------===//
//
// Purpose: runs kernels of one subgroup op in the interpreter, as written and expanded, and compares every bit that
// they store: each op, kind and type; tiles from one lane to the block; blocks that are whole subgroups, that are
// smaller and that end in a partial one; ops in loops and in a row, where staging memory is used again.
//
//===----------------------------------------------------------------------===//

#include "codegen/HostProgram.h"
#include "ir/Kind.h"
#include "passes/LaneTree.h"
#include "passes/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace qd;

namespace {

/// What the buffers hold: any bits, -2 to 2, 1 and -1, 1 alone, or NaN, infinities, 1 and -1.
enum class Values { Any, Small, Units, Equal, Special };

/// Ops of a kernel, which may use %v (the value), %l (an i32), %p (an i1) and $t (the tile clause).
struct Case {
  std::string text;     ///< defines %r from %v
  std::string result;   ///< its type
  std::string type;     ///< of the values
  Values values;
  bool onLaneZero = false;
};

class Runner {
public:
  Runner() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
  }

  MLIRContext context;
  unsigned numCompared = 0, numRefused = 0;

  /// Compares the module in `text` with its expansion; false where the interpreter refuses the module as written.
  void compare(const std::string &text, const Case &test, unsigned threads, const Target &target);

private:
  llvm::Expected<std::vector<uint8_t>> run(ModuleOp module, const Case &test, unsigned threads, const Target &target);
  std::vector<uint8_t> makeInput(const Case &test, unsigned count, std::mt19937_64 &random);
};

unsigned getBytes(StringRef type) {
  if (type == "i1")
    return 1;
  return std::stoi(type.drop_front(type.starts_with("bf") ? 2 : 1).str()) / 8;
}

/// The bits of a number that is exact in every type.
uint64_t encode(StringRef type, double value) {
  auto convert = [&](const llvm::fltSemantics &semantics) {
    APFloat number = APFloat(value);
    bool losesInfo;
    number.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
    return number.bitcastToAPInt().getZExtValue();
  };
  return llvm::StringSwitch<uint64_t>(type)
      .Case("f16", convert(APFloat::IEEEhalf()))
      .Case("bf16", convert(APFloat::BFloat()))
      .Case("f32", convert(APFloat::IEEEsingle()))
      .Case("f64", convert(APFloat::IEEEdouble()))
      .Default(std::isfinite(value) ? uint64_t(int64_t(value)) : 0);
}

constexpr double specials[] = {1, -1, 1, -1, INFINITY, -INFINITY, NAN};

std::vector<uint8_t> Runner::makeInput(const Case &test, unsigned count, std::mt19937_64 &random) {
  unsigned bytes = getBytes(test.type);
  std::vector<uint8_t> data(count * bytes);
  for (unsigned i = 0; i < count; ++i) {
    uint64_t bits = 0;
    switch (test.values) {
    case Values::Any:
      bits = random() % 4 ? random() : encode(test.type, int(random() % 3) - 1);
      break;
    case Values::Small:
      bits = encode(test.type, int(random() % 5) - 2);
      break;
    case Values::Units:
      bits = encode(test.type, random() % 2 ? 1 : -1);
      break;
    case Values::Equal:
      bits = encode(test.type, 1);
      break;
    case Values::Special:
      bits = encode(test.type, specials[random() % std::size(specials)]);
      break;
    }
    if (test.type == "i1")
      bits &= 1;
    memcpy(&data[i * bytes], &bits, bytes);
  }
  return data;
}

constexpr unsigned numBlocks = 2;

llvm::Expected<std::vector<uint8_t>> Runner::run(ModuleOp module, const Case &test, unsigned threads,
                                                 const Target &target) {
  unsigned count = threads * numBlocks;
  std::mt19937_64 random(threads * 131 + target.subgroupSize);
  std::vector<uint8_t> x = makeInput(test, count, random);
  std::vector<int32_t> lanes(count);
  std::vector<uint8_t> predicates(count);
  for (unsigned i = 0; i < count; ++i) {
    lanes[i] = random() % 70;
    predicates[i] = random() % 8 != 0;
  }
  std::vector<uint8_t> out(count * getBytes(test.result), 0xcd);
  std::unique_ptr<HostProgram> program = createInterpProgram(module, target, {});
  if (!program)
    return llvm::createStringError("the interpreter does not load it");
  HostArg args[] = {{true, x.data(), count, 0},
                    {true, lanes.data(), count, 0},
                    {true, predicates.data(), count, 0},
                    {true, out.data(), count, 0}};
  if (llvm::Error error = program->launch("k", {numBlocks, 1, 1}, args))
    return error;
  return out;
}

void checkInvariant(ModuleOp module, const Target &target) {
  int32_t size = target.subgroupSize;
  module.walk([&](Operation *op) {
    EXPECT_FALSE(
        (isa<ReduceOp, ReduceAllOp, BroadcastFirstOp, ElectOp, SubgroupSizeOp, GlobalThreadIdOp, BlockDimOp>(op)))
        << op->getName().getStringRef().str();
    auto tile = op->getAttrOfType<IntegerAttr>("tile");
    if (tile) {
      EXPECT_GT(tile.getInt(), 1);
      EXPECT_LT(tile.getInt(), size);
      EXPECT_FALSE((isa<AllOp, AnyOp>(op)));
    }
    int32_t lanes = tile ? tile.getInt() : size;
    auto checkLane = [&](auto shuffle, int32_t least) {
      if (std::optional<int32_t> lane = shuffle.getConstantLane()) {
        EXPECT_TRUE(shuffle.getStaticLane().has_value());
        EXPECT_GE(*lane, least);
        EXPECT_LT(*lane, lanes);
      }
    };
    if (auto shuffle = dyn_cast<ShuffleOp>(op)) {
      EXPECT_FALSE(shuffle.getConstantLane().has_value());
    }
    if (auto shuffle = dyn_cast<ShuffleUpOp>(op))
      checkLane(shuffle, 1);
    if (auto shuffle = dyn_cast<ShuffleDownOp>(op))
      checkLane(shuffle, 1);
    if (auto shuffle = dyn_cast<ShuffleXorOp>(op)) {
      checkLane(shuffle, 1);
      EXPECT_FALSE(shuffle.getStaticLane() && tile);
    }
    if (auto broadcast = dyn_cast<BroadcastOp>(op))
      checkLane(broadcast, 0);
  });
}

void Runner::compare(const std::string &text, const Case &test, unsigned threads, const Target &target) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << text;
  llvm::Expected<std::vector<uint8_t>> expected = run(*module, test, threads, target);
  if (!expected) {
    // A lane that a partial subgroup lacks was read: nothing is promised.
    std::string error = llvm::toString(expected.takeError());
    EXPECT_NE(threads % target.subgroupSize, 0u) << error << "\n" << text;
    ++numRefused;
    return;
  }
  PassManager passes(&context);
  passes.addPass(createExpandCollectivesPass(target));
  ASSERT_TRUE(succeeded(passes.run(*module))) << target.str() << "\n" << text;
  checkInvariant(*module, target);
  llvm::Expected<std::vector<uint8_t>> found = run(*module, test, threads, target);
  ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError()) << "\n" << target.str() << "\n" << text;
  EXPECT_EQ(*found, *expected) << target.str() << "\n" << text;
  ++numCompared;
}

std::string replaceAll(std::string text, StringRef from, StringRef to) {
  for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to.str());
  return text;
}

std::string getClause(unsigned tile) { return tile ? llvm::formatv("tile({0})", tile).str() : ""; }

/// A kernel that stores the op's result; with `inLoop`, that of the last of three rounds, each of which works on
/// what the last one made.
std::string makeKernel(const Case &test, unsigned threads, unsigned tile, bool inLoop) {
  std::string op = replaceAll(test.text, "$t", getClause(tile));
  std::string body = "  " + op + "\n";
  if (inLoop)
    body = llvm::formatv(R"(
  %r = scf.for %round = %c0 to %c3 step %c1 iter_args(%carried = %first) -> {0} : i32 {{
    %v = arith.select %true, %carried, %first : {0}
    %q = scf.if %true -> {0} {{
      {1}
      scf.yield %r : {0}
    } else {{
      scf.yield %v : {0}
    }
    scf.yield %q : {0}
  }
)",
                         test.type, replaceAll(op, "%r2", "%x2"));
  std::string block = threads % 4 == 0 ? llvm::formatv("{0}, 2, 2", threads / 4).str() : std::to_string(threads);
  return llvm::formatv(R"(
qd.kernel @k(%x: !qd.buffer<{0}> readonly, %lanes: !qd.buffer<i32> readonly, %ps: !qd.buffer<i1> readonly,
             %out: !qd.buffer<{1}>) block({2}) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %true = arith.constant true
  %t = qd.thread_index : i32
  %b = qd.block_id x : i32
  %n = arith.constant {3} : i32
  %start = arith.muli %b, %n : i32
  %i = arith.addi %start, %t : i32
  %{4} = qd.load %x[%i] : !qd.buffer<{0}>
  %l = qd.load %lanes[%i] : !qd.buffer<i32>
  %p = qd.load %ps[%i] : !qd.buffer<i1>
{5}
  %lead = qd.subgroup.elect {6}
  %stores = arith.ori %lead, %{7} : i1
  qd.store %r, %out[%i] if %stores : !qd.buffer<{1}>
  qd.return
}
)",
                       test.type, test.result, block, threads, inLoop ? "first" : "v", body, getClause(tile),
                       test.onLaneZero ? "lead" : "true");
}

const char *const types[] = {"i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"};

Type parseScalar(MLIRContext &context, StringRef name) { return mlir::parseType(name, &context); }

/// Values on which a kind's result depends neither on the order of association nor on which of two zeros it takes.
Values getValues(Kind kind, Type type) {
  if (!isa<FloatType>(type))
    return Values::Any;
  if (kind == Kind::add)
    return Values::Small;
  return kind == Kind::mul ? Values::Units : Values::Special;
}

std::vector<Case> makeReductions(MLIRContext &context, ArrayRef<const char *> wanted) {
  std::vector<Case> cases;
  for (const char *name : wanted)
    for (unsigned k = 0; k <= getMaxEnumValForKind(); ++k) {
      Kind kind = Kind(k);
      Type type = parseScalar(context, name);
      if (!isLegalKind(kind, type))
        continue;
      Values values = getValues(kind, type);
      std::string kindName = stringifyKind(kind).str();
      cases.push_back(
          {llvm::formatv("%r = qd.subgroup.reduce {0} %v $t : {1}", kindName, name), name, name, values, true});
      cases.push_back(
          {llvm::formatv("%r = qd.subgroup.reduce_all {0} %v $t : {1}", kindName, name), name, name, values});
    }
  return cases;
}

std::vector<Case> makeMoves(ArrayRef<const char *> wanted) {
  std::vector<Case> cases;
  for (const char *type : wanted)
    for (const char *text :
         {"%r = qd.subgroup.shuffle %v, %l $t : T", "%r = qd.subgroup.shuffle %v, 70 $t : T",
          "%r = qd.subgroup.shuffle_up %v, %l $t : T", "%r = qd.subgroup.shuffle_up %v, 2 $t : T",
          "%r = qd.subgroup.shuffle_up %v, 0 $t : T", "%r = qd.subgroup.shuffle_down %v, %l $t : T",
          "%r = qd.subgroup.shuffle_down %v, 3 $t : T", "%r = qd.subgroup.shuffle_xor %v, %l $t : T",
          "%r = qd.subgroup.shuffle_xor %v, 0 $t : T", "%r = qd.subgroup.broadcast %v, %l $t : T",
          "%r = qd.subgroup.broadcast %v, 5 $t : T", "%r = qd.subgroup.broadcast_first %v $t : T"})
      cases.push_back({replaceAll(text, "T", type), type, type, Values::Any});
  return cases;
}

std::vector<Case> makeVotes() {
  std::vector<Case> cases;
  for (Values values : {Values::Any, Values::Equal})
    for (const char *text : {"%r = qd.subgroup.all %v $t", "%r = qd.subgroup.any %v $t",
                             "%r = qd.subgroup.all %p $t", "%r = qd.subgroup.any %p $t", "%r = qd.subgroup.elect $t"})
      cases.push_back({text, "i1", "i1", values});
  return cases;
}

const unsigned sizes[] = {4, 8, 16, 32, 64};

/// 0 (no clause) and every tile that divides the block.
std::vector<unsigned> getTiles(unsigned threads) {
  std::vector<unsigned> tiles = {0};
  for (unsigned tile = 1; tile <= threads && threads % tile == 0; tile *= 2)
    tiles.push_back(tile);
  return tiles;
}

void sweep(ArrayRef<unsigned> subgroups, ArrayRef<unsigned> blocks,
           llvm::function_ref<std::vector<Case>(Runner &)> make, bool inLoop, unsigned leastCompared) {
  Runner runner;
  std::vector<Case> cases = make(runner);
  for (unsigned size : subgroups)
    for (unsigned threads : blocks)
      for (unsigned tile : getTiles(threads))
        for (const Case &test : cases) {
          if (inLoop && (test.onLaneZero || test.result != test.type))
            continue;
          runner.compare(makeKernel(test, threads, tile, inLoop), test, threads,
                         llvm::cantFail(findTarget("interp", size)));
          if (::testing::Test::HasFailure())
            return;
        }
  EXPECT_GE(runner.numCompared, leastCompared) << runner.numRefused << " refused";
}

const unsigned wholeBlocks[] = {64, 128};
const unsigned oddBlocks[] = {1, 2, 3, 5, 12, 16, 31, 33, 48, 72, 80, 100};

TEST(ExpandCollectives, ReductionsOfAllKindsAndTypes) {
  sweep({8, 32, 64}, {64, 80}, [](Runner &r) { return makeReductions(r.context, types); }, false, 1000);
}

TEST(ExpandCollectives, ReductionsInAllShapes) {
  auto make = [](Runner &r) { return makeReductions(r.context, {"i32", "f32"}); };
  sweep(sizes, wholeBlocks, make, false, 500);
  sweep(sizes, oddBlocks, make, false, 500);
}

TEST(ExpandCollectives, MovesOfAllTypes) {
  sweep({8, 32}, {64}, [](Runner &) { return makeMoves(types); }, false, 500);
}

TEST(ExpandCollectives, MovesInAllShapes) {
  auto make = [](Runner &) { return makeMoves({"i32"}); };
  sweep(sizes, wholeBlocks, make, false, 500);
  sweep(sizes, oddBlocks, make, false, 500);
}

TEST(ExpandCollectives, VotesInAllShapes) {
  auto make = [](Runner &) { return makeVotes(); };
  sweep(sizes, wholeBlocks, make, false, 300);
  sweep(sizes, oddBlocks, make, false, 300);
}

TEST(ExpandCollectives, LoopsUseStagingAgain) {
  auto make = [](Runner &r) {
    std::vector<Case> cases = makeMoves({"i32", "i1"}), votes = makeVotes(), sums = makeReductions(r.context, {"i32"});
    cases.insert(cases.end(), votes.begin(), votes.end());
    cases.insert(cases.end(), sums.begin(), sums.end());
    return cases;
  };
  sweep({4, 8, 32}, {64, 96}, make, true, 500);
}

/// Many wide ops in a row share few arrays.
TEST(ExpandCollectives, RowsShareStaging) {
  auto make = [](Runner &) {
    std::string text = "%a = qd.subgroup.shuffle_down %v, 1 $t : i32\n";
    text += "%d = qd.subgroup.shuffle_up %a, 3 $t : i32\n";
    text += "%e = qd.subgroup.reduce_all add %d $t : i32\n";
    text += "%f = arith.addi %e, %d : i32\n";
    text += "%g = qd.subgroup.shuffle %f, %l $t : i32\n";
    text += "%h = qd.subgroup.reduce_all xori %g $t : i32\n";
    text += "%j = arith.addi %h, %g : i32\n";
    text += "%r = qd.subgroup.shuffle_down %j, 2 $t : i32\n";
    return std::vector<Case>{{text, "i32", "i32", Values::Any}};
  };
  sweep(sizes, {64, 128, 256}, make, false, 50);
  sweep(sizes, {64, 128, 256}, make, true, 50);
}

} // namespace

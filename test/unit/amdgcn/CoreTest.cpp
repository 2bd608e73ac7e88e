//===- CoreTest.cpp - the whole core language on every chip ------------------------===//
//
// Every op with every type that it takes compiles for every chip and wave size to a code object that holds its
// kernel, and the emitted text assembles to the same machine code. Compilation is in this process, so a backend
// that dies fails the test.
//
//===----------------------------------------------------------------------===//

#include "../CoreLanguage.h"
#include "Assembler.h"
#include "QirModule.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace qd::test {
namespace {

/// Moves whose result meets a scalar in every arithmetic op, with and without a carry.
void addMovesIntoArithmetic(Kernels &kernels) {
  for (const char *type : {"i16", "i32", "i64"}) {
    std::string move = formatv("%m = qd.subgroup.shuffle_xor %a, 1 : {0}\n", type).str();
    for (const char *op : {"addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrsi", "shrui", "minsi", "maxui"}) {
      kernels.add(type, type, formatv("{0}%r = arith.{1} %m, %b : {2}", move, op, type).str());
      kernels.add(type, type, formatv("{0}%r = arith.{1} %b, %m : {2}", move, op, type).str());
      for (const char *operand : {"%m", "%b"})
        for (const char *predicate : {"ult", "ugt"})
          kernels.add(type, type, formatv("{0}%s = arith.{1} %m, %b : {2}\n%c = arith.cmpi {3}, %s, {4} : {2}\n"
                                          "%r = arith.select %c, %s, %a : {2}",
                                          move, op, type, predicate, operand).str());
    }
    kernels.add(type, type, formatv("{0}%s = arith.subi %m, %b : {1}\n%c = arith.cmpi ult, %m, %b : {1}\n"
                                    "%r = arith.select %c, %s, %a : {1}", move, type).str());
    kernels.add(type, type, formatv("{0}%s, %c = arith.addui_extended %m, %b : {1}, i1\n"
                                    "%r = arith.select %c, %s, %a : {1}", move, type).str());
    if (StringRef(type) != "i64")
      for (const char *extend : {"extui", "extsi"})
        for (const char *op : {"addi", "subi"})
          kernels.add(type, "i64", formatv("{0}%w = arith.{1} %m : {2} to i64\n%v = arith.extui %b : {2} to i64\n"
                                           "%r = arith.{3} %w, %v : i64", move, extend, type, op).str());
  }
  for (const char *type : {"f16", "f32", "f64"})
    for (const char *op : {"addf", "subf", "mulf", "minnumf", "maximumf"})
      kernels.add(type, type, formatv("%m = qd.subgroup.shuffle_xor %a, 2 : {0}\n%r = arith.{1} %m, %b : {0}", type,
                                      op).str());
}

class Core : public testing::TestWithParam<Target> {
protected:
  void compile(const Kernels &kernels, unsigned optLevel = 2) {
    const Target &target = GetParam();
    QirModule module(kernels.text, target, optLevel);
    ASSERT_TRUE(module.lowered) << module.errors << kernels.text.substr(0, 4000);
    std::unique_ptr<llvm::Module> copy = CloneModule(*module.lowered), other = CloneModule(*module.lowered);
    Expected<std::string> assembly = emitAMDGCN(*other, target, AMDGCNOutput::Assembly, {optLevel});
    ASSERT_TRUE(bool(assembly)) << toString(assembly.takeError());
    std::string assembled = assemble(*assembly, target);
    ASSERT_EQ(assembled.substr(1, 3), "ELF") << assembled.substr(0, 3000);
    // The other wave size has the same encodings.
    if (target.subgroupSize != target.chip->defaultSubgroupSize)
      return;
    Expected<std::string> object = emitAMDGCN(*copy, target, AMDGCNOutput::HSACO, {optLevel});
    ASSERT_TRUE(bool(object)) << toString(object.takeError());
    EXPECT_TRUE(getText(assembled) == getText(*object));
  }
};

/// Where no lane reads another one wave size a chip is enough.
class CoreOfOneLane : public Core {};

TEST_P(CoreOfOneLane, Elementwise) {
  Kernels kernels;
  addElementwise(kernels);
  compile(kernels);
}

TEST_P(Core, MemoryAndControl) {
  Kernels kernels;
  addMemoryAndControl(kernels);
  addVotes(kernels, GetParam().subgroupSize);
  compile(kernels);
  compile(kernels, 0);
}

TEST_P(Core, Reductions) {
  Kernels kernels;
  addReductions(kernels);
  compile(kernels);
}

TEST_P(Core, Atomics) {
  Kernels kernels;
  addAtomics(kernels);
  compile(kernels);
}

TEST_P(Core, MovesIntoArithmetic) {
  Kernels kernels;
  addMovesIntoArithmetic(kernels);
  compile(kernels);
}

static std::vector<Target> getDefaultTargets() {
  std::vector<Target> targets = getTargets();
  llvm::erase_if(targets, [](const Target &t) { return t.subgroupSize != t.chip->defaultSubgroupSize; });
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Chips, CoreOfOneLane, testing::ValuesIn(getDefaultTargets()),
                         [](const auto &info) { return info.param.chip->name.str(); });

INSTANTIATE_TEST_SUITE_P(Chips, Core, testing::ValuesIn(getTargets()), [](const auto &info) {
  return info.param.chip->name.str() + "_" + std::to_string(info.param.subgroupSize);
});

} // namespace
} // namespace qd::test

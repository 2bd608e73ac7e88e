//===- CodeTest.cpp - what the code for common kernels consists of -----------------------------===//

#include "TestKernel.h"

using namespace qd;
using namespace qd::test;

static bool contains(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

TEST(Code, ContiguousAccessNeedsNoGather) {
  Module module(R"(
    qd.kernel @k(%n: i32, %a: f32, %x: !qd.buffer<f32> readonly, %y: !qd.buffer<f32>) block(256) {
      %zero = arith.constant 0.0 : f32
      %i = qd.global_thread_id x : i32
      %in = arith.cmpi slt, %i, %n : i32
      %u = qd.load %x[%i] if %in else %zero : !qd.buffer<f32>
      %big = arith.cmpf ogt, %u, %a : f32
      scf.if %big {
        %p = arith.mulf %a, %u : f32
        qd.store %p, %y[%i] if %in : !qd.buffer<f32>
      } else {
        %p = arith.subf %u, %a : f32
        qd.store %p, %y[%i] if %in : !qd.buffer<f32>
      }
      qd.return
    })");
  std::string text = module.emitText(16, CPUText::LLVM);
  EXPECT_TRUE(contains(text, "define void @kernel.k(")) << text;
  EXPECT_TRUE(contains(text, "llvm.masked.load")) << text;
  EXPECT_FALSE(contains(text, "gather") || contains(text, "scatter")) << text;
}

/// The row's number is uniform though it is computed from a thread's number.
TEST(Code, RowsOfASubgroupAreScalar) {
  Module module(R"(
    qd.kernel @k(%x: !qd.buffer<f32> readonly, %y: !qd.buffer<f32>) block(256) {
      %c32 = arith.constant 32 : i32
      %i = qd.global_thread_id x : i32
      %row = arith.divsi %i, %c32 : i32
      %v = qd.load %x[%i] : !qd.buffer<f32>
      %s = qd.subgroup.shuffle_xor %v, 16 : f32
      %t = arith.addf %v, %s : f32
      %lead = qd.subgroup.elect
      qd.store %t, %y[%row] if %lead : !qd.buffer<f32>
      qd.return
    })");
  std::string text = module.emitText(32, CPUText::LLVM);
  EXPECT_FALSE(contains(text, "gather") || contains(text, "scatter") || contains(text, "masked")) << text;
  EXPECT_FALSE(contains(text, "<32 x i32>") && contains(text, "div")) << text;
}

/// But where threads may differ on the way to a barrier.
TEST(Code, BarriersInCommonControlFlowNeedNoCoroutine) {
  const char *kernel = R"(
    qd.kernel @k(%x: !qd.buffer<i32>, %n: i32) block(256) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c8 = arith.constant 8 : i32
      %t = qd.shared.alloc : !qd.shared<256xi32>
      %i = qd.thread_index : i32
      %v = qd.load %x[%i] : !qd.buffer<i32>
      {loop}
      qd.store %v, %t[%i] : !qd.shared<256xi32>
      qd.block.sync
      %w = qd.load %t[0] : !qd.shared<256xi32>
      %s = arith.addi %v, %w : i32
      qd.store %s, %x[%i] : !qd.buffer<i32>
      {end}
      qd.return
    })";
  Module flat(fill(kernel, {{"loop", ""}, {"end", ""}}));
  EXPECT_FALSE(contains(flat.emitText(16, CPUText::LLVM), "k.subgroup.resume"));
  for (const char *bound : {"%c8", "%n"}) {
    Module nested(
        fill(kernel, {{"loop", std::string("scf.for %k = %c0 to ") + bound + " step %c1 : i32 {"}, {"end", "}"}}));
    EXPECT_FALSE(contains(nested.emitText(16, CPUText::LLVM), "k.subgroup.resume")) << bound;
  }
  Module doubtful(
      fill(kernel, {{"loop", "%d = qd.load %x[%i] : !qd.buffer<i32>\n scf.for %k = %c0 to %d step %c1 : i32 {"},
                    {"end", "}"}}));
  EXPECT_TRUE(contains(doubtful.emitText(16, CPUText::LLVM), "k.subgroup.resume"));
}

/// Each value is twice the one before: there are 2^length ways to the condition.
TEST(Code, LongConditionsInCommonNeedNoCoroutine) {
  for (unsigned length : {30, 60}) {
    std::string chain = "%v0 = qd.block_id x : i32\n";
    for (unsigned i = 0; i < length; ++i) {
      std::string from = "%v" + std::to_string(i);
      chain += "%v" + std::to_string(i + 1) + " = arith.addi " + from + ", " + from + " : i32\n";
    }
    Module module("qd.kernel @k(%x: !qd.buffer<i32>) block(256) {\n" + chain + "%p = arith.cmpi slt, %v" +
                  std::to_string(length) + R"(, %v0 : i32
      scf.if %p {
        qd.block.sync
      }
      qd.return
    })");
    EXPECT_FALSE(contains(module.emitText(16, CPUText::LLVM), "k.subgroup.resume")) << length;
  }
}

TEST(Code, PrintsAssembly) {
  Module module("qd.kernel @k(%x: !qd.buffer<f32>) block(64) {\n  qd.return\n}");
  EXPECT_TRUE(contains(module.emitText(32, CPUText::Assembly), "kernel.k:"));
}

/// A tree in shared memory, a barrier in each turn of a loop: all places are known, and nothing is left of the array.
TEST(Code, SharedArraysBecomeRegisters) {
  Module module(R"(
    qd.kernel @k(%x: !qd.buffer<f32> readonly, %o: !qd.buffer<f32>) block(256) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %steps = arith.constant 8 : i32
      %half = arith.constant 128 : i32
      %part = qd.shared.alloc : !qd.shared<256xf32>
      %t = qd.thread_index : i32
      %v = qd.load %x[%t] : !qd.buffer<f32>
      qd.store %v, %part[%t] : !qd.shared<256xf32>
      qd.block.sync
      scf.for %step = %zero to %steps step %one : i32 {
        %distance = arith.shrui %half, %step : i32
        %adds = arith.cmpi slt, %t, %distance : i32
        scf.if %adds {
          %other = arith.addi %t, %distance : i32
          %a = qd.load %part[%t] : !qd.shared<256xf32>
          %b = qd.load %part[%other] : !qd.shared<256xf32>
          %s = arith.addf %a, %b : f32
          qd.store %s, %part[%t] : !qd.shared<256xf32>
        }
        qd.block.sync
      }
      %lead = arith.cmpi eq, %t, %zero : i32
      scf.if %lead {
        %s = qd.load %part[0] : !qd.shared<256xf32>
        qd.store %s, %o[0] : !qd.buffer<f32>
      }
      qd.return
    })");
  for (unsigned lanes : {16u, 32u}) {
    std::string text = module.emitText(lanes, CPUText::LLVM);
    EXPECT_FALSE(contains(text, "alloca") || contains(text, "masked") || contains(text, "scatter")) << text;
  }
}

/// One worker runs a block: additions in shared memory are plain ones, of elements that are loaded one by one.
TEST(Code, SharedHistogramNeedsNoAtomicAddition) {
  Module module(R"(
    qd.kernel @k(%x: !qd.buffer<i32> readonly, %o: !qd.buffer<i32>) block(256) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %mask = arith.constant 255 : i32
      %counts = qd.shared.alloc : !qd.shared<256xi32>
      %t = qd.thread_index : i32
      qd.store %zero, %counts[%t] : !qd.shared<256xi32>
      qd.block.sync
      %v = qd.load %x[%t] : !qd.buffer<i32>
      %digit = arith.andi %v, %mask : i32
      %old = qd.atomic_rmw add %one, %counts[%digit] : !qd.shared<256xi32>
      qd.block.sync
      %count = qd.load %counts[%t] : !qd.shared<256xi32>
      qd.store %count, %o[%t] : !qd.buffer<i32>
      qd.return
    })");
  std::string text = module.emitText(32, CPUText::LLVM);
  EXPECT_FALSE(contains(text, "atomicrmw") || contains(text, "gather") || contains(text, "masked")) << text;
  EXPECT_FALSE(contains(text, "extractelement") || contains(text, "load volatile")) << text;
}

/// Lanes turn until the last one's bound: no lane's mask depends on the round before.
TEST(Code, CountedLoopsCompareWithTheirBounds) {
  Module module(R"(
    qd.kernel @k(%x: !qd.buffer<i32>, %o: !qd.buffer<i32>) block(64) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %t = qd.thread_index : i32
      %n = qd.load %x[%t] : !qd.buffer<i32>
      %r = scf.for %k = %zero to %n step %one iter_args(%s = %zero) -> i32 : i32 {
        %p = arith.muli %s, %s : i32
        %q = arith.addi %p, %k : i32
        scf.yield %q : i32
      }
      qd.store %r, %o[%t] : !qd.buffer<i32>
      qd.return
    })");
  std::string text = module.emitText(16, CPUText::LLVM);
  EXPECT_TRUE(contains(text, "vector.reduce.smax")) << text;
  EXPECT_FALSE(contains(text, "phi <16 x i1>")) << text;
}

/// Both arms write the same element: one store of what each lane has.
TEST(Code, ArmsShareTheirStore) {
  Module module(R"(
    qd.kernel @k(%x: !qd.buffer<f32> readonly, %o: !qd.buffer<f32>, %a: f32) block(64) {
      %t = qd.thread_index : i32
      %v = qd.load %x[%t] : !qd.buffer<f32>
      %is = arith.cmpf ogt, %v, %a : f32
      scf.if %is {
        %p = arith.mulf %v, %a : f32
        qd.store %p, %o[%t] : !qd.buffer<f32>
      } else {
        %p = arith.subf %v, %a : f32
        qd.store %p, %o[%t] : !qd.buffer<f32>
      }
      qd.return
    })");
  std::string text = module.emitText(16, CPUText::LLVM);
  EXPECT_FALSE(contains(text, "masked")) << text;
  EXPECT_TRUE(contains(text, "store <16 x float>")) << text;
}

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

TEST(Code, BarriersAtTheTopLevelNeedNoCoroutine) {
  const char *kernel = R"(
    qd.kernel @k(%x: !qd.buffer<i32>) block(256) {
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
  Module nested(fill(kernel, {{"loop", "scf.for %k = %c0 to %c8 step %c1 : i32 {"}, {"end", "}"}}));
  EXPECT_TRUE(contains(nested.emitText(16, CPUText::LLVM), "k.subgroup.resume"));
}

TEST(Code, PrintsAssembly) {
  Module module("qd.kernel @k(%x: !qd.buffer<f32>) block(64) {\n  qd.return\n}");
  EXPECT_TRUE(contains(module.emitText(32, CPUText::Assembly), "kernel.k:"));
}

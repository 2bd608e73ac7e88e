//===- AtomicTest.cpp - the table of atomic instructions against the backend -------===//
//
// What ir/Atomics.h says a chip has, LLVM selects as one instruction; what it says the chip lacks, LLVM makes a loop
// of. Fences and accesses for the device never become those for the whole system.
//
//===----------------------------------------------------------------------===//

#include "QirModule.h"

#include "ir/Atomics.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace qd::test {
namespace {

struct Row {
  const char *instruction; ///< of LLVM
  AtomicKind kind;
  bool isFloat;
};
constexpr Row rows[] = {
    {"add", AtomicKind::add, false},     {"sub", AtomicKind::sub, false},      {"min", AtomicKind::minsi, false},
    {"umin", AtomicKind::minui, false},  {"max", AtomicKind::maxsi, false},    {"umax", AtomicKind::maxui, false},
    {"and", AtomicKind::andi, false},    {"or", AtomicKind::ori, false},       {"xor", AtomicKind::xori, false},
    {"xchg", AtomicKind::exchange, false}, {"fadd", AtomicKind::add, true},    {"fmin", AtomicKind::minnumf, true},
    {"fmax", AtomicKind::maxnumf, true},
};

class Atomics : public testing::TestWithParam<Target> {};

TEST_P(Atomics, TableIsWhatTheBackendHas) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::Builder builder(&context);
  for (const Row &row : rows)
    for (unsigned width : {32u, 64u})
      for (bool isShared : {false, true})
        for (bool isUsed : {false, true}) {
          const char *type = row.isFloat ? (width == 32 ? "float" : "double") : (width == 32 ? "i32" : "i64");
          mlir::Type element = !row.isFloat    ? mlir::Type(builder.getIntegerType(width))
                               : width == 32 ? mlir::Type(builder.getF32Type())
                                             : mlir::Type(builder.getF64Type());
          std::string text = formatv(R"(
            define void @k(ptr addrspace({0}) %p, {1} %v, ptr addrspace(1) %q) {{
              %l = call i32 @llvm.amdgcn.workitem.id.x()
              %g = getelementptr {1}, ptr addrspace({0}) %p, i32 %l
              %o = atomicrmw {2} ptr addrspace({0}) %g, {1} %v syncscope("agent") monotonic, !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0, !amdgpu.ignore.denormal.mode !0
              {3}
              ret void
            }
            !0 = !{{}
          )",
                                     isShared ? 3 : 1, type, row.instruction,
                                     isUsed ? formatv("store {0} %o, ptr addrspace(1) %q", type).str() : "");
          std::string code = emit(text, GetParam(), AMDGCNOutput::Assembly);
          ASSERT_FALSE(StringRef(code).starts_with("error: ")) << code;
          bool isLoop = StringRef(code).contains("cmpsw") || StringRef(code).contains("cmpst");
          EXPECT_EQ(isNativeAtomic(row.kind, element, isShared, isUsed, GetParam()), !isLoop) << text << code;
        }
}

/// The same for what the ops are lowered to, with what they promise of the memory.
TEST_P(Atomics, OpsAreSingleInstructions) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::Builder builder(&context);
  std::string text;
  std::vector<bool> isNative;
  for (const Row &row : rows)
    for (unsigned width : {32u, 64u})
      for (bool isShared : {false, true})
        for (bool isUsed : {false, true}) {
          mlir::Type element = !row.isFloat  ? mlir::Type(builder.getIntegerType(width))
                               : width == 32 ? mlir::Type(builder.getF32Type())
                                             : mlir::Type(builder.getF64Type());
          std::string type = formatv("{0}{1}", row.isFloat ? "f" : "i", width);
          std::string memory = isShared ? "!qd.shared<64x" + type + ">" : "!qd.buffer<" + type + ">";
          text += formatv(R"(
qd.kernel @k{0}(%x: !qd.buffer<{1}>, %y: !qd.buffer<{1}>, %v: {1}) block(64) {{
  %i = qd.thread_id x : i32
  %s = qd.shared.alloc : !qd.shared<64x{1}>
  qd.store %v, %s[%i] : !qd.shared<64x{1}>
  %o = qd.atomic_rmw {2} %v, {3}[%i] : {4}
  %w = qd.load %s[%i] : !qd.shared<64x{1}>
  qd.store {5}, %y[%i] : !qd.buffer<{1}>
  qd.return
}
)",
                          isNative.size(), type, stringifyAtomicKind(row.kind), isShared ? "%s" : "%x", memory,
                          isUsed ? "%o" : "%w");
          isNative.push_back(isNativeAtomic(row.kind, element, isShared, isUsed, GetParam()));
        }
  QirModule module(text, GetParam());
  ASSERT_TRUE(module.lowered) << module.errors;
  Expected<std::string> code = emitAMDGCN(*module.lowered, GetParam(), AMDGCNOutput::Assembly, {});
  ASSERT_TRUE(bool(code)) << toString(code.takeError());
  for (size_t i = 0; i < isNative.size(); ++i) {
    StringRef body = StringRef(*code).split("\nk" + std::to_string(i) + ":").second.split(".Lfunc_end").first;
    ASSERT_FALSE(body.empty()) << i;
    bool isLoop = body.contains("cmpsw") || body.contains("cmpst");
    EXPECT_EQ(isNative[i], !isLoop) << i << body.str();
    EXPECT_TRUE(isLoop || body.contains("atomic") || body.contains("ds_")) << i << body.str();
  }
}

TEST_P(Atomics, DeviceScopeStaysOnTheDevice) {
  QirModule module(R"(
    qd.kernel @k(%x: !qd.buffer<i32>, %y: !qd.buffer<i64>, %v: i32, %w: i64) block(64) {
      %i = qd.thread_id x : i32
      %a = qd.atomic_rmw add %v, %x[%i] acq_rel : !qd.buffer<i32>
      %b = qd.atomic_rmw maxui %w, %y[%i] acq_rel : !qd.buffer<i64>
      %c, %d = qd.atomic_cas %v, %a, %x[0] acq_rel : !qd.buffer<i32>
      %e = qd.atomic_load %x[1] acquire : !qd.buffer<i32>
      qd.grid.mem_fence
      qd.atomic_store %e, %x[2] release : !qd.buffer<i32>
      qd.store %c, %x[%i] : !qd.buffer<i32>
      qd.store %b, %y[%i] : !qd.buffer<i64>
      qd.return
    })", GetParam());
  ASSERT_TRUE(module.lowered) << module.errors;
  Expected<std::string> code = emitAMDGCN(*module.lowered, GetParam(), AMDGCNOutput::Assembly, {});
  ASSERT_TRUE(bool(code)) << toString(code.takeError());
  // What the chips write for the whole system: of gfx90a, gfx942 and gfx950, and gfx12.
  for (const char *system : {"buffer_wbl2\n", "buffer_invl2", "sc0 sc1", "SCOPE_SYS"})
    EXPECT_FALSE(StringRef(*code).contains(system)) << system << *code;
}

INSTANTIATE_TEST_SUITE_P(Chips, Atomics, testing::ValuesIn(getTargets()), [](const auto &info) {
  return info.param.chip->name.str() + "_" + std::to_string(info.param.subgroupSize);
});

} // namespace
} // namespace qd::test

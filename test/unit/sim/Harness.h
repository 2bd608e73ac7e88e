//===----------------------------------------------------------------------===//
// Runs kernels that tests write as LLVM IR text. A body is put into a kernel
//   void @k(ptr addrspace(1) %out, ptr addrspace(1) %in)
// or stands as a whole module where it defines functions itself.
//===----------------------------------------------------------------------===//
#ifndef QD_TEST_UNIT_SIM_HARNESS_H
#define QD_TEST_UNIT_SIM_HARNESS_H

#include "codegen/sim/Sim.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <functional>
#include <numeric>

namespace qd::test {

inline bool isNVPTX(llvm::StringRef chip) { return chip.starts_with("sm_"); }

inline std::string moduleText(llvm::StringRef chip, llvm::StringRef text) {
  std::string head =
      isNVPTX(chip)
          ? "target datalayout = \"e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64\"\n"
            "target triple = \"nvptx64-nvidia-cuda\"\n"
          : "target datalayout = "
            "\"e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32"
            "-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:"
            "256-v512:512"
            "-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9\"\n"
            "target triple = \"amdgcn-amd-amdhsa\"\n";
  if (text.contains("define "))
    return head + text.str();
  return head + "define " + (isNVPTX(chip) ? "ptx_kernel" : "amdgpu_kernel") +
         " void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {\n" + text.str() + "\n}\n";
}

inline qd::SimOptions onChip(llvm::StringRef chip, unsigned wave = 0) {
  qd::SimOptions options;
  options.chip = chip.str();
  options.waveSize = wave;
  return options;
}

inline llvm::Expected<std::unique_ptr<qd::SimProgram>> load(const qd::SimOptions &options,
                                                            llvm::StringRef text) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  std::string full = moduleText(options.chip, text);
  auto module = llvm::parseAssemblyString(full, diagnostic, context);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (!module)
    diagnostic.print("test", stream);
  else
    llvm::verifyModule(*module, &stream);
  if (!problem.empty())
    return llvm::createStringError("bad test: " + problem);
  return qd::SimProgram::create(*module, options);
}

struct Shape {
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {32, 1, 1};
};

/// Runs @k on `out` and `in`; empty, or the error.
template <typename T, typename U>
std::string run(const qd::SimOptions &options, llvm::StringRef text, Shape shape, std::vector<T> &out,
                const std::vector<U> &in) {
  auto program = load(options, text);
  if (!program)
    return llvm::toString(program.takeError());
  llvm::Error error =
      (*program)->run("k", shape.grid, shape.block,
                      {qd::SimArg::buffer(out.data(), out.size() * sizeof(T)),
                       qd::SimArg::buffer(const_cast<U *>(in.data()), in.size() * sizeof(U))});
  return error ? llvm::toString(std::move(error)) : "";
}

/// Only loads; the error.
inline std::string loadError(const qd::SimOptions &options, llvm::StringRef text) {
  auto program = load(options, text);
  return program ? "" : llvm::toString(program.takeError());
}

inline std::vector<uint32_t> iota(unsigned count, uint32_t first = 0) {
  std::vector<uint32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// The body's frame: reads %v = in[tid], evaluates `text`, which defines %r,
/// stores out[tid] = %r.
inline std::string laneBody(llvm::StringRef chip, llvm::StringRef text) {
  std::string tid = isNVPTX(chip) ? "@llvm.nvvm.read.ptx.sreg.tid.x()" : "@llvm.amdgcn.workitem.id.x()";
  return "%tid = call i32 " + tid + "\n%t64 = zext i32 %tid to i64\n" +
         "%pin = getelementptr i32, ptr addrspace(1) %in, i64 %t64\n" +
         "%pout = getelementptr i32, ptr addrspace(1) %out, i64 %t64\n" +
         "%v = load i32, ptr addrspace(1) %pin\n" + text.str() +
         "\nstore i32 %r, ptr addrspace(1) %pout\nret void";
}

/// Where each lane's value comes from: runs `text` on v = 1000 + lane.
inline std::vector<int> sources(const qd::SimOptions &options, unsigned lanes, llvm::StringRef text) {
  std::vector<uint32_t> out(lanes, 77), in = iota(lanes, 1000);
  std::string error = run(options, laneBody(options.chip, text), {{1, 1, 1}, {lanes, 1, 1}}, out, in);
  EXPECT_EQ(error, "") << text.str();
  std::vector<int> from;
  for (uint32_t value : out)
    from.push_back(int(value) - 1000);
  return from;
}

inline std::vector<int> map(unsigned lanes, const std::function<int(int)> &f) {
  std::vector<int> result;
  for (unsigned l = 0; l < lanes; ++l)
    result.push_back(f(l));
  return result;
}

} // namespace qd::test

#endif

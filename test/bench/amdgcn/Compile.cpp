// Times compiles for AMD chips against LLVM's own part of them:  bench-amdgcn-compile TARGET [RUNS] FILE.qir...
// Ours is all from the text to the code object; LLVM's is its code generator on the optimised LLVM IR, as llc runs it,
// and the link by lld. Both in one process that has compiled before; medians, in milliseconds, at -O2.

#include "codegen/AMDGCN.h"
#include "codegen/AMDGCNCodeObject.h"
#include "compiler/Compilation.h"
#include "compiler/Pipeline.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace llvm;
using namespace qd;

static double measure(function_ref<bool()> work) {
  auto start = std::chrono::steady_clock::now();
  if (!work())
    std::exit(1);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

static double findMedian(std::vector<double> times) {
  llvm::sort(times);
  return times[times.size() / 2];
}

/// What llc and lld do with a module.
static bool emitPlain(llvm::Module &module, const qd::Target &target) {
  std::unique_ptr<TargetMachine> machine = cantFail(createAMDGCNMachine(target, 2));
  SmallString<0> object;
  raw_svector_ostream stream(object);
  legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile))
    return false;
  passes.run(module);
  return bool(linkAMDGCN(object));
}

int main(int argc, char **argv) {
  unsigned runs = 21;
  if (argc < 3 || (StringRef(argv[2]).getAsInteger(10, runs) ? argc < 3 : argc < 4)) {
    errs() << "usage: bench-amdgcn-compile TARGET [RUNS] FILE.qir...\n";
    return 2;
  }
  qd::Target target = cantFail(findTarget(argv[1], 0));
  CompileOptions options;
  options.targets = {argv[1]};
  options.cache = CachePolicy::Off;
  double sumOurs = 0, sumPlain = 0;
  for (int i = StringRef(argv[2]).getAsInteger(10, runs) ? 2 : 3; i < argc; ++i) {
    auto file = MemoryBuffer::getFile(argv[i]);
    if (!file)
      return 2;
    std::string text = (*file)->getBuffer().str();
    std::vector<double> ours, plain;
    for (unsigned run = 0; run < runs + 2; ++run) {
      double time = measure([&] { return compileInProcess(text, argv[i], options).ok; });
      Session session;
      mlir::ModuleOp module = session.parse(text, argv[i]);
      LLVMContext context;
      if (!module || failed(runPipeline(module, target, {})))
        return 1;
      std::unique_ptr<llvm::Module> lowered = lowerToLLVM(module, target, CodegenOptions{2}, context);
      double theirs = measure([&] { return emitPlain(*lowered, target); });
      if (run >= 2) {
        ours.push_back(time);
        plain.push_back(theirs);
      }
    }
    double a = findMedian(ours), b = findMedian(plain);
    sumOurs += a;
    sumPlain += b;
    outs() << formatv("{0,-40} {1,8:f2} {2,8:f2}  {3:f2}\n", StringRef(argv[i]).rsplit('/').second, a, b, a / b);
  }
  outs() << formatv("{0,-40} {1,8:f2} {2,8:f2}  {3:f2}\n", "all", sumOurs, sumPlain, sumOurs / sumPlain);
}

//===- Kernels.h - inputs of the interface's tests --------------------------------------------===//

#ifndef QD_TEST_UNIT_API_KERNELS_H
#define QD_TEST_UNIT_API_KERNELS_H

#include "compiler/Compiler.h"

/// Compiles for nvptx, amdgcn, spirv and the host devices alike.
inline constexpr const char *sumKernel = R"(
qd.kernel @sum(%x: !qd.buffer<f32> readonly, %y: !qd.buffer<f32>) block(64) {
  %i = qd.global_thread_id x : i32
  %v = qd.load %x[%i] : !qd.buffer<f32>
  %s = qd.subgroup.reduce_all add %v tile(4) : f32
  qd.store %s, %y[%i] : !qd.buffer<f32>
  qd.return
}
)";

inline qd::CompileResult compileFor(const char *target, const char *emit, const char *qir = sumKernel) {
  qd::CompileOptions options;
  if (*target)
    options.targets = {target};
  options.emit = emit;
  return qd::compile(qir, "test.qir", options);
}

#endif

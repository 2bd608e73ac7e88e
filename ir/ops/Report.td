//===- Report.td - what a kernel says while it runs ---------------------------===//
//
// `cpu`, `interp`, `cuda` and the simulator of NVIDIA's chips carry these ops out. On AMD's chips and on Vulkan they do
// nothing.
//
//===----------------------------------------------------------------------===//

#ifndef QD_OPS_REPORT_TD
#define QD_OPS_REPORT_TD

include "ir/Dialect.td"

def QD_PrintOp : QD_Op<"print", [AttrSizedOperandSegments]> {
  let summary = "each thread prints a line";
  let description = [{
    Each `{}` of the text stands for a value; `{{` and `}}` are single braces. Integers are printed signed and in
    decimals, an i1 as 0 or 1, floats with as many digits as tell neighbours apart: 9 for f32, 17 for f64, 5 for f16, 4
    for bf16. A vector is printed as its scalars in brackets, `[1, 2, 3]`. A line takes up to 32 scalars, as CUDA does.
    With `if %p` only those threads print for which it is true. Legal in divergent control flow.

    Lines go to the standard output and are whole. On `cpu` and `interp` they are printed when the launch ends, in order
    of the blocks; among the threads of a block, and on `cuda`, the order is open. CUDA drops lines where there are more
    than its buffer holds (1 MiB unless it is told otherwise). AMD's chips and Vulkan print nothing.

    ```mlir
    qd.print "x {} is {}", %i, %v if %p : i32, f32
    qd.print "row {}", %w : vector<4xf32>
    ```
  }];
  let arguments = (ins StrAttr:$format, Variadic<QD_Value>:$values, Optional<I1>:$predicate);
  let assemblyFormat = "$format (`,` $values^)? (`if` $predicate^)? attr-dict (`:` type($values)^)?";
  let hasVerifier = 1;
}

def QD_AssertOp : QD_Op<"assert"> {
  let summary = "ends the launch with an error where the condition is false";
  let description = [{
    The error has the message, the place in the text, the block and the thread; the interpreter also tells where the
    condition's value came from. What the launch had written by then is left open. Legal in divergent control flow.
    AMD's chips and Vulkan check nothing.

    ```mlir
    qd.assert %in_range, "row is out of range"
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict";
  let hasVerifier = 1;
}

#endif

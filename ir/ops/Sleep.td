//===- Sleep.td - a pause ------------------------------------------------------===//

#ifndef QD_OPS_SLEEP_TD
#define QD_OPS_SLEEP_TD

include "ir/Dialect.td"

def QD_SleepOp : QD_Op<"sleep"> {
  let summary = "lets other threads run for about that many nanoseconds";
  let description = [{
    For loops that wait for memory: it leaves the machine to those that are waited for. The time, an operand (read
    unsigned) or a literal, is a wish: chips sleep for none of it up to twice as long, and for a millisecond at most.
    It orders no memory. Legal in divergent control flow.

    ```mlir
    qd.sleep 100
    qd.sleep %n
    ```
  }];
  let arguments = (ins Optional<I32>:$duration, OptionalAttr<I32Attr>:$static_duration);
  let assemblyFormat = "custom<LaneOperand>($duration, $static_duration) attr-dict";
  let hasVerifier = 1;
}

#endif

//===- Bits.td - predicates and words -----------------------------------------===//

#ifndef QD_OPS_BITS_TD
#define QD_OPS_BITS_TD

include "ir/Dialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def QD_Word : AnyTypeOf<[I8, I16, I32, I64], "i8, i16, i32 or i64">;

def QD_PackBitsOp : QD_Op<"pack_bits", [Pure]> {
  let summary = "a word whose bits are the thread's predicates";
  let description = [{
    Bit i is the i-th predicate, counted from the lowest; bits beyond the last are zero. There are one to as many
    predicates as the word has bits. For one bit a lane see `subgroup.ballot`.

    ```mlir
    %w = qd.pack_bits %a, %b, %c : i32
    ```
  }];
  let arguments = (ins Variadic<I1>:$bits);
  let results = (outs QD_Word:$result);
  let assemblyFormat = "$bits attr-dict `:` type($result)";
  let hasVerifier = 1;
}

/// Form: %bits... = qd.unpack_bits %word : T
def QD_UnpackBitsOp : QD_Op<"unpack_bits", [Pure]> {
  let summary = "the lowest bits of a word as predicates";
  let description = [{
    The i-th result is bit i, counted from the lowest. There are as many results as are named, one to as many as the word
    has bits.

    ```mlir
    %a, %b, %c = qd.unpack_bits %w : i32
    ```
  }];
  let arguments = (ins QD_Word:$word);
  let results = (outs Variadic<I1>:$bits);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif

//===- Memory.td - buffers and shared arrays -------------------------------===//

#ifndef QD_OPS_MEMORY_TD
#define QD_OPS_MEMORY_TD

include "ir/Dialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def QD_SizeOp : QD_Op<"size", [Pure]> {
  let summary = "the number of elements of a buffer";
  let description = [{ Known at launch; the same for all threads. }];
  let arguments = (ins QD_BufferType:$buffer);
  let results = (outs QD_Int:$result);
  let assemblyFormat = "$buffer attr-dict `:` qualified(type($buffer)) `->` type($result)";
}

def QD_SharedAllocOp : QD_Op<"shared.alloc"> {
  let summary = "an array in the block's shared memory";
  let description = [{
    Stands at the top level of a kernel's body. The array is one for the whole block; its contents are
    undefined until they are written.
  }];
  let results = (outs QD_SharedType:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

def QD_LoadOp : QD_Op<"load", [AttrSizedOperandSegments]> {
  let summary = "reads one element of a buffer or shared array";
  let description = [{
    Subscripts are signed, of type i32 unless `: i64` follows them; integer literals may stand for constant
    subscripts. With `if %p else %d` no memory is touched where %p is false and the result is %d.

    ```mlir
    %v = qd.load %x[%i] if %in else %zero : !qd.buffer<f32>
    %w = qd.load %s[%row, 0] : !qd.shared<4x32xf32>
    ```
  }];
  let arguments = (ins QD_Array:$array, Variadic<QD_Int>:$indices, DenseI64ArrayAttr:$static_indices,
                       Optional<I1>:$predicate, Optional<QD_Scalar>:$otherwise);
  let results = (outs QD_Scalar:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$array, "::mlir::ValueRange":$indices)>];
}

def QD_StoreOp : QD_Op<"store", [AttrSizedOperandSegments]> {
  let summary = "writes one element of a buffer or shared array";
  let description = [{
    Subscripts as in `qd.load`. With `if %p` no memory is touched where %p is false.

    ```mlir
    qd.store %v, %y[%i] if %in : !qd.buffer<f32>
    ```
  }];
  let arguments = (ins QD_Scalar:$value, QD_Array:$array, Variadic<QD_Int>:$indices,
                       DenseI64ArrayAttr:$static_indices, Optional<I1>:$predicate);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$array,
                                 "::mlir::ValueRange":$indices)>];
}

#endif

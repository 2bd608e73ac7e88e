//===- View.td - parts of buffers, and buffers seen otherwise ------------------===//
//
// Views and reinterpretations give buffers that stand for a part of another one. They cost nothing at run time: each
// access of one is an access of the kernel's argument that it comes from. Which argument that is must show in the text:
// a buffer that `scf.if` or `arith.select` picks at run time is refused.
//
//===----------------------------------------------------------------------===//

#ifndef QD_OPS_VIEW_TD
#define QD_OPS_VIEW_TD

include "ir/Dialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Form: qd.view %b[SUBSCRIPTS], SIZES [strides(STRIDES)] : source type [to type]
def QD_ViewOp : QD_Op<"view", [Pure, AttrSizedOperandSegments]> {
  let summary = "a part of a buffer, as a buffer";
  let description = [{
    The result's first element is the source's at the subscripts; its extents are the sizes, which lie behind the
    subscripts and are of their type, or literals. The whole view must lie inside its source. Its bounds are its own, and
    `qd.size` gives its sizes. What an argument is declared to be (`readonly`, ...) holds for its views.

    A view has its source's dimensions, or, where `to` gives its type, fewer: those are the last ones, as in a row of a
    matrix. A source of one dimension can have views of several, row by row; `strides` sets the distance of neighbours
    by dimension then, in elements of the source, as in a matrix with padded rows, or a column of one.

    ```mlir
    %part = qd.view %x[%begin], %n : !qd.buffer<f32>
    %tile = qd.view %m[%row, %column], 16, 16 : !qd.buffer<?x?xf32>
    %line = qd.view %m[%row, 0], %columns : !qd.buffer<?x?xf32> to !qd.buffer<f32>
    %padded = qd.view %x[0], %rows, %columns strides(%pitch, 1) : !qd.buffer<f32> to !qd.buffer<?x?xf32>
    ```
  }];
  let arguments = (ins QD_BufferType:$source, Variadic<QD_Int>:$indices, Variadic<QD_Int>:$sizes,
                       Variadic<QD_Int>:$strides, DenseI64ArrayAttr:$static_indices, DenseI64ArrayAttr:$static_sizes,
                       DenseI64ArrayAttr:$static_strides);
  let results = (outs QD_BufferType:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def QD_ReinterpretOp : QD_Op<"reinterpret", [Pure]> {
  let summary = "a buffer's bytes as elements of another type";
  let description = [{
    The result begins at the same byte, and has as many elements as fit into the source's bytes; the source's elements
    stand side by side. The first byte must be aligned for the result's scalars. A source of several dimensions becomes
    one of a single dimension, row by row, also without a change of type.

    ```mlir
    %words = qd.reinterpret %bytes : !qd.buffer<i8> to !qd.buffer<i32>
    %quads = qd.reinterpret %x : !qd.buffer<f32> to !qd.buffer<vector<4xf32>>
    %flat = qd.reinterpret %m : !qd.buffer<?x?xf32> to !qd.buffer<f32>
    ```
  }];
  let arguments = (ins QD_BufferType:$source);
  let results = (outs QD_BufferType:$result);
  let assemblyFormat = "$source attr-dict `:` qualified(type($source)) `to` qualified(type($result))";
  let hasVerifier = 1;
}

#endif

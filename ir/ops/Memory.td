//===- Memory.td - buffers and shared arrays -------------------------------===//

#ifndef QD_OPS_MEMORY_TD
#define QD_OPS_MEMORY_TD

include "ir/Dialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def QD_SizeOp : QD_Op<"size", [Pure]> {
  let summary = "the number of elements of a buffer";
  let description = [{
    The same for all threads. With a number behind the buffer, the extent of that dimension, from 0: of a
    `!qd.buffer<?x?xf32>`, 0 gives the rows and 1 the columns.

    ```mlir
    %n = qd.size %x : !qd.buffer<f32> -> i64
    %columns = qd.size %m, 1 : !qd.buffer<?x?xf32> -> i32
    ```
  }];
  let arguments = (ins QD_BufferType:$buffer, OptionalAttr<I32Attr>:$dim);
  let results = (outs QD_Int:$result);
  let assemblyFormat = "$buffer (`,` $dim^)? attr-dict `:` qualified(type($buffer)) `->` type($result)";
  let hasVerifier = 1;
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

/// Form: %result = qd.load [volatile] %array[SUBSCRIPTS] [align(n)] [if %predicate else %otherwise] : array type [-> T]
def QD_LoadOp : QD_Op<"load", [AttrSizedOperandSegments]> {
  let summary = "reads one element of a buffer or shared array, or several";
  let description = [{
    Subscripts are signed, of type i32 unless `: i64` follows them; integer literals may stand for constant
    subscripts. A buffer of two dimensions takes two, and so on.

    From an array of scalars a vector of at most 16 bytes is read by giving its type: its scalars are the one at the
    subscripts and the next ones of the last dimension, which all must exist. An array of vectors is subscripted by
    vectors.

    `align(n)`, n a power of two up to 16, promises that the address is a multiple of n bytes. Without it only the
    alignment of a scalar is taken for granted, and what array and subscripts tell; with that of a whole vector, GPUs
    read it at once.

    With `if %p else %d` no memory is touched where %p is false and the result is %d.

    A `volatile` load is carried out as it stands: not left out, not merged with another, not moved out of a loop. It
    is no atomic access: it orders nothing, and races with writes.

    ```mlir
    %v = qd.load %x[%i] if %in else %zero : !qd.buffer<f32>
    %w = qd.load %s[%row, 0] : !qd.shared<4x32xf32>
    %u = qd.load volatile %x[%i] : !qd.buffer<f32>
    %four = qd.load %x[%i] align(16) : !qd.buffer<f32> -> vector<4xf32>
    %m = qd.load %matrix[%row, %column] : !qd.buffer<?x?xf32>
    ```
  }];
  let arguments = (ins QD_Array:$array, Variadic<QD_Int>:$indices, DenseI64ArrayAttr:$static_indices,
                       Optional<I1>:$predicate, Optional<QD_Value>:$otherwise, UnitAttr:$is_volatile,
                       OptionalAttr<I32Attr>:$align);
  let results = (outs QD_Value:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$array, "::mlir::ValueRange":$indices)>];
}

/// Form: qd.store [volatile] %value, %array[SUBSCRIPTS] [align(n)] [if %predicate] : [T ->] array type
def QD_StoreOp : QD_Op<"store", [AttrSizedOperandSegments]> {
  let summary = "writes one element of a buffer or shared array, or several";
  let description = [{
    Subscripts, vectors and `align` as in `qd.load`. With `if %p` no memory is touched where %p is false. A `volatile`
    store is carried out as it stands.

    ```mlir
    qd.store %v, %y[%i] if %in : !qd.buffer<f32>
    qd.store %four, %y[%i] align(16) : vector<4xf32> -> !qd.buffer<f32>
    ```
  }];
  let arguments = (ins QD_Value:$value, QD_Array:$array, Variadic<QD_Int>:$indices,
                       DenseI64ArrayAttr:$static_indices, Optional<I1>:$predicate, UnitAttr:$is_volatile,
                       OptionalAttr<I32Attr>:$align);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$array,
                                 "::mlir::ValueRange":$indices)>];
}

//===----------------------------------------------------------------------===//
// Atomic accesses
//===----------------------------------------------------------------------===//

defvar QD_OrderAndScope = (ins DefaultValuedAttr<QD_OrderAttr, "::qd::Order::relaxed">:$order,
                               OptionalAttr<QD_ScopeAttr>:$scope);

/// An access that other threads see whole. Subscripts are those of `qd.load`.
class QD_AtomicOp<string mnemonic, list<Trait> traits = []> : QD_Op<mnemonic, [AttrSizedOperandSegments] # traits> {
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The threads that the access is atomic for: as written, else the block for shared memory and the device for a
    /// buffer.
    ::qd::Scope getEffectiveScope() {
      if (getScope())
        return *getScope();
      return ::llvm::isa<::qd::SharedType>(getArray().getType()) ? ::qd::Scope::block : ::qd::Scope::device;
    }
  }];
}

/// Form: %result = qd.NAME KIND %value, %array[SUBSCRIPTS] [if %predicate] [ORDER] [scope(SCOPE)] : array type
def QD_AtomicRMWOp : QD_AtomicOp<"atomic_rmw"> {
  let summary = "changes one element in one step, and gives its old value";
  let description = [{
    The element becomes old KIND value: the kinds of reductions, `sub` (old - value) and `exchange` (value). An i1 can be
    exchanged and take `andi`, `ori` and `xori`. With `if %p` no memory is touched where %p is false, and the result is
    poison there.

    Orders, `relaxed` where none is given:
    - `relaxed` orders accesses of this element only;
    - `release` also makes what the thread wrote before it seen by whoever acquires what it wrote;
    - `acquire` also lets the thread see, after it, what was written before the release whose value it read;
    - `acq_rel` does both.

    `scope` names the threads for which that holds: `subgroup`, `block` (the default for shared arrays) or `device` (the
    default for buffers). Accesses of one element by threads outside each other's scope race.

    A target without an instruction for a kind and type compares and swaps in a loop.

    ```mlir
    %old = qd.atomic_rmw add %total, %count[0] if %lead : !qd.buffer<i32>
    %before = qd.atomic_rmw maxsi %v, %s[%i] acq_rel scope(block) : !qd.shared<64xi32>
    ```
  }];
  let arguments = !con((ins QD_AtomicKindAttr:$kind, QD_Scalar:$value, QD_Array:$array, Variadic<QD_Int>:$indices,
                            DenseI64ArrayAttr:$static_indices, Optional<I1>:$predicate), QD_OrderAndScope);
  let results = (outs QD_Scalar:$result);
}

/// Form: %old, %success = qd.NAME %expected, %desired, %array[SUBSCRIPTS] [if %predicate] [ORDER] [scope(SCOPE)]
///     : array type
def QD_AtomicCASOp : QD_AtomicOp<"atomic_cas"> {
  let summary = "replaces one element where it holds what is expected";
  let description = [{
    Compares bits: a NaN equals itself, and -0 is not +0. The results are the old value, and whether it was the expected
    one. Where it was not, memory keeps what it has, and the access still acquires. `if`, orders and scopes as in
    `qd.atomic_rmw`.

    ```mlir
    %old, %done = qd.atomic_cas %expected, %desired, %x[%i] acquire : !qd.buffer<f32>
    ```
  }];
  let arguments = !con((ins QD_Scalar:$expected, QD_Scalar:$desired, QD_Array:$array, Variadic<QD_Int>:$indices,
                            DenseI64ArrayAttr:$static_indices, Optional<I1>:$predicate), QD_OrderAndScope);
  let results = (outs QD_Scalar:$old, I1:$success);
}

/// Form: %result = qd.NAME %array[SUBSCRIPTS] [if %predicate else %otherwise] [ORDER] [scope(SCOPE)] : array type
def QD_AtomicLoadOp : QD_AtomicOp<"atomic_load"> {
  let summary = "reads one element that other threads change";
  let description = [{
    Never torn, left out or moved out of a loop. Orders are `relaxed` and `acquire`. With `if %p else %d` no memory is
    touched where %p is false and the result is %d.

    ```mlir
    %flag = qd.atomic_load %flags[%i] acquire : !qd.buffer<i32>
    ```
  }];
  let arguments = !con((ins QD_Array:$array, Variadic<QD_Int>:$indices, DenseI64ArrayAttr:$static_indices,
                            Optional<I1>:$predicate, Optional<QD_Scalar>:$otherwise), QD_OrderAndScope);
  let results = (outs QD_Scalar:$result);
}

/// Form: qd.NAME %value, %array[SUBSCRIPTS] [if %predicate] [ORDER] [scope(SCOPE)] : array type
def QD_AtomicStoreOp : QD_AtomicOp<"atomic_store"> {
  let summary = "writes one element that other threads read";
  let description = [{
    Never torn or left out. Orders are `relaxed` and `release`. With `if %p` no memory is touched where %p is false.

    ```mlir
    qd.atomic_store %ready, %flags[%i] release : !qd.buffer<i32>
    ```
  }];
  let arguments = !con((ins QD_Scalar:$value, QD_Array:$array, Variadic<QD_Int>:$indices,
                            DenseI64ArrayAttr:$static_indices, Optional<I1>:$predicate), QD_OrderAndScope);
}

#endif

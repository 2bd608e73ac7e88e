//===- Private.td - arrays of a thread, and tables ---------------------------===//

#ifndef QD_OPS_PRIVATE_TD
#define QD_OPS_PRIVATE_TD

include "ir/Dialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// A row-major array of scalars, of static shape.
class QD_StaticArrayType<string name, string typeMnemonic> : QD_Type<name, typeMnemonic> {
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Elements of all dimensions together.
    int64_t getNumElements() const;
  }];
}

def QD_PrivateType : QD_StaticArrayType<"Private", "private"> {
  let summary = "a thread's own array, of static shape";
  let description = [{
    `!qd.private<4x8xf32>` is a row-major array that one thread sees. Where its subscripts are constants it takes
    registers, else memory.
  }];
}

def QD_ConstantType : QD_StaticArrayType<"Constant", "constant"> {
  let summary = "a table that all threads read, of static shape";
  let description = [{ `!qd.constant<256xi32>` is a row-major array whose elements the file gives. }];
}

def QD_PrivateAllocOp : QD_Op<"private.alloc"> {
  let summary = "an array of the thread's own";
  let description = [{
    Its contents are undefined until they are written, each time the op is reached. A kernel's private arrays take at
    most 65536 bytes a thread.

    ```mlir
    %a = qd.private.alloc : !qd.private<8xf32>
    qd.store %v, %a[%i] : !qd.private<8xf32>
    ```
  }];
  let results = (outs QD_PrivateType:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}

def QD_ConstantOp : QD_Op<"constant", [Symbol]> {
  let summary = "a table of constants";
  let description = [{
    Stands beside the kernels and functions that read it by `constant.get`; at most 65536 bytes, and on SPIR-V 65532
    elements.

    ```mlir
    qd.constant @primes dense<[2, 3, 5, 7]> : tensor<4xi32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ElementsAttr:$value);
  let assemblyFormat = "$sym_name $value attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The type of the table as an array.
    ::qd::ConstantType getArrayType();
    /// The elements as they lie in memory, an i1 a byte.
    std::vector<uint8_t> getBytes();
  }];
}

def QD_ConstantGetOp : QD_Op<"constant.get", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a table as an array to load from";
  let description = [{
    The same for all threads. Its elements are read by `qd.load`, and written by nobody.

    ```mlir
    %t = qd.constant.get @primes : !qd.constant<4xi32>
    %p = qd.load %t[%i] : !qd.constant<4xi32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$table);
  let results = (outs QD_ConstantType:$result);
  let assemblyFormat = "$table attr-dict `:` qualified(type($result))";
  let extraClassDeclaration = [{
    /// The table; the verifier has seen it.
    ::qd::ConstantOp getConstant();
  }];
}

#endif

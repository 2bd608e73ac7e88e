//===- Dialect.td - the qd dialect: its types and enums -------------------===//
//
// Purpose: defines QIR's dialect, its types and the enumerations that ops share.
//
//===----------------------------------------------------------------------===//

#ifndef QD_DIALECT_TD
#define QD_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def QD_Dialect : Dialect {
  let name = "qd";
  let cppNamespace = "::qd";
  let summary = "GPU kernels with subgroup, block and grid operations as instructions";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class QD_Type<string name, string typeMnemonic> : TypeDef<QD_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def QD_BufferType : QD_Type<"Buffer", "buffer"> {
  let summary = "a kernel's global array, with its element count";
  let description = [{
    `!qd.buffer<f32>` is an array in device memory that a kernel receives as an argument. Its element count
    is known at run time (`qd.size`). `!qd.buffer<?x?xf32>` has 2 dimensions, row by row, and `!qd.buffer<?x?x?xf32>`
    has 3; their extents are known at run time too.

    An element is a scalar, or a vector of 2, 3, 4, 8 or 16 scalars and at most 16 bytes, `!qd.buffer<vector<4xf32>>`.
    Its scalars stand without gaps: a vector<3xf32> takes 12 bytes. A kernel's buffer of vectors of 2, 4, 8 or 16 bytes
    begins at a multiple of them.
  }];
  let parameters = (ins "::mlir::Type":$elementType, "unsigned":$rank);
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::Type":$elementType, CArg<"unsigned", "1">:$rank), [{
    return $_get(elementType.getContext(), elementType, rank);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def QD_SharedType : QD_Type<"Shared", "shared"> {
  let summary = "an array in a block's shared memory, of static shape";
  let description = [{
    `!qd.shared<16x16xf32>` is a row-major array that all threads of one block see. Its elements are those of
    buffers.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Elements of all dimensions together.
    int64_t getNumElements() const;
  }];
}

def QD_Scalar : Type<CPred<"::qd::isScalarType($_self)">, "i1, i8, i16, i32, i64, f16, bf16, f32 or f64">;
def QD_Value : Type<CPred<"::qd::isScalarType($_self) || ::qd::isVectorType($_self)">,
                    "a scalar, or a vector of 2, 3, 4, 8 or 16 scalars">;
def QD_Int : Type<CPred<"$_self.isSignlessInteger(32) || $_self.isSignlessInteger(64)">, "i32 or i64">;
def QD_Array : Type<CPred<"::qd::isArrayType($_self)">, "!qd.buffer, !qd.shared, !qd.private or !qd.constant">;

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

def QD_Dim : I32EnumAttr<"Dim", "a dimension of the grid or block", [
    I32EnumAttrCase<"x", 0>, I32EnumAttrCase<"y", 1>, I32EnumAttrCase<"z", 2>]> {
  let cppNamespace = "::qd";
  let genSpecializedAttr = 0;
}
def QD_DimAttr : EnumAttr<QD_Dialect, QD_Dim, "dim">;

// The kinds of reductions, scans and atomics. What each means on a type (its operation and identity) is one
// table: ir/Kind.cpp.
def QD_Kind : I32EnumAttr<"Kind", "an associative operation", [
    I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"mul", 1>,
    I32EnumAttrCase<"minsi", 2>, I32EnumAttrCase<"minui", 3>,
    I32EnumAttrCase<"maxsi", 4>, I32EnumAttrCase<"maxui", 5>,
    I32EnumAttrCase<"minnumf", 6>, I32EnumAttrCase<"maxnumf", 7>,
    I32EnumAttrCase<"minimumf", 8>, I32EnumAttrCase<"maximumf", 9>,
    I32EnumAttrCase<"andi", 10>, I32EnumAttrCase<"ori", 11>, I32EnumAttrCase<"xori", 12>]> {
  let cppNamespace = "::qd";
  let genSpecializedAttr = 0;
}
def QD_KindAttr : EnumAttr<QD_Dialect, QD_Kind, "kind">;

// What an atomic_rmw makes of the old value. The first are the kinds above, with their numbers.
def QD_AtomicKind : I32EnumAttr<"AtomicKind", "how an atomic access changes its element", [
    I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"mul", 1>,
    I32EnumAttrCase<"minsi", 2>, I32EnumAttrCase<"minui", 3>,
    I32EnumAttrCase<"maxsi", 4>, I32EnumAttrCase<"maxui", 5>,
    I32EnumAttrCase<"minnumf", 6>, I32EnumAttrCase<"maxnumf", 7>,
    I32EnumAttrCase<"minimumf", 8>, I32EnumAttrCase<"maximumf", 9>,
    I32EnumAttrCase<"andi", 10>, I32EnumAttrCase<"ori", 11>, I32EnumAttrCase<"xori", 12>,
    I32EnumAttrCase<"sub", 13>, I32EnumAttrCase<"exchange", 14>]> {
  let cppNamespace = "::qd";
  let genSpecializedAttr = 0;
}
def QD_AtomicKindAttr : EnumAttr<QD_Dialect, QD_AtomicKind, "atomic_kind">;

def QD_Scope : I32EnumAttr<"Scope", "the threads that something is the same for, or is seen by", [
    I32EnumAttrCase<"subgroup", 0>, I32EnumAttrCase<"block", 1>, I32EnumAttrCase<"device", 2>]> {
  let cppNamespace = "::qd";
  let genSpecializedAttr = 0;
}
def QD_ScopeAttr : EnumAttr<QD_Dialect, QD_Scope, "scope">;

def QD_Order : I32EnumAttr<"Order", "what an atomic access puts in order beside its own element", [
    I32EnumAttrCase<"relaxed", 0>, I32EnumAttrCase<"acquire", 1>,
    I32EnumAttrCase<"release", 2>, I32EnumAttrCase<"acq_rel", 3>]> {
  let cppNamespace = "::qd";
  let genSpecializedAttr = 0;
}
def QD_OrderAttr : EnumAttr<QD_Dialect, QD_Order, "order">;

//===----------------------------------------------------------------------===//
// Base classes and traits
//===----------------------------------------------------------------------===//

/// All lanes of the op's scope must reach it together.
def QD_Convergent : NativeOpTrait<"Convergent"> { let cppNamespace = "::qd"; }

/// Takes part by a mask of members, or tells who is here: may stand in divergent control flow. An op that can do both
/// may do so only with a `members` clause.
def QD_Members : NativeOpTrait<"Members"> { let cppNamespace = "::qd"; }

class QD_Op<string mnemonic, list<Trait> traits = []> : Op<QD_Dialect, mnemonic, traits>;

#endif

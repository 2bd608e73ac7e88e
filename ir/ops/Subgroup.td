//===- Subgroup.td - operations among the lanes of a subgroup --------------===//
//
// The scope of an op is the whole subgroup or, with `tile(n)`, each aligned tile of n lanes by itself.
// A lane is numbered from the start of its scope.
//
//===----------------------------------------------------------------------===//

#ifndef QD_OPS_SUBGROUP_TD
#define QD_OPS_SUBGROUP_TD

include "ir/Dialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// An optional `tile(n)` clause: n lanes, a power of two.
defvar QD_TileAttr = OptionalAttr<I32Attr>;

class QD_SubgroupOp<string mnemonic, list<Trait> traits = []> : QD_Op<"subgroup." # mnemonic, traits>;

/// An op that lanes carry out together. It touches no memory, but must not move into other control flow.
class QD_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : QD_SubgroupOp<mnemonic, [QD_Convergent, NoMemoryEffect] # traits>;

//===----------------------------------------------------------------------===//
// Identification
//===----------------------------------------------------------------------===//

def QD_LaneIdOp : QD_SubgroupOp<"lane_id", [Pure]> {
  let summary = "the thread's lane in its subgroup";
  let description = [{ From 0 to `size` - 1: the thread index modulo the subgroup's size. }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def QD_SubgroupSizeOp : QD_SubgroupOp<"size", [Pure]> {
  let summary = "the number of lanes of a subgroup";
  let description = [{ A constant once the target is known; also for a block's partial last subgroup. }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def QD_ElectOp : QD_SubgroupOp<"elect", [Pure]> {
  let summary = "true on lane 0 of the subgroup or tile";
  let description = [{ False on all other lanes. }];
  let arguments = (ins QD_TileAttr:$tile);
  let results = (outs I1:$result);
  let assemblyFormat = "(`tile` `(` $tile^ `)`)? attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

/// Moves `value` between lanes by a lane number, offset or mask that is an i32 value or a literal.
class QD_ShuffleLikeOp<string mnemonic> : QD_CollectiveOp<mnemonic, [AllTypesMatch<["value", "result"]>]> {
  let arguments = (ins QD_Scalar:$value, Optional<I32>:$lane, OptionalAttr<I32Attr>:$static_lane,
                       QD_TileAttr:$tile);
  let results = (outs QD_Scalar:$result);
  let assemblyFormat = [{
    $value `,` custom<LaneOperand>($lane, $static_lane) (`tile` `(` $tile^ `)`)? attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$lane, "std::optional<int32_t>":$tile)>,
    OpBuilder<(ins "::mlir::Value":$value, "int32_t":$lane, "std::optional<int32_t>":$tile)>];
  let extraClassDeclaration = [{
    /// The lane operand where it is a literal or a constant.
    std::optional<int32_t> getConstantLane();
  }];
}

/// As above, with edges: `poison_edge` drops the guarantee for lanes whose source lies past the edge.
class QD_ShuffleEdgeOp<string mnemonic> : QD_ShuffleLikeOp<mnemonic> {
  let arguments = (ins QD_Scalar:$value, Optional<I32>:$lane, OptionalAttr<I32Attr>:$static_lane,
                       QD_TileAttr:$tile, UnitAttr:$poison_edge);
  let assemblyFormat = [{
    $value `,` custom<LaneOperand>($lane, $static_lane) (`tile` `(` $tile^ `)`)?
    (`poison_edge` $poison_edge^)? attr-dict `:` type($value)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$lane, "std::optional<int32_t>":$tile,
                   CArg<"bool", "false">:$poisonEdge)>,
    OpBuilder<(ins "::mlir::Value":$value, "int32_t":$lane, "std::optional<int32_t>":$tile,
                   CArg<"bool", "false">:$poisonEdge)>];
}

def QD_ShuffleOp : QD_ShuffleLikeOp<"shuffle"> {
  let summary = "each lane reads the value of the lane that it names";
  let description = [{
    The lane number is taken modulo the tile's or subgroup's size, so it never leaves the tile. Reading a lane
    that a partial last subgroup lacks is poison.
  }];
}

def QD_ShuffleUpOp : QD_ShuffleEdgeOp<"shuffle_up"> {
  let summary = "each lane reads the value of the lane n below it";
  let description = [{
    Lanes below n keep their own value (with `poison_edge`: hold poison). n is not negative.
  }];
}

def QD_ShuffleDownOp : QD_ShuffleEdgeOp<"shuffle_down"> {
  let summary = "each lane reads the value of the lane n above it";
  let description = [{
    Lanes whose source would lie past the end of the tile keep their own value (with `poison_edge`: hold
    poison). n is not negative.
  }];
}

def QD_ShuffleXorOp : QD_ShuffleLikeOp<"shuffle_xor"> {
  let summary = "each lane reads the value of the lane whose number differs by an exclusive or";
  let description = [{
    The mask is below the tile's or subgroup's size: a constant one that is not is an error, a varying one is
    taken modulo that size.
  }];
}

def QD_BroadcastOp : QD_ShuffleLikeOp<"broadcast"> {
  let summary = "all lanes read the value of one lane";
  let description = [{
    The lane is taken modulo the tile's or subgroup's size. It may vary between lanes: then each lane reads
    the lane that it names, as in `shuffle`.
  }];
}

def QD_BroadcastFirstOp : QD_CollectiveOp<"broadcast_first", [AllTypesMatch<["value", "result"]>]> {
  let summary = "all lanes read the value of lane 0 of the subgroup or tile";
  let description = [{ The same as `broadcast %v, 0`. }];
  let arguments = (ins QD_Scalar:$value, QD_TileAttr:$tile);
  let results = (outs QD_Scalar:$result);
  let assemblyFormat = "$value (`tile` `(` $tile^ `)`)? attr-dict `:` type($value)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Votes
//===----------------------------------------------------------------------===//

def QD_BallotOp : QD_CollectiveOp<"ballot"> {
  let summary = "one bit a lane: whether its predicate holds";
  let description = [{
    Bit i of the result is lane i's predicate; bits of lanes that do not exist are zero.
  }];
  let arguments = (ins I1:$predicate);
  let results = (outs I64:$result);
  let assemblyFormat = "$predicate attr-dict `:` type($result)";
}

class QD_VoteOp<string mnemonic> : QD_CollectiveOp<mnemonic> {
  let arguments = (ins I1:$predicate, QD_TileAttr:$tile);
  let results = (outs I1:$result);
  let assemblyFormat = "$predicate (`tile` `(` $tile^ `)`)? attr-dict";
  let hasVerifier = 1;
}

def QD_AllOp : QD_VoteOp<"all"> {
  let summary = "whether the predicate holds on every lane";
  let description = [{ Given to every lane of the tile. Lanes that do not exist count as true. }];
}

def QD_AnyOp : QD_VoteOp<"any"> {
  let summary = "whether the predicate holds on some lane";
  let description = [{ Given to every lane of the tile. Lanes that do not exist count as false. }];
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

class QD_ReduceLikeOp<string mnemonic> : QD_CollectiveOp<mnemonic, [AllTypesMatch<["value", "result"]>]> {
  let arguments = (ins QD_KindAttr:$kind, QD_Scalar:$value, QD_TileAttr:$tile);
  let results = (outs QD_Scalar:$result);
  let assemblyFormat = "custom<Enum>($kind) $value (`tile` `(` $tile^ `)`)? attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def QD_ReduceOp : QD_ReduceLikeOp<"reduce"> {
  let summary = "combines the values of all lanes; lane 0 of the tile holds the result";
  let description = [{ The other lanes hold poison. Lanes that do not exist contribute nothing. }];
}

def QD_ReduceAllOp : QD_ReduceLikeOp<"reduce_all"> {
  let summary = "combines the values of all lanes; every lane holds the result";
  let description = [{ Lanes that do not exist contribute nothing. }];
}

#endif

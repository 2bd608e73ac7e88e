//===- Kernel.td - kernels and their terminators ---------------------------===//

#ifndef QD_OPS_KERNEL_TD
#define QD_OPS_KERNEL_TD

include "ir/Dialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def QD_KernelOp : QD_Op<"kernel", [
    IsolatedFromAbove, Symbol, SingleBlock,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a function that a grid of blocks runs";
  let description = [{
    `block(x, y, z)` is the block's size in threads, 1 to 1024 in all. Arguments are scalars and buffers;
    a buffer may be `readonly` or `writeonly`, `noalias` promises that no other argument overlaps it, and `align(n)`, n
    a power of two up to 256, that it begins at a multiple of n bytes, which a launch checks.
    Argument names are the kernel's interface: they are what a launch passes values by.

    ```mlir
    qd.kernel @copy(%x: !qd.buffer<f32> readonly, %y: !qd.buffer<f32>) block(256) {
      ...
      qd.return
    }
    ```

    Behind the block size may stand, in this order:

    - `resizable`: whoever compiles the kernel may give it another block size (`qdc -block=NAME=128`). The kernel then
      reads `block_dim` and works with any.
    - `min_blocks(n)`, 1 to 32: so many blocks should fit a multiprocessor at once.
    - `max_registers(n)`, 16 to 512: a thread should take no more.

    The last two are hints to those compilers that hand out registers: nvptx and amdgcn heed them, the others have
    nothing to do for them. A loop takes a hint as an attribute: `scf.for ... { ... } {qd.unroll = 4}` unrolls it
    so many times, `"full"` entirely, where the number of its rounds is constant, and 1 not at all.

    ```mlir
    qd.kernel @sum(%x: !qd.buffer<f32> readonly, %y: !qd.buffer<f32>) block(256) resizable min_blocks(4) {
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    StrArrayAttr:$arg_names,
    DenseI32ArrayAttr:$arg_access,
    DenseI32ArrayAttr:$block_size,
    UnitAttr:$resizable,
    OptionalAttr<I32Attr>:$min_blocks,
    OptionalAttr<I32Attr>:$max_registers,
    OptionalAttr<DenseI32ArrayAttr>:$arg_align);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Bits of an argument's entry in `arg_access`.
    enum Access : int32_t { ReadOnly = 1, WriteOnly = 2, NoAlias = 4 };

    unsigned getNumArgs() { return getArgNames().size(); }
    ::llvm::StringRef getArgName(unsigned i);
    int32_t getAccess(unsigned i) { return getArgAccess()[i]; }
    /// What a buffer argument's address is a multiple of: as declared, and by its elements.
    unsigned getAlignment(unsigned i);
    ::mlir::Block &getBodyBlock() { return getBody().front(); }
    ::mlir::BlockArgument getArg(unsigned i) { return getBodyBlock().getArgument(i); }

    /// Threads of the block along a dimension (0 to 2), and in all.
    int64_t getBlockDim(unsigned dim) {
      return dim < getBlockSize().size() ? getBlockSize()[dim] : 1;
    }
    int64_t getNumThreads() { return getBlockDim(0) * getBlockDim(1) * getBlockDim(2); }
  }];
}

def QD_ReturnOp : QD_Op<"return", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "ends a kernel";
  let description = [{ The last op of a kernel's body; it has no operands. }];
  let assemblyFormat = "attr-dict";
}

#endif

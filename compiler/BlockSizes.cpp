//===- BlockSizes.cpp - another block size for resizable kernels -----------------------------===//

#include "compiler/BlockSizes.h"

#include "ir/Dialect.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace qd {

/// "32x8" as extents; none where it is no size.
static SmallVector<int32_t> parseExtents(StringRef text) {
  SmallVector<int32_t> extents;
  for (StringRef word : llvm::split(text, 'x')) {
    uint32_t extent = 0;
    if (word.getAsInteger(10, extent) || extent < 1 || extent > INT32_MAX)
      return {};
    extents.push_back(int32_t(extent));
  }
  return extents;
}

static bool resize(Session &session, ModuleOp module, StringRef request, SmallVectorImpl<KernelOp> &resized) {
  auto [name, size] = request.split('=');
  SmallVector<int32_t> extents = parseExtents(size);
  if (name.empty() || extents.empty()) {
    session.error("block size '" + request + "' is not of the form NAME=X, NAME=XxY or NAME=XxYxZ, each from 1");
    return false;
  }
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    if (kernel.getSymName() != name)
      continue;
    if (llvm::is_contained(resized, kernel)) {
      session.error("kernel '" + name + "' is given two block sizes");
      return false;
    }
    resized.push_back(kernel);
    if (ArrayRef<int32_t>(extents) == kernel.getBlockSize())
      return true;
    if (!kernel.getResizable()) {
      kernel.emitOpError() << "has a block size of its own, found " << size << " asked for, expected 'resizable'";
      return false;
    }
    kernel.setBlockSize(extents);
    return true;
  }
  session.error("block size '" + request + "': the module has no kernel '" + name + "'");
  return false;
}

bool resizeBlocks(Session &session, ModuleOp module, StringRef sizes) {
  SmallVector<KernelOp> resized;
  for (StringRef request : llvm::split(sizes, ','))
    if (!request.empty() && !resize(session, module, request, resized))
      return false;
  // Some ops name threads of the block.
  return resized.empty() || succeeded(verify(module));
}

} // namespace qd

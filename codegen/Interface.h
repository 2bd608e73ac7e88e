//===- Interface.h - how a launch passes arguments to a kernel --------------------===//
//
// Purpose: lays a kernel's arguments out for each backend, in one place for codegen and for the description
// that a bundle carries.
// Input: a verified module. Output: one KernelInterface a kernel; the JSON text of `qdb.interface`.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_INTERFACE_H
#define QD_CODEGEN_INTERFACE_H

#include "ir/Dialect.h"
#include "ir/SharedStorage.h"
#include "ir/Targets.h"

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace qd {

struct ArgInterface {
  std::string name;
  mlir::Type type;            ///< the scalar, or the buffer's element
  bool isBuffer = false;
  unsigned rank = 1;          ///< buffer: its dimensions
  unsigned align = 1;         ///< buffer: what its address is a multiple of
  int32_t access = 0;         ///< KernelOp::Access bits
  bool passesSize = false;    ///< buffer: its extents (i64 each) are passed, because the kernel asks for one
  unsigned binding = 0;       ///< SPIR-V, buffer: descriptor binding in set 0
  unsigned offset = 0;        ///< SPIR-V: of the scalar or first extent in the parameter block, in bytes
};

/// NVPTX and AMDGCN take, for each argument in order, a scalar's value (i1 as a byte) or a buffer's address,
/// followed by its extents where `passesSize`. SPIR-V binds buffers to descriptors and puts scalars and counts in
/// one parameter block: push constants, or past their limit a storage buffer at `paramsBinding`. There scalars
/// of fewer than 32 bits are zero-extended, and 64-bit ones aligned to 8 bytes.
struct KernelInterface {
  std::string name;
  std::array<unsigned, 3> block;
  unsigned subgroupSize = 0;
  unsigned localSize = 0; ///< threads that a block is started with; SPIR-V: whole subgroups, in one dimension
  uint64_t sharedBytes = 0;
  unsigned dynamicSharedBytes = 0; ///< the part of it that the launch provides
  bool isResizable = false, isCooperative = false;
  std::vector<ArgInterface> args;
  unsigned paramsBytes = 0;
  bool paramsInBuffer = false;
  unsigned paramsBinding = 0;
  std::vector<std::string> features; ///< what the device must support: "int64", "subgroup_arithmetic", ...
};

/// Whether the kernel's blocks wait for each other, so that a launch has to run all of them at once.
bool isCooperative(KernelOp kernel);

/// Blocks that interp, cpu and sim run at once: a bound on memory.
constexpr unsigned maxCooperativeBlocks = 4096;

KernelInterface describeKernel(KernelOp kernel, const Target &target);

/// Diagnoses a kernel whose arguments take more bytes than a launch passes on `target`.
mlir::LogicalResult checkParameters(KernelOp kernel, const KernelInterface &interface, const Target &target);

/// The JSON text of all kernels of a module, the same bytes for the same input.
std::string printInterface(llvm::ArrayRef<KernelInterface> kernels);

} // namespace qd

#endif

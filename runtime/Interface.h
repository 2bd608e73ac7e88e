// The interface of a compiled module: what each kernel is called and how it is launched. It stands as JSON in
// a bundle's entries and comes from the compiler's host modules alike.
//
// parseInterface accepts any text; what it returns has passed all checks: names are unique, bindings and
// offsets are present where a Vulkan launch needs them (checked there), sizes are in range.
#ifndef QD_RUNTIME_INTERFACE_H
#define QD_RUNTIME_INTERFACE_H

#include "runtime/Types.h"

#include <array>

namespace qd::rt {

enum class Access : uint8_t { ReadOnly, WriteOnly, ReadWrite };
std::string_view accessName(Access access);

struct Parameter {
  enum class Kind : uint8_t { Scalar, Buffer };

  std::string name;
  Kind kind = Kind::Scalar;
  /// A scalar's type, or what a buffer's element is.
  ElementType type;

  // Buffers.
  Access access = Access::ReadWrite;
  bool noalias = false;
  /// Its dimensions, and what its address is a multiple of.
  unsigned rank = 1, align = 1;
  /// The kernel takes the extents, an i64 each, after the pointer.
  bool hasSize = false;
  std::optional<uint32_t> binding;
  /// Where the first extent lies in the block of parameters (Vulkan).
  std::optional<uint32_t> sizeOffset;

  // Scalars: where the value lies in the block of parameters (Vulkan).
  std::optional<uint32_t> offset;

  bool isBuffer() const { return kind == Kind::Buffer; }
  bool mayBeWritten() const { return isBuffer() && access != Access::ReadOnly; }
};

struct Kernel {
  std::string name;
  std::array<uint32_t, 3> block = {1, 1, 1};
  uint32_t subgroupSize = 0;
  uint32_t sharedBytes = 0;
  /// The part of the shared memory that the launch provides (CUDA, HIP); usually none.
  uint32_t dynamicSharedBytes = 0;
  /// All blocks must be resident at once.
  bool cooperative = false;
  /// The kernel may be compiled for another block size (DeviceOptions::blocks).
  bool resizable = false;
  std::vector<Parameter> parameters;

  // Vulkan.
  uint32_t paramsBytes = 0;
  /// The block of parameters is a storage buffer at this binding instead of push constants.
  std::optional<uint32_t> paramsBinding;
  /// The flattened workgroup, padded to whole subgroups.
  uint32_t localSize = 1;
  std::vector<std::string> features;

  uint32_t blockThreads() const { return block[0] * block[1] * block[2]; }
  const Parameter *find(std::string_view parameter) const;
};

struct Interface {
  std::vector<Kernel> kernels;
  /// The text that it was read from.
  std::string json;
  const Kernel *find(std::string_view kernel) const;
};

Expected<Interface> parseInterface(std::string_view json);

} // namespace qd::rt

#endif // QD_RUNTIME_INTERFACE_H

// The .qdb bundle: LLVM OffloadBinary blobs, one entry each, concatenated at 8-byte steps. One entry a
// variant (target and chip or subgroup size), and one with triple "qir" for the QIR they came from.
//
// Each entry carries a checksum of all its bytes. parseBundle accepts any bytes; every offset and size in what it
// returns lies inside them.
#ifndef QD_RUNTIME_BUNDLE_H
#define QD_RUNTIME_BUNDLE_H

#include "runtime/Interface.h"

#include <map>

namespace qd::rt {

enum class ImageKind : uint16_t {
  None = 0,
  Object = 1,
  Bitcode = 2,
  Cubin = 3,
  Fatbinary = 4,
  PTX = 5,
  SPIRV = 6
};

struct Variant {
  ImageKind kind = ImageKind::None;
  std::string triple;
  std::string arch;
  uint32_t subgroupSize = 0;
  Interface interface;
  std::vector<uint8_t> image;
};

struct Bundle {
  std::vector<Variant> variants;
  /// The QIR that the variants came from; empty when it was left out.
  std::vector<uint8_t> qir;
};

inline constexpr std::string_view nvptxTriple = "nvptx64-nvidia-cuda";
inline constexpr std::string_view amdgcnTriple = "amdgcn-amd-amdhsa";
inline constexpr std::string_view vulkanTriple = "spirv64-vulkan";
inline constexpr std::string_view qirTriple = "qir";

/// What "qdb.version" is in entries that this runtime reads.
inline constexpr std::string_view bundleVersion = "2";

/// Whether the bytes are meant as a bundle: they, or the few that there are, begin as one does, or the file is named
/// so.
bool isBundle(const uint8_t *bytes, size_t size, std::string_view name);

Expected<Bundle> parseBundle(const uint8_t *bytes, size_t size);

/// One entry's blob, for writers and tests; padded to a multiple of 8 bytes. The checksum is added unless it is given.
std::vector<uint8_t> formatEntry(ImageKind kind, const std::map<std::string, std::string> &strings,
                                 const std::vector<uint8_t> &image);

/// "sm_80 PTX, gfx942, spirv with subgroups of 8": what a bundle holds, for messages.
std::string describeVariants(const Bundle &bundle);

} // namespace qd::rt

#endif // QD_RUNTIME_BUNDLE_H

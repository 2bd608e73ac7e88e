//===- SPIRV.cpp - SPIR-V modules for Vulkan -----------------------------------------===//
//
// Purpose: emits one SPIR-V module for all kernels of a QIR module, validates and disassembles it.
// Input: a verified module after the expansions for the target. Output: the module's bytes, valid for the chip's
// Vulkan version; the bytes are the same for the same input.
//
//===----------------------------------------------------------------------===//

#include "codegen/Codegen.h"
#include "codegen/spirv/KernelLowering.h"
#include "ir/Place.h"

#include <cstring>
#include <spirv-tools/libspirv.h>

using namespace mlir;

namespace qd {

namespace {
/// A Vulkan version: the SPIR-V that its devices all take, and the rules to validate by.
struct Environment {
  llvm::StringLiteral chip;
  unsigned spirvMinor;
  spv_target_env validation;
};

constexpr Environment environments[] = {
    {"vulkan1.1", 3, SPV_ENV_VULKAN_1_1},
    {"vulkan1.2", 5, SPV_ENV_VULKAN_1_2},
    {"vulkan1.3", 6, SPV_ENV_VULKAN_1_3},
};

struct ContextDeleter {
  void operator()(spv_context context) const { spvContextDestroy(context); }
};
struct TextDeleter {
  void operator()(spv_text text) const { spvTextDestroy(text); }
};
struct DiagnosticDeleter {
  void operator()(spv_diagnostic diagnostic) const { spvDiagnosticDestroy(diagnostic); }
};
template <typename Handle, typename Deleter> using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Deleter>;
} // namespace

static std::vector<uint32_t> toWords(StringRef bytes) {
  std::vector<uint32_t> words(bytes.size() / sizeof(uint32_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(uint32_t));
  return words;
}

/// What is wrong with a module, or "" where it is valid.
static std::string validate(StringRef bytes, spv_target_env rules) {
  Owned<spv_context, ContextDeleter> context(spvContextCreate(rules));
  std::vector<uint32_t> words = toWords(bytes);
  spv_const_binary_t binary{words.data(), words.size()};
  spv_diagnostic message = nullptr;
  spv_result_t result = spvValidate(context.get(), &binary, &message);
  Owned<spv_diagnostic, DiagnosticDeleter> owner(message);
  if (result == SPV_SUCCESS)
    return "";
  return message ? message->error : "unknown error";
}

FailureOr<std::string> emitSPIRV(ModuleOp module, const Target &target, const CodegenOptions &options) {
  const Environment *environment =
      llvm::find_if(environments, [&](const Environment &row) { return row.chip == target.chip->name; });
  if (environment == std::end(environments))
    return module.emitError() << "no SPIR-V version is known for " << target.chip->name;

  spirv::Builder builder(environment->spirvMinor);
  FileLineColRange place = findPlace(module.getLoc());
  if (options.debug && place)
    builder.setSource(place.getFilename());
  bool hasFailed = false;
  for (Operation &op : module.getOps()) {
    if (auto kernel = dyn_cast<KernelOp>(op)) {
      hasFailed |= failed(spirv::KernelLowering(builder, kernel, target, options.debug).run());
    } else if (!isa<ConstantOp>(op)) {
      op.emitError() << "'" << op.getName() << "' is not supported on " << target.str();
      hasFailed = true;
    }
  }
  if (hasFailed)
    return failure();
  std::string bytes = builder.finish();
  if (std::string message = validate(bytes, environment->validation); !message.empty())
    return module.emitError() << "internal error: the SPIR-V made for " << target.str() << " is invalid: " << message;
  return bytes;
}

FailureOr<std::string> disassembleSPIRV(StringRef bytes) {
  Owned<spv_context, ContextDeleter> context(spvContextCreate(SPV_ENV_UNIVERSAL_1_6));
  std::vector<uint32_t> words = toWords(bytes);
  spv_text text = nullptr;
  spv_result_t result =
      spvBinaryToText(context.get(), words.data(), words.size(),
                      SPV_BINARY_TO_TEXT_OPTION_INDENT | SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES, &text, nullptr);
  Owned<spv_text, TextDeleter> owner(text);
  if (result != SPV_SUCCESS || !text)
    return failure();
  return std::string(text->str, text->length);
}

} // namespace qd

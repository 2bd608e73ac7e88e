// The reader of the interface's JSON. Every value is checked for its kind before it is taken (a mismatch
// would end the process, as the JSON library is built without exceptions). Unknown keys are skipped: a newer
// compiler may describe more, and raises the version where it must not be skipped.
#include "runtime/Interface.h"

#define JSON_NOEXCEPTION 1
#include <nlohmann/json.hpp>

#include <set>

namespace qd::rt {

namespace {

using Json = nlohmann::json;

constexpr uint64_t interfaceVersion = 1;
/// No compiler of ours makes larger ones; sums and products below cannot overflow.
constexpr uint64_t largestBytes = 1u << 30;

/// Reads an object's members; the first failure stays and every later read returns a default.
class Reader {
public:
  Reader(const Json &object, std::string where) : object(object), where(std::move(where)) {
    if (!object.is_object())
      note(text(this->where, " is not an object"));
  }

  const Json *member(const char *key, bool required) {
    if (error)
      return nullptr;
    auto found = object.find(key);
    if (found != object.end())
      return &*found;
    if (required)
      note(text(where, " lacks '", key, "'"));
    return nullptr;
  }

  std::string string(const char *key, bool required = true) {
    const Json *value = member(key, required);
    if (!value)
      return {};
    if (!value->is_string()) {
      note(text(where, ": '", key, "' is not a string"));
      return {};
    }
    return *value->get_ptr<const std::string *>();
  }

  bool boolean(const char *key) {
    const Json *value = member(key, false);
    if (!value)
      return false;
    if (!value->is_boolean()) {
      note(text(where, ": '", key, "' is neither true nor false"));
      return false;
    }
    return *value->get_ptr<const bool *>();
  }

  std::optional<uint32_t> number(const char *key, bool required, uint64_t most = largestBytes) {
    const Json *value = member(key, required);
    if (!value)
      return std::nullopt;
    if (!value->is_number_unsigned() || value->get<uint64_t>() > most) {
      note(text(where, ": '", key, "' is not an integer from 0 to ", most));
      return std::nullopt;
    }
    return static_cast<uint32_t>(value->get<uint64_t>());
  }

  const Json *list(const char *key, bool required) {
    const Json *value = member(key, required);
    if (value && !value->is_array()) {
      note(text(where, ": '", key, "' is not a list"));
      return nullptr;
    }
    return value;
  }

  void note(std::string sentence) {
    if (!error)
      error = Error::failure(std::move(sentence));
  }

  Error error;

private:
  const Json &object;
  std::string where;
};

Expected<Parameter> parseParameter(const Json &json, const std::string &where) {
  Reader reader(json, where);
  Parameter parameter;
  parameter.name = reader.string("name");
  std::string kind = reader.string("kind");
  std::string type = reader.string("type");
  if (reader.error)
    return reader.error;
  if (kind == "buffer")
    parameter.kind = Parameter::Kind::Buffer;
  else if (kind != "scalar")
    return fail(where, " has the unknown kind '", kind, "'");
  auto element = parseElementType(type);
  if (!element || (kind == "scalar" && element->lanes != 1))
    return fail(where, " has the unknown ", kind, " type '", type, "'");
  parameter.type = *element;

  if (parameter.isBuffer()) {
    std::string access = reader.string("access");
    if (access == "readonly")
      parameter.access = Access::ReadOnly;
    else if (access == "writeonly")
      parameter.access = Access::WriteOnly;
    else if (access != "readwrite" && !reader.error)
      return fail(where, " has the unknown access '", access, "'");
    parameter.noalias = reader.boolean("noalias");
    parameter.rank = reader.number("rank", false, 3).value_or(1);
    parameter.align = reader.number("align", false, 256).value_or(1);
    if (parameter.rank < 1 || parameter.align < 1 || (parameter.align & (parameter.align - 1)))
      return fail(where, " has a rank of ", parameter.rank, " and an alignment of ", parameter.align);
    parameter.hasSize = reader.boolean("size");
    parameter.binding = reader.number("binding", false);
    parameter.sizeOffset = reader.number("size_offset", false);
  } else {
    parameter.offset = reader.number("offset", false);
  }
  if (reader.error)
    return reader.error;
  return parameter;
}

Expected<Kernel> parseKernel(const Json &json, size_t index) {
  Reader reader(json, text("kernel ", index));
  Kernel kernel;
  kernel.name = reader.string("name");
  if (reader.error)
    return reader.error;
  std::string where = "kernel '" + kernel.name + "'";
  if (kernel.name.empty() || kernel.name.find('\0') != std::string::npos)
    return fail("kernel ", index, " has no usable name");

  if (const Json *block = reader.list("block", true)) {
    if (block->size() != 3)
      return fail(where, ": 'block' does not hold three extents");
    uint64_t threads = 1;
    for (size_t i = 0; i < 3; ++i) {
      const Json &extent = (*block)[i];
      if (!extent.is_number_unsigned() || extent.get<uint64_t>() < 1 || extent.get<uint64_t>() > 1024)
        return fail(where, ": 'block' has an extent outside 1 to 1024");
      kernel.block[i] = static_cast<uint32_t>(extent.get<uint64_t>());
      threads *= kernel.block[i];
    }
    if (threads > 1024)
      return fail(where, " has blocks of ", threads, " threads, at most 1024 are possible");
  }
  kernel.subgroupSize = reader.number("subgroup_size", false, 1024).value_or(0);
  kernel.sharedBytes = reader.number("shared_bytes", false).value_or(0);
  kernel.dynamicSharedBytes = reader.number("dynamic_shared_bytes", false).value_or(0);
  kernel.cooperative = reader.boolean("cooperative");
  kernel.resizable = reader.boolean("resizable");
  kernel.paramsBytes = reader.number("params_bytes", false, 1u << 16).value_or(0);
  std::string params = reader.string("params", false);
  if (params == "buffer")
    kernel.paramsBinding = reader.number("params_binding", true);
  else if (!params.empty() && params != "push")
    reader.note(text(where, " has the unknown parameter block '", params, "'"));
  kernel.localSize = reader.number("local_size", false, 4096).value_or(kernel.blockThreads());

  if (const Json *features = reader.list("features", false))
    for (const Json &feature : *features) {
      if (!feature.is_string())
        return fail(where, ": 'features' holds something other than names");
      kernel.features.push_back(*feature.get_ptr<const std::string *>());
    }

  std::set<std::string> names;
  if (const Json *args = reader.list("args", true))
    for (const Json &arg : *args) {
      auto parameter = parseParameter(arg, text("argument ", kernel.parameters.size(), " of ", where));
      if (!parameter)
        return parameter.error();
      if (!names.insert(parameter->name).second)
        return fail(where, " has two arguments '", parameter->name, "'");
      kernel.parameters.push_back(std::move(*parameter));
    }
  if (reader.error)
    return reader.error;
  if (kernel.localSize < 1)
    return fail(where, ": 'local_size' is 0");
  return kernel;
}

} // namespace

std::string_view accessName(Access access) {
  switch (access) {
  case Access::ReadOnly:
    return "readonly";
  case Access::WriteOnly:
    return "writeonly";
  case Access::ReadWrite:
    break;
  }
  return "readwrite";
}

const Parameter *Kernel::find(std::string_view parameter) const {
  for (const Parameter &candidate : parameters)
    if (candidate.name == parameter)
      return &candidate;
  return nullptr;
}

const Kernel *Interface::find(std::string_view kernel) const {
  for (const Kernel &candidate : kernels)
    if (candidate.name == kernel)
      return &candidate;
  return nullptr;
}

Expected<Interface> parseInterface(std::string_view text) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (json.is_discarded())
    return fail("the kernel interface is not valid JSON");
  Reader reader(json, "the kernel interface");
  auto version = reader.number("version", true, UINT32_MAX);
  if (version && *version != interfaceVersion)
    return fail("the kernel interface has version ", *version, ", this runtime reads version ",
                interfaceVersion);
  const Json *kernels = reader.list("kernels", true);
  if (reader.error)
    return reader.error;
  Interface result;
  result.json = text;
  for (const Json &entry : *kernels) {
    auto kernel = parseKernel(entry, result.kernels.size());
    if (!kernel)
      return kernel.error();
    if (result.find(kernel->name))
      return fail("the kernel interface has two kernels '", kernel->name, "'");
    result.kernels.push_back(std::move(*kernel));
  }
  return result;
}

} // namespace qd::rt

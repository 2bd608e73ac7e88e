// The bundle reader, free of LLVM. The container's layout is LLVM's OffloadBinary version 1: a header, an
// entry record, a table of string offsets, NUL-terminated strings and the image; offsets count from the
// blob's start. Fields are copied out, never mapped: a file need not be aligned.
#include "runtime/Bundle.h"

#include "runtime/Checksum.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace qd::rt {

namespace {

constexpr uint8_t magic[4] = {0x10, 0xFF, 0x10, 0xAD};
constexpr uint32_t containerVersion = 1;
constexpr const char *checksumKey = "qdb.checksum";
constexpr size_t checksumDigits = 16;
constexpr size_t alignment = 8;

struct Header {
  uint8_t magic[4];
  uint32_t version;
  uint64_t size;
  uint64_t entryOffset;
  uint64_t entrySize;
};

struct EntryRecord {
  uint16_t imageKind;
  uint16_t offloadKind;
  uint32_t flags;
  uint64_t stringOffset;
  uint64_t numStrings;
  uint64_t imageOffset;
  uint64_t imageSize;
};

struct StringRecord {
  uint64_t keyOffset;
  uint64_t valueOffset;
};

static_assert(sizeof(Header) == 32 && sizeof(EntryRecord) == 40 && sizeof(StringRecord) == 16,
              "the container's records have no padding");

struct Blob {
  const uint8_t *bytes;
  size_t size;

  /// Whether [offset, offset + length) lies inside.
  bool holds(uint64_t offset, uint64_t length) const { return offset <= size && length <= size - offset; }
  template <typename Record> Record read(uint64_t offset) const {
    Record record;
    std::memcpy(&record, bytes + offset, sizeof record);
    return record;
  }
  std::optional<std::string> string(uint64_t offset) const {
    if (offset >= size)
      return std::nullopt;
    const void *end = std::memchr(bytes + offset, 0, size - offset);
    if (!end)
      return std::nullopt;
    return std::string(reinterpret_cast<const char *>(bytes + offset));
  }
};

/// Of an entry whose checksum's digits stand from `at` on, as text: XXH64 of the XXH64 of what stands before the digits
/// and that of what stands behind them.
std::string formatChecksum(const Blob &blob, size_t at) {
  size_t behind = at + checksumDigits;
  const uint64_t parts[2] = {xxHash64(blob.bytes, at), xxHash64(blob.bytes + behind, blob.size - behind)};
  uint8_t bytes[sizeof parts];
  std::memcpy(bytes, parts, sizeof parts);
  char digits[checksumDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(xxHash64(bytes, sizeof bytes)));
  return digits;
}

using Strings = std::map<std::string, std::string>;

Error parseEntry(const Blob &blob, const Header &header, Bundle &bundle) {
  if (header.entrySize < sizeof(EntryRecord) || !blob.holds(header.entryOffset, header.entrySize))
    return fail("its entry record lies outside it");
  auto entry = blob.read<EntryRecord>(header.entryOffset);
  if (entry.numStrings > blob.size / sizeof(StringRecord) ||
      !blob.holds(entry.stringOffset, entry.numStrings * sizeof(StringRecord)))
    return fail("its string table lies outside it");
  if (!blob.holds(entry.imageOffset, entry.imageSize))
    return fail("its image lies outside it");

  Strings strings;
  uint64_t checksumOffset = 0;
  for (uint64_t i = 0; i < entry.numStrings; ++i) {
    auto record = blob.read<StringRecord>(entry.stringOffset + i * sizeof(StringRecord));
    auto key = blob.string(record.keyOffset);
    auto value = blob.string(record.valueOffset);
    if (!key || !value)
      return fail("string ", i, " lies outside it");
    if (*key == checksumKey)
      checksumOffset = record.valueOffset;
    if (!strings.emplace(*key, std::move(*value)).second)
      return fail("it has the key '", *key, "' twice");
  }
  const std::string triple = strings["triple"], &version = strings["qdb.version"], &checksum = strings[checksumKey];
  if (triple.empty())
    return fail("it names no 'triple'");
  if (version.empty())
    return fail("it names no 'qdb.version': this offload binary is not a qdc bundle");
  if (version != bundleVersion)
    return fail("it is of bundle version ", version, ", this runtime reads version ", bundleVersion);
  if (checksum.size() != checksumDigits)
    return fail("its '", checksumKey, "' is '", checksum, "', expected ", checksumDigits, " digits");
  if (std::string found = formatChecksum(blob, checksumOffset); found != checksum)
    return fail("it is damaged: its bytes have checksum ", found, ", expected ", checksum);
  if (entry.imageKind > static_cast<uint16_t>(ImageKind::SPIRV))
    return fail("its image kind ", entry.imageKind, " is unknown");

  std::vector<uint8_t> image(blob.bytes + entry.imageOffset,
                             blob.bytes + entry.imageOffset + entry.imageSize);
  if (triple == qirTriple) {
    if (!bundle.qir.empty())
      return fail("it is a second entry of QIR");
    bundle.qir = std::move(image);
    return Error::success();
  }

  Variant variant;
  variant.triple = triple;
  variant.kind = static_cast<ImageKind>(entry.imageKind);
  variant.arch = strings["arch"];
  variant.image = std::move(image);
  auto subgroup = parseScalar(ScalarType::I16, strings["subgroup_size"]);
  if (!subgroup || *subgroup > 1024)
    return fail("its 'subgroup_size' is '", strings["subgroup_size"], "', expected a number of lanes");
  variant.subgroupSize = static_cast<uint32_t>(*subgroup);
  auto found = strings.find("qdb.interface");
  if (found == strings.end())
    return fail("it has no 'qdb.interface'");
  auto interface = parseInterface(found->second);
  if (!interface)
    return interface.error();
  variant.interface = std::move(*interface);
  bundle.variants.push_back(std::move(variant));
  return Error::success();
}

/// "10 ff".
std::string formatBytes(const uint8_t *bytes, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, i ? " %02x" : "%02x", bytes[i]);
    result += digits;
  }
  return result;
}

} // namespace

bool isBundle(const uint8_t *bytes, size_t size, std::string_view name) {
  constexpr std::string_view ending = ".qdb";
  bool isNamedSo = name.size() > ending.size() && name.substr(name.size() - ending.size()) == ending;
  return isNamedSo || (size && std::memcmp(bytes, magic, std::min(size, sizeof magic)) == 0);
}

Expected<Bundle> parseBundle(const uint8_t *bytes, size_t size) {
  Bundle bundle;
  size_t offset = 0;
  for (size_t index = 0; offset < size || index == 0; ++index) {
    auto where = [&] { return text("bundle entry ", index, " at byte ", offset, ": "); };
    Blob rest{bytes + offset, size - offset};
    if (rest.size < sizeof(Header))
      return fail(where(), "it has ", rest.size, rest.size == 1 ? " byte" : " bytes", ", expected a header of ",
                  sizeof(Header), " bytes");
    if (std::memcmp(rest.bytes, magic, sizeof magic) != 0)
      return fail(where(), "it begins with the bytes ", formatBytes(rest.bytes, sizeof magic),
                  ", expected an offload binary's ", formatBytes(magic, sizeof magic));
    auto header = rest.read<Header>(0);
    if (header.version != containerVersion)
      return fail(where(), "it has container version ", header.version, ", expected ", containerVersion);
    if (header.size < sizeof(Header) || header.size > rest.size)
      return fail(where(), "it announces ", header.size, " bytes, ", rest.size, " are present");
    if (Error error = parseEntry({rest.bytes, static_cast<size_t>(header.size)}, header, bundle))
      return fail(where(), error.message());
    // Only the last blob's padding may be missing.
    size_t step = (static_cast<size_t>(header.size) + alignment - 1) / alignment * alignment;
    offset = step < rest.size ? offset + step : size;
  }
  return bundle;
}

std::vector<uint8_t> formatEntry(ImageKind kind, const std::map<std::string, std::string> &given,
                                 const std::vector<uint8_t> &image) {
  Strings strings = given;
  bool isChecked = strings.emplace(checksumKey, std::string(checksumDigits, '0')).second;
  Header header = {
      {magic[0], magic[1], magic[2], magic[3]}, containerVersion, 0, sizeof(Header), sizeof(EntryRecord)};
  EntryRecord entry = {};
  entry.imageKind = static_cast<uint16_t>(kind);
  entry.stringOffset = sizeof(Header) + sizeof(EntryRecord);
  entry.numStrings = strings.size();

  uint64_t end = entry.stringOffset + strings.size() * sizeof(StringRecord);
  std::vector<StringRecord> records;
  std::string pool;
  uint64_t checksumOffset = 0;
  auto place = [&](const std::string &string) {
    uint64_t offset = end + pool.size();
    pool.append(string.c_str(), string.size() + 1);
    return offset;
  };
  for (const auto &[key, value] : strings) {
    uint64_t keyOffset = place(key);
    records.push_back({keyOffset, place(value)});
    if (key == checksumKey)
      checksumOffset = records.back().valueOffset;
  }
  end += pool.size();
  entry.imageOffset = (end + alignment - 1) / alignment * alignment;
  entry.imageSize = image.size();
  header.size = (entry.imageOffset + image.size() + alignment - 1) / alignment * alignment;

  std::vector<uint8_t> bytes(header.size);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &entry, sizeof entry);
  std::memcpy(bytes.data() + entry.stringOffset, records.data(), records.size() * sizeof(StringRecord));
  std::memcpy(bytes.data() + end - pool.size(), pool.data(), pool.size());
  if (!image.empty())
    std::memcpy(bytes.data() + entry.imageOffset, image.data(), image.size());
  if (isChecked) {
    std::string checksum = formatChecksum({bytes.data(), bytes.size()}, checksumOffset);
    std::memcpy(bytes.data() + checksumOffset, checksum.data(), checksumDigits);
  }
  return bytes;
}

std::string describeVariants(const Bundle &bundle) {
  std::string result;
  for (const Variant &variant : bundle.variants) {
    result += result.empty() ? "" : ", ";
    if (variant.triple == vulkanTriple) {
      result += text("spirv with subgroups of ", variant.subgroupSize);
      continue;
    }
    result += variant.arch.empty() ? variant.triple : variant.arch;
    if (variant.kind == ImageKind::PTX)
      result += " PTX";
    else if (variant.kind == ImageKind::Cubin)
      result += " cubin";
  }
  if (!bundle.qir.empty())
    result += result.empty() ? "QIR" : ", QIR";
  return result.empty() ? "nothing" : result;
}

} // namespace qd::rt

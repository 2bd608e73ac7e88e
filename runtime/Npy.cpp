// The .npy reader and writer. The header is a Python dict literal with three keys; the small parser below
// reads just that form, so a hostile file meets an error at the first unexpected character.
#include "runtime/Npy.h"
#include "runtime/File.h"

#include <cstring>

namespace qd::rt {

namespace {

constexpr size_t magicBytes = 6;
constexpr uint8_t magic[magicBytes] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
/// NumPy aligns the data to this; a reader need not care.
constexpr size_t dataAlignment = 64;
/// Far above what NumPy writes (it stops at 64 dimensions).
constexpr size_t maxDimensions = 64;

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortranOrder;
  std::optional<std::vector<int64_t>> shape;
};

class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : rest(text) {}

  Expected<Header> parse() {
    Header header;
    if (!take('{'))
      return fail("its header is not a dict");
    while (!take('}')) {
      std::optional<std::string> key = string();
      if (!key || !take(':'))
        return fail("its header is malformed");
      if (*key == "descr") {
        header.descr = string();
        if (!header.descr)
          return fail("its dtype is structured or malformed, expected one scalar type");
      } else if (*key == "fortran_order") {
        header.fortranOrder = boolean();
        if (!header.fortranOrder)
          return fail("its header's 'fortran_order' is neither True nor False");
      } else if (*key == "shape") {
        header.shape = tuple();
        if (!header.shape)
          return fail("its header's 'shape' is malformed");
      } else {
        return fail("its header has the unknown key '", *key, "'");
      }
      if (!take(',') && !peek('}'))
        return fail("its header is malformed");
    }
    if (!header.descr || !header.fortranOrder || !header.shape)
      return fail("its header lacks one of 'descr', 'fortran_order' and 'shape'");
    return header;
  }

private:
  std::string_view rest;

  void skipSpace() {
    size_t at = rest.find_first_not_of(" \t\r\n");
    rest.remove_prefix(at == std::string_view::npos ? rest.size() : at);
  }
  bool peek(char c) {
    skipSpace();
    return !rest.empty() && rest[0] == c;
  }
  bool take(char c) {
    if (!peek(c))
      return false;
    rest.remove_prefix(1);
    return true;
  }
  std::optional<std::string> string() {
    char quote = peek('"') ? '"' : '\'';
    if (!take(quote))
      return std::nullopt;
    size_t end = rest.find(quote);
    if (end == std::string_view::npos)
      return std::nullopt;
    std::string result(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    return result;
  }
  std::optional<bool> boolean() {
    skipSpace();
    for (bool value : {true, false}) {
      std::string_view word = value ? "True" : "False";
      if (rest.substr(0, word.size()) == word) {
        rest.remove_prefix(word.size());
        return value;
      }
    }
    return std::nullopt;
  }
  std::optional<std::vector<int64_t>> tuple() {
    std::vector<int64_t> values;
    if (!take('('))
      return std::nullopt;
    while (!take(')')) {
      skipSpace();
      int64_t value = 0;
      size_t digits = 0;
      while (digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9') {
        if (__builtin_mul_overflow(value, int64_t(10), &value) ||
            __builtin_add_overflow(value, int64_t(rest[digits] - '0'), &value))
          return std::nullopt;
        ++digits;
      }
      if (!digits || values.size() == maxDimensions)
        return std::nullopt;
      rest.remove_prefix(digits);
      values.push_back(value);
      if (!take(',') && !peek(')'))
        return std::nullopt;
    }
    return values;
  }
};

struct Dtype {
  const char *code;
  ScalarType type;
  bool isUnsigned;
};

/// The first row of a type is how it is written.
constexpr Dtype dtypes[] = {
    {"b1", ScalarType::I1, false},   {"i1", ScalarType::I8, false},  {"i2", ScalarType::I16, false},
    {"i4", ScalarType::I32, false},  {"i8", ScalarType::I64, false}, {"u1", ScalarType::I8, true},
    {"u2", ScalarType::I16, true},   {"u4", ScalarType::I32, true},  {"u8", ScalarType::I64, true},
    {"f2", ScalarType::F16, false},  {"f4", ScalarType::F32, false}, {"f8", ScalarType::F64, false},
    {"V2", ScalarType::BF16, false},
};

Expected<Dtype> parseDtype(const std::string &descr) {
  for (const Dtype &dtype : dtypes) {
    if (descr.size() != 3 || descr.substr(1) != dtype.code)
      continue;
    bool oneByte = scalarBytes(dtype.type) == 1 || dtype.type == ScalarType::BF16;
    if (descr[0] == '<' || (oneByte && (descr[0] == '|' || descr[0] == '=')))
      return dtype;
    if (descr[0] == '>')
      return fail("its dtype '", descr, "' is big-endian, expected little-endian");
  }
  return fail("its dtype '", descr,
              "' is not supported, expected bool, int8 to int64, uint8 to uint64 or float16 to float64");
}

std::string descrOf(const Array &array) {
  if (array.type == ScalarType::BF16)
    return "<u2";
  for (const Dtype &dtype : dtypes)
    if (dtype.type == array.type && dtype.isUnsigned == array.isUnsigned)
      return (scalarBytes(array.type) == 1 ? "|" : "<") + std::string(dtype.code);
  return "|b1"; // an i1 has no unsigned form
}

} // namespace

Expected<Array> parseNpy(const uint8_t *bytes, size_t size) {
  if (size == 0)
    return fail("it is empty, expected a .npy file");
  if (std::memcmp(bytes, magic, std::min(size, magicBytes)) != 0)
    return fail("it is not a .npy file (no NumPy magic at its start)");
  if (size < magicBytes + 4)
    return fail("it is truncated inside its header, after ", size, " bytes");
  unsigned version = bytes[magicBytes];
  if (version < 1 || version > 3)
    return fail("it has .npy format version ", version, ", expected 1 to 3");
  size_t lengthBytes = version == 1 ? 2 : 4;
  size_t start = magicBytes + 2 + lengthBytes;
  if (size < start)
    return fail("it is truncated inside its header");
  size_t length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= size_t(bytes[magicBytes + 2 + i]) << (8 * i);
  if (length > size - start)
    return fail("it is truncated inside its header (", length, " bytes announced, ", size - start,
                " present)");

  auto header = HeaderParser({reinterpret_cast<const char *>(bytes) + start, length}).parse();
  if (!header)
    return header.error();
  auto dtype = parseDtype(*header->descr);
  if (!dtype)
    return dtype.error();
  if (*header->fortranOrder && header->shape->size() > 1)
    return fail("it is in Fortran order, expected C order (save numpy.ascontiguousarray of it)");

  // The size is checked before memory is taken for it: a header can announce anything.
  size_t present = size - start - length;
  size_t needed = scalarBytes(dtype->type);
  for (int64_t extent : *header->shape)
    if (__builtin_mul_overflow(needed, static_cast<size_t>(extent), &needed))
      return fail("its shape ", shapeText(*header->shape), " is too large");
  if (present != needed)
    return fail("it is ", present < needed ? "truncated" : "too long", ": shape ", shapeText(*header->shape),
                " of ", scalarName(dtype->type), " takes ", needed, " bytes, ", present,
                " follow the header");

  Array array;
  array.type = dtype->type;
  array.isUnsigned = dtype->isUnsigned;
  array.shape = std::move(*header->shape);
  array.data.assign(bytes + start + length, bytes + size);
  return array;
}

std::vector<uint8_t> formatNpy(const Array &array) {
  std::string header = "{'descr': '" + descrOf(array) + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < array.shape.size(); ++i)
    header += (i ? ", " : "") + std::to_string(array.shape[i]);
  header += array.shape.size() == 1 ? ",), }" : "), }";
  size_t start = magicBytes + 4;
  header.append(dataAlignment - 1 - (start + header.size()) % dataAlignment, ' ');
  header += '\n';

  std::vector<uint8_t> bytes(magic, magic + magicBytes);
  bytes.push_back(1);
  bytes.push_back(0);
  bytes.push_back(static_cast<uint8_t>(header.size()));
  bytes.push_back(static_cast<uint8_t>(header.size() >> 8));
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), array.data.begin(), array.data.end());
  return bytes;
}

Expected<Array> readNpy(const std::string &path) {
  auto bytes = readFile(path);
  if (!bytes)
    return bytes.error();
  auto array = parseNpy(bytes->data(), bytes->size());
  if (!array)
    return fail("cannot read '", path, "': ", array.message());
  return array;
}

Error writeNpy(const std::string &path, const Array &array) { return writeFile(path, formatNpy(array)); }

} // namespace qd::rt

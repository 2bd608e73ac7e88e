// Command-line values. Every malformed value, wrong type or size is an error that says what was found and
// what the kernel expects.
#include "tools/qdc-run/Values.h"
#include "runtime/Npy.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace qd::rt {

namespace {

/// More values than this are printed as a beginning and an end.
constexpr size_t printedWhole = 16, printedFirst = 8, printedLast = 3;

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::optional<std::vector<int64_t>> parseShape(const std::string &text) {
  std::vector<int64_t> shape;
  for (const std::string &part : split(text, 'x')) {
    int64_t extent = 0;
    auto result = std::from_chars(part.data(), part.data() + part.size(), extent);
    if (part.empty() || part[0] == '-' || result.ec != std::errc() || result.ptr != part.data() + part.size())
      return std::nullopt;
    shape.push_back(extent);
  }
  return shape;
}

const std::vector<std::string> generators = {"zeros", "ones", "iota", "full", "random"};

/// GENERATOR[:TYPE]:COUNT[:VALUE|:seed=N].
Expected<Array> generate(const std::string &what, ElementType type, const std::string &value) {
  std::vector<std::string> parts = split(value, ':');
  const std::string &name = parts[0];
  size_t next = 1;
  ElementType given = type;
  if (next < parts.size())
    if (auto parsed = parseElementType(parts[next])) {
      given = *parsed;
      ++next;
    }
  if (given != type && given != ElementType{type.scalar, 1})
    return fail(what, " is a buffer of ", elementName(type), ", '", value, "' makes ", elementName(given));
  if (next >= parts.size())
    return fail(what, ": '", value, "' lacks a count, expected ", name, ":", elementName(type), ":COUNT");
  auto shape = parseShape(parts[next]);
  if (!shape) {
    bool likeType = next == 1 && !parts[1].empty() && std::isalpha(static_cast<unsigned char>(parts[1][0]));
    return fail(what, ": '", parts[next], "' in '", value, "' is ",
                likeType ? "no type of ours (i1 i8 i16 i32 i64 f16 bf16 f32 f64)"
                         : "not a count or a shape like 64x64");
  }
  ++next;
  // A count of vectors makes their lanes the last dimension; a count of scalars is taken as it stands.
  if (given.lanes > 1)
    shape->push_back(given.lanes);

  uint64_t fill = 0, seed = 0;
  if (name == "ones")
    fill = isFloat(type.scalar) ? floatBits(type.scalar, 1) : 1;
  if (name == "full") {
    if (next >= parts.size())
      return fail(what, ": '", value, "' lacks its value, expected full:", elementName(type), ":COUNT:VALUE");
    auto bits = parseScalar(type.scalar, parts[next++]);
    if (!bits)
      return fail(what, ": ", bits.message());
    fill = *bits;
  } else if (name == "random" && next < parts.size() && parts[next].compare(0, 5, "seed=") == 0) {
    auto number = parseScalar(ScalarType::I64, parts[next++].substr(5));
    if (!number)
      return fail(what, ": the seed ", number.message());
    seed = *number;
  }
  if (next != parts.size())
    return fail(what, ": '", value, "' has '", parts[next], "' too much");

  auto array = makeArray(type.scalar, std::move(*shape));
  if (!array)
    return fail(what, ": ", array.message());
  if (name == "zeros")
    return array;
  for (size_t i = 0, e = array->numScalars(); i < e; ++i) {
    uint64_t bits = fill;
    if (name == "iota")
      bits = isFloat(type.scalar) ? floatBits(type.scalar, static_cast<double>(i))
                                  : i & (scalarBits(type.scalar) == 1 ? 1 : ~uint64_t(0));
    else if (name == "random")
      bits = randomBits(type.scalar, seed, i);
    array->setBits(i, bits);
  }
  return array;
}

Expected<Array> parseList(const std::string &what, ElementType type, const std::string &value) {
  std::vector<std::string> parts = split(value, ',');
  auto array = makeArray(type.scalar, {static_cast<int64_t>(parts.size())});
  if (!array)
    return array;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto bits = parseScalar(type.scalar, parts[i]);
    if (!bits)
      return fail(what, ": ", bits.message());
    array->setBits(i, *bits);
  }
  return array;
}

/// FILE.npy, or FILE.npy[FIRST:END] for a part of it.
Expected<Array> readFileOrPart(const std::string &name) {
  std::string file = fileOf("@" + name);
  if (file == name)
    return readNpy(name);
  size_t open = file.size();
  std::vector<std::string> ends = split(name.substr(open + 1, name.size() - open - 2), ':');
  auto first = ends.size() == 2 ? parseShape(ends[0]) : std::nullopt;
  auto end = ends.size() == 2 ? parseShape(ends[1]) : std::nullopt;
  if (!first || !end || first->size() != 1 || end->size() != 1)
    return fail("'", name.substr(open), "' is not of the form [FIRST:END]");
  auto whole = readNpy(file);
  if (!whole)
    return whole;
  auto count = static_cast<int64_t>(whole->numScalars());
  if (first->front() > end->front() || end->front() > count)
    return fail("'", name, "' is not within the file's ", count, " elements");
  auto at = [&](int64_t element) {
    return whole->data.begin() + element * static_cast<int64_t>(scalarBytes(whole->type));
  };
  Array part;
  part.type = whole->type;
  part.isUnsigned = whole->isUnsigned;
  part.shape = {end->front() - first->front()};
  part.data.assign(at(first->front()), at(end->front()));
  return part;
}

std::string subscript(const Array &array, size_t index) {
  std::string result;
  for (size_t i = array.shape.size(); i-- > 0;) {
    auto extent = static_cast<size_t>(array.shape[i]);
    result = std::to_string(index % extent) + (result.empty() ? "" : ",") + result;
    index /= extent;
  }
  return "[" + result + "]";
}

bool isNan(ScalarType type, uint64_t bits) { return isFloat(type) && std::isnan(floatValue(type, bits)); }

bool isZero(ScalarType type, uint64_t bits) { return isFloat(type) && floatValue(type, bits) == 0; }

bool equal(ScalarType type, uint64_t got, uint64_t want, const Expectation &how) {
  if (got == want || (isNan(type, got) && isNan(type, want)))
    return true;
  if (how.anyZero && isZero(type, got) && isZero(type, want))
    return true;
  std::optional<double> tolerance = how.tolerance;
  if (!tolerance)
    return false;
  if (!isFloat(type)) {
    double distance =
        std::fabs(static_cast<double>(signedValue(type, got)) - static_cast<double>(signedValue(type, want)));
    return distance <= *tolerance * std::max(1.0, std::fabs(static_cast<double>(signedValue(type, want))));
  }
  double a = floatValue(type, got), b = floatValue(type, want);
  if (std::isinf(a) || std::isinf(b))
    return a == b;
  return std::fabs(a - b) <= *tolerance * std::max(1.0, std::fabs(b));
}

} // namespace

uint64_t randomBits(ScalarType type, uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  z ^= z >> 31;
  if (!isFloat(type))
    return z >> (64 - scalarBits(type));
  int significand = type == ScalarType::F64   ? 53
                    : type == ScalarType::F32 ? 24
                    : type == ScalarType::F16 ? 11
                                              : 8;
  auto top = static_cast<double>(z >> (64 - significand));
  return floatBits(type, std::ldexp(top, 1 - significand) - 1);
}

Expected<Array> parseBufferValue(const std::string &what, ElementType type, const std::string &value) {
  if (value.empty())
    return fail(what, " has no value");
  std::string word = value.substr(0, value.find(':'));
  bool generated = std::find(generators.begin(), generators.end(), word) != generators.end();
  bool fromFile = value[0] == '@';
  if (!generated && !fromFile && value.find(':') != std::string::npos &&
      std::isalpha(static_cast<unsigned char>(value[0])))
    return fail(what, ": '", value, "' is made by nothing called '", word, "'", suggestion(word, generators));

  auto array = fromFile    ? readFileOrPart(value.substr(1))
               : generated ? generate(what, type, value)
                           : parseList(what, type, value);
  if (!array)
    return fromFile ? fail(what, ": ", array.message()) : array.error();
  // NumPy has no bfloat16: its bits travel as uint16.
  if (type.scalar == ScalarType::BF16 && array->type == ScalarType::I16 && array->isUnsigned) {
    array->type = ScalarType::BF16;
    array->isUnsigned = false;
  }
  if (array->type != type.scalar)
    return fail(what, " is a buffer of ", elementName(type), ", '", value.substr(1), "' holds ",
                scalarName(array->type));
  if (array->numScalars() % type.lanes)
    return fail(what, " is a buffer of ", elementName(type), ", ", array->numScalars(),
                " scalars are not a multiple of ", type.lanes);
  return array;
}

std::string fileOf(const std::string &value) {
  if (value.empty() || value[0] != '@')
    return "";
  size_t open = value.back() == ']' ? value.rfind('[') : std::string::npos;
  return value.substr(1, open == std::string::npos ? open : open - 1);
}

ExpectationText splitExpectation(const std::string &value) {
  ExpectationText text;
  text.array = value;
  auto drop = [&](std::string_view ending) {
    size_t size = text.array.size();
    if (size <= ending.size() || text.array.compare(size - ending.size(), ending.size(), ending) != 0)
      return false;
    text.array.resize(size - ending.size());
    return true;
  };
  text.anyZero = drop(":any-zero");
  constexpr std::string_view tolerance = ":tol=";
  if (size_t at = text.array.rfind(tolerance); at != std::string::npos) {
    text.tolerance = text.array.substr(at + tolerance.size());
    text.array.resize(at);
  }
  text.prefix = drop(",...");
  return text;
}

Expected<Expectation> parseExpectation(const std::string &name, ElementType type, const std::string &value) {
  ExpectationText text = splitExpectation(value);
  Expectation expectation;
  expectation.name = name;
  expectation.anyZero = text.anyZero;
  expectation.prefix = text.prefix;
  std::string what = "-expect " + name;
  if (text.tolerance) {
    auto bits = parseScalar(ScalarType::F64, *text.tolerance);
    double tolerance = bits ? floatValue(ScalarType::F64, *bits) : -1;
    if (!(tolerance >= 0))
      return fail(what, ": the tolerance '", *text.tolerance, "' is not a number from 0 up");
    expectation.tolerance = tolerance;
  }
  auto array = parseBufferValue(what, type, text.array);
  if (!array)
    return array.error();
  expectation.array = std::move(*array);
  return expectation;
}

Error compareArrays(const Expectation &expected, const Array &got) {
  size_t count = expected.array.numScalars();
  if (expected.prefix ? count > got.numScalars() : count != got.numScalars())
    return fail(expected.name, " has ", got.numScalars(), " values, ", count, " were expected");
  std::optional<size_t> first;
  size_t differing = 0;
  for (size_t i = 0; i < count; ++i) {
    if (equal(got.type, got.bits(i), expected.array.bits(i), expected))
      continue;
    ++differing;
    if (!first)
      first = i;
  }
  if (!first)
    return Error::success();
  return fail(expected.name, subscript(got, *first), " is ",
              formatScalar(got.type, got.bits(*first), got.isUnsigned), ", expected ",
              formatScalar(got.type, expected.array.bits(*first), got.isUnsigned), "; ", differing, " of ",
              count, " values differ");
}

std::string describeArray(const std::string &name, const Array &array, bool all) {
  std::string result = text(name, ": ", scalarName(array.type), "[", shapeText(array.shape), "] =");
  size_t count = array.numScalars();
  bool whole = all || count <= printedWhole;
  for (size_t i = 0; i < count; ++i) {
    result += i ? ", " : " ";
    if (!whole && i == printedFirst) {
      result += "..., ";
      i = count - printedLast;
    }
    result += formatScalar(array.type, array.bits(i), array.isUnsigned);
  }
  return result;
}

} // namespace qd::rt

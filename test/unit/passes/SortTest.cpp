//===- SortTest.cpp - sorts against the definition ------------------------------------------===//
//
// Purpose: sorts of every type, direction and shape, expanded and run, against a comparison sort that is written from
// the op's description; and what the expansions cost.
//
//===----------------------------------------------------------------------===//

#include "ExpandedKernel.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace qd;
using namespace qd::test;

namespace {

const char *const types[] = {"i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"};

bool isFloat(const std::string &type) { return type.find('f') != std::string::npos; }

const llvm::fltSemantics &getSemantics(const std::string &type) {
  return type == "f16"    ? llvm::APFloat::IEEEhalf()
         : type == "bf16" ? llvm::APFloat::BFloat()
         : type == "f32"  ? llvm::APFloat::IEEEsingle()
                          : llvm::APFloat::IEEEdouble();
}

/// Whether `a` comes before `b` in ascending order.
bool isLess(const std::string &type, bool isUnsigned, uint64_t a, uint64_t b) {
  unsigned bits = test::getBits(type);
  if (!isFloat(type))
    return isUnsigned ? a < b : llvm::SignExtend64(a, bits) < llvm::SignExtend64(b, bits);
  llvm::APFloat x(getSemantics(type), llvm::APInt(bits, a)), y(getSemantics(type), llvm::APInt(bits, b));
  auto getClass = [](const llvm::APFloat &value) { return !value.isNaN() ? 0 : value.isNegative() ? 2 : 1; };
  if (getClass(x) != getClass(y))
    return getClass(x) < getClass(y);
  if (getClass(x) == 1)
    return a < b;
  if (getClass(x) == 2)
    return a > b; // totalOrder: the larger the payload of a negative NaN, the smaller it is
  llvm::APFloat::cmpResult order = x.compare(y);
  return order == llvm::APFloat::cmpEqual ? x.isNegative() && !y.isNegative() : order == llvm::APFloat::cmpLessThan;
}

/// Random bits, the type's edges, and few distinct small ones.
Buffer makeBuffer(const std::string &type, unsigned count, std::mt19937_64 &random) {
  unsigned bits = test::getBits(type);
  uint64_t all = llvm::maskTrailingOnes<uint64_t>(bits), sign = uint64_t(1) << (bits - 1);
  std::vector<uint64_t> edges = {0, 1, all, sign, all ^ sign, sign | 1};
  if (isFloat(type)) {
    const llvm::fltSemantics &semantics = getSemantics(type);
    uint64_t infinity = llvm::APFloat::getInf(semantics).bitcastToAPInt().getZExtValue();
    uint64_t quiet = llvm::APFloat::getQNaN(semantics).bitcastToAPInt().getZExtValue();
    for (uint64_t edge : {infinity, infinity - 1, infinity + 1, quiet, quiet + 3, quiet + 4})
      edges.insert(edges.end(), {edge, edge | sign});
  }
  Buffer buffer{type, {}};
  for (unsigned n = 0; n < count; ++n) {
    uint64_t choice = random() % 3;
    buffer.elements.push_back(choice == 0   ? random() & all
                              : choice == 1 ? random() % 4 & all
                                            : edges[random() % edges.size()]);
  }
  return buffer;
}

struct Sort {
  std::string key, value; ///< types; no value: keys alone
  bool isDescending = false, isUnsignedKey = false, isUnsignedValue = false;

  std::string getOp(unsigned tile) const {
    std::string clause = tile ? llvm::formatv("tile({0})", tile).str() : "";
    std::string order = std::string(isDescending ? "descending " : "") + (isUnsignedKey ? "unsigned " : "");
    if (value.empty())
      return llvm::formatv("%r0 = qd.subgroup.bitonic_sort {0}%v0 {1} : {2}", order, clause, key);
    return llvm::formatv("%r0, %r1 = qd.subgroup.bitonic_sort_kv {0}%v0, {1}%v1 {2} : {3}, {4}", order,
                         isUnsignedValue ? "unsigned " : "", clause, key, value);
  }
  std::vector<std::pair<std::string, std::string>> getStores() const {
    if (value.empty())
      return {{"%r0", key}};
    return {{"%r0", key}, {"%r1", value}};
  }
  std::vector<std::string> getTypes() const {
    if (value.empty())
      return {key};
    return {key, value};
  }
};

/// Sorts each group of `lanes` elements; the last may be short.
std::vector<Buffer> sortByDefinition(const Sort &sort, const std::vector<Buffer> &inputs, unsigned lanes) {
  std::vector<Buffer> outputs = inputs;
  size_t count = inputs[0].elements.size();
  for (size_t start = 0; start < count; start += lanes) {
    std::vector<size_t> order;
    for (size_t n = start; n < std::min(count, start + lanes); ++n)
      order.push_back(n);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (sort.isDescending)
        std::swap(a, b);
      uint64_t x = inputs[0].elements[a], y = inputs[0].elements[b];
      if (x != y || sort.value.empty())
        return isLess(sort.key, sort.isUnsignedKey, x, y);
      return isLess(sort.value, sort.isUnsignedValue, inputs[1].elements[a], inputs[1].elements[b]);
    });
    for (size_t n = 0; n < order.size(); ++n)
      for (size_t b = 0; b < inputs.size(); ++b)
        outputs[b].elements[start + n] = inputs[b].elements[order[n]];
  }
  return outputs;
}

void check(const Sort &sort, unsigned threads, unsigned size, unsigned tile, Backend device = Backend::Interp) {
  std::mt19937_64 random(threads * 1000 + size * 10 + tile);
  std::vector<Buffer> inputs;
  for (const std::string &type : sort.getTypes())
    inputs.push_back(makeBuffer(type, threads, random));
  std::string text = makeKernel(threads, inputs, sort.getOp(tile), sort.getStores());
  std::string backend = device == Backend::CPU ? "cpu" : "interp";
  ExpandedKernel kernel(text, backend + "@" + std::to_string(size));
  ASSERT_TRUE(kernel.isLegal());
  EXPECT_EQ(kernel.isPlain(), tile <= size) << text;
  std::vector<Buffer> expected = sortByDefinition(sort, inputs, tile ? tile : size);
  std::vector<Buffer> found = kernel.run(inputs, sort.getTypes(), device);
  for (size_t b = 0; b < expected.size(); ++b)
    ASSERT_EQ(found[b].elements, expected[b].elements) << "output " << b << " at " << size << " lanes of\n" << text;
}

/// All directions and signs of a pair of types, of which the second may be "".
std::vector<Sort> getSorts(const std::string &key, const std::string &value) {
  std::vector<Sort> sorts;
  for (bool isDescending : {false, true})
    for (bool isUnsignedKey : {false, true})
      for (bool isUnsignedValue : {false, true})
        if ((!isUnsignedKey || !isFloat(key)) && (!isUnsignedValue || (!value.empty() && !isFloat(value))))
          sorts.push_back({key, value, isDescending, isUnsignedKey, isUnsignedValue});
  return sorts;
}

const unsigned sizes[] = {4, 8, 16, 32, 64};

} // namespace

class SortTypes : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(All, SortTypes, testing::ValuesIn(types),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(SortTypes, Keys) {
  for (const Sort &sort : getSorts(GetParam(), ""))
    for (unsigned size : sizes)
      for (unsigned tile = 0; tile <= 128; tile = tile ? 2 * tile : 1)
        check(sort, 128, size, tile);
}

TEST_P(SortTypes, Pairs) {
  for (const char *value : types)
    for (const Sort &sort : getSorts(GetParam(), value)) {
      check(sort, 64, 8, 0);
      check(sort, 64, 32, 0);
      check(sort, 64, 8, 32);
      check(sort, 44, 32, 0);
    }
}

TEST(Sort, OddBlocks) {
  for (const char *key : {"i1", "i8", "i32", "f64"})
    for (const char *value : {"", "i16", "i32", "i64"})
      for (bool isDescending : {false, true})
        for (unsigned size : sizes)
          for (unsigned threads : {1, 2, 3, 5, 7, 8, 12, 31, 33, 48, 63, 72, 100})
            check({key, value, isDescending}, threads, size, 0);
}

TEST(Sort, WideTiles) {
  for (unsigned size : {8, 32})
    for (unsigned tile : {256, 1024})
      for (const char *value : {"", "i32", "i64"})
        check({"f32", value}, 1024, size, tile);
  check({"i64", "f64", true}, 1024, 64, 512);
}

TEST(Sort, OnCpuDevice) {
  for (const char *key : {"i1", "i16", "bf16", "f32", "i64"})
    for (const char *value : {"", "i8", "i32", "f64"}) {
      check({key, value}, 64, 8, 0, Backend::CPU);
      check({key, value, true}, 64, 16, 32, Backend::CPU);
      check({key, value}, 45, 16, 0, Backend::CPU);
    }
}

/// log2(n) (log2(n) + 1) / 2 steps: each a shuffle a word, one comparison and one selection a word.
TEST(Sort, Costs) {
  struct Row {
    const char *key, *value;
    unsigned words, selects, compares;
  };
  const Row rows[] = {
      {"i32", "", 1, 1, 1},    {"f32", "", 1, 1, 1},    {"i8", "", 1, 1, 1},     {"bf16", "", 1, 1, 1},
      {"i64", "", 2, 1, 1},    {"f64", "", 2, 1, 1},    {"i16", "f16", 1, 1, 1}, {"i8", "i8", 1, 1, 1},
      {"i32", "i32", 2, 1, 1}, {"f32", "i32", 2, 1, 1}, {"f32", "f32", 2, 1, 1}, {"i8", "i32", 2, 1, 1},
      {"i32", "i16", 2, 1, 1}, {"i64", "i32", 3, 2, 3}, {"i32", "f64", 3, 2, 3}, {"f64", "i64", 4, 2, 3},
  };
  for (const Row &row : rows)
    for (unsigned size : sizes)
      for (unsigned tile = 2; tile <= size; tile *= 2) {
        Sort sort{row.key, row.value};
        std::vector<Buffer> inputs;
        for (const std::string &type : sort.getTypes())
          inputs.push_back({type, {}});
        std::string text = makeKernel(128, inputs, sort.getOp(tile), sort.getStores());
        ExpandedKernel kernel(text, "spirv:vulkan1.3@" + std::to_string(size));
        ASSERT_TRUE(kernel.isLegal());
        unsigned merges = llvm::Log2_32(tile), steps = merges * (merges + 1) / 2;
        EXPECT_TRUE(kernel.isPlain());
        EXPECT_EQ(kernel.countShuffles(), steps * row.words) << text;
        EXPECT_EQ(kernel.count("arith.select"), steps * row.selects) << text;
        // One predicate a bit of the lane number.
        EXPECT_EQ(kernel.count("arith.cmpi"), steps * row.compares + merges) << text;
        EXPECT_EQ(kernel.count("qd.subgroup.ballot") + kernel.count("qd.thread_index"), 1u);
      }
}

TEST(Sort, KeysOfOneBitAreCounted) {
  Sort sort{"i1", ""};
  for (unsigned tile : {0, 2, 32}) {
    ExpandedKernel kernel(makeKernel(64, {{"i1", {}}}, sort.getOp(tile), sort.getStores()), "nvptx:sm_90");
    EXPECT_EQ(kernel.countShuffles(), 0u);
    EXPECT_EQ(kernel.count("qd.subgroup.ballot"), 1u);
    EXPECT_TRUE(kernel.isPlain());
  }
}

/// Steps within the subgroup are shuffles: of the 55 steps of 1024 lanes, 15 cross subgroups of 32.
TEST(Sort, WideTilesExchangeThroughSharedMemory) {
  Sort sort{"i32", "i32"};
  ExpandedKernel kernel(makeKernel(1024, {{"i32", {}}, {"i32", {}}}, sort.getOp(1024), sort.getStores()),
                        "nvptx:sm_90");
  EXPECT_EQ(kernel.countShuffles(), 2 * 40u);
  EXPECT_EQ(kernel.count("qd.block.sync"), 15u);
  EXPECT_EQ(kernel.count("qd.shared.alloc"), 2u);
}

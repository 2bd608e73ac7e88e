//===- CombineTest.cpp - reductions and scans against the definition ------------------------===//
//
// Purpose: reductions, scans and their segmented forms, by kinds and by regions that keep the lanes' order, expanded
// and run, against folds that are written from the ops' descriptions; and what the expansions cost.
//
//===----------------------------------------------------------------------===//

#include "ExpandedKernel.h"

#include "ir/Kind.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"
#include "llvm/Support/FormatVariadic.h"
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <random>

using namespace qd;
using namespace qd::test;
using llvm::APFloat;
using llvm::APInt;
using llvm::StringRef;

namespace {

using Tuple = std::vector<uint64_t>;

/// Places in a region's text: $i is the tile and identity clause.
struct Operator {
  std::vector<std::string> types;
  std::string kind;   ///< or empty
  std::string region; ///< of %a0, %a1.. and %b0, %b1..; defines %r0, %r1.. or yields on its own
  std::function<Tuple(const Tuple &, const Tuple &)> combine;
  Tuple identity;
  bool signOfZeroIsOpen = false;
  std::function<uint64_t(unsigned operand, std::mt19937_64 &)> makeValue;
};

struct Form {
  const char *mnemonic;
  bool isSegmented, isExclusive;
  enum { LaneZero, EveryLane, UpToOwn } result;
};

const Form forms[] = {
    {"reduce", false, false, Form::LaneZero},
    {"reduce_all", false, false, Form::EveryLane},
    {"inclusive_scan", false, false, Form::UpToOwn},
    {"exclusive_scan", false, true, Form::UpToOwn},
    {"segmented_scan", true, false, Form::UpToOwn},
    {"segmented_scan exclusive", true, true, Form::UpToOwn},
    {"segmented_reduce_all", true, false, Form::EveryLane},
};

/// Results by lane; nothing where they are poison.
std::vector<std::optional<Tuple>> foldByDefinition(const Form &form, const Operator &oper,
                                                   const std::vector<Tuple> &values, const std::vector<bool> &heads,
                                                   unsigned lanes) {
  std::vector<std::optional<Tuple>> results(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    size_t groupStart = i / lanes * lanes, groupEnd = std::min(values.size(), groupStart + lanes);
    size_t start = i, end = i + 1;
    while (start > groupStart && !(form.isSegmented && heads[start]))
      --start;
    if (form.result == Form::EveryLane)
      while (end < groupEnd && !(form.isSegmented && heads[end]))
        ++end;
    if (form.result == Form::LaneZero) {
      if (i != groupStart)
        continue;
      end = groupEnd;
    }
    end -= form.isExclusive;
    std::optional<Tuple> folded;
    for (size_t k = start; k < end; ++k)
      folded = folded ? oper.combine(*folded, values[k]) : values[k];
    results[i] = folded ? *folded : oper.identity;
  }
  return results;
}

std::string join(unsigned count, StringRef prefix) {
  std::string text;
  for (unsigned n = 0; n < count; ++n)
    text += llvm::formatv("{0}{1}{2}", n ? ", " : "", prefix, n);
  return text;
}

std::string joinTypes(const std::vector<std::string> &types) {
  std::string text;
  for (const std::string &type : types)
    text += (text.empty() ? "" : ", ") + type;
  return text;
}

bool isFloat(const std::string &type) { return type.find('f') != std::string::npos; }

std::string getBody(const Form &form, const Operator &oper, unsigned tile, const std::string &headType) {
  unsigned count = oper.types.size();
  std::string clause = tile ? llvm::formatv(" tile({0})", tile).str() : "", text;
  bool hasIdentity = form.isExclusive && oper.kind.empty();
  if (hasIdentity) {
    for (unsigned n = 0; n < count; ++n) {
      // A float's identity in these tests is infinite or a small number.
      std::string value = isFloat(oper.types[n]) ? llvm::formatv("0x{0:X-}", oper.identity[n]).str()
                                                 : std::to_string(int64_t(oper.identity[n]));
      text += llvm::formatv("  %e{0} = arith.constant {1} : {2}\n", n, value, oper.types[n]);
    }
  }
  text += llvm::formatv("  {0} = qd.subgroup.{1} ", join(count, "%s"), form.mnemonic);
  text += oper.kind.empty() ? "(" + join(count, "%v") + ")" : oper.kind + " %v0";
  if (form.isSegmented)
    text += llvm::formatv(" head %v{0}", count);
  text += clause;
  if (hasIdentity)
    text += " identity(" + join(count, "%e") + ")";
  text += " : " + joinTypes(oper.types) + (form.isSegmented ? ", " + headType : "");
  if (oper.kind.empty())
    text += llvm::formatv(" combine ({0}), ({1}) {{\n{2}    qd.yield {3} : {4}\n  }", join(count, "%a"),
                          join(count, "%b"), oper.region, join(count, "%r"), joinTypes(oper.types));
  text += "\n  %lead = qd.subgroup.elect" + clause + "\n  %true = arith.constant true\n";
  for (unsigned n = 0; n < count; ++n)
    text += llvm::formatv("  %w{0} = arith.select %{1}, %s{0}, %v{0} : {2}\n", n,
                          form.result == Form::LaneZero ? "lead" : "true", oper.types[n]);
  return text;
}

const llvm::fltSemantics &getSemantics(const std::string &type) {
  return type == "f16"    ? APFloat::IEEEhalf()
         : type == "bf16" ? APFloat::BFloat()
         : type == "f32"  ? APFloat::IEEEsingle()
                          : APFloat::IEEEdouble();
}
APFloat toFloat(const std::string &type, uint64_t bits) {
  return APFloat(getSemantics(type), APInt(test::getBits(type), bits));
}
uint64_t toBits(const APFloat &value) { return value.bitcastToAPInt().getZExtValue(); }
uint64_t encode(const std::string &type, double number) {
  APFloat value(number);
  bool losesInfo;
  value.convert(getSemantics(type), APFloat::rmNearestTiesToEven, &losesInfo);
  return toBits(value);
}

/// Bits are the same, NaNs are NaNs and, where that is open, zeros are zeros.
bool isSame(const Operator &oper, unsigned operand, uint64_t found, uint64_t expected) {
  const std::string &type = oper.types[operand];
  if (found == expected || !isFloat(type))
    return found == expected;
  APFloat a = toFloat(type, found), b = toFloat(type, expected);
  return (a.isNaN() && b.isNaN()) || (oper.signOfZeroIsOpen && a.isZero() && b.isZero());
}

const char *const shuffleOps[] = {"qd.subgroup.shuffle", "qd.subgroup.shuffle_up", "qd.subgroup.shuffle_down",
                                  "qd.subgroup.shuffle_xor", "qd.subgroup.broadcast"};

unsigned countAll(const ExpandedKernel &kernel, llvm::ArrayRef<const char *> ops) {
  unsigned number = 0;
  for (const char *op : ops)
    number += kernel.count(op);
  return number;
}

struct Shape {
  unsigned threads, tile; ///< 0: the subgroup
};

std::unique_ptr<ExpandedKernel> compare(const Form &form, const Operator &oper, Shape shape, const std::string &target,
                       unsigned subgroupSize, Backend device = Backend::Interp) {
  std::mt19937_64 random(shape.threads * 1000 + subgroupSize * 10 + shape.tile);
  const char *headTypes[] = {"i1", "i8", "i32", "i64"};
  std::string headType = headTypes[(llvm::Log2_32(shape.tile + 1) + subgroupSize / 8) % 4];
  std::vector<Tuple> values(shape.threads);
  std::vector<Buffer> inputs;
  for (const std::string &type : oper.types)
    inputs.push_back({type, {}});
  // Few heads, so that segments span subgroups; sometimes many.
  unsigned rareness = random() % 3 ? 24 : 3;
  std::vector<bool> heads;
  Buffer headBuffer{headType, {}};
  for (unsigned i = 0; i < shape.threads; ++i) {
    for (unsigned n = 0; n < inputs.size(); ++n) {
      values[i].push_back(oper.makeValue(n, random));
      inputs[n].elements.push_back(values[i].back());
    }
    heads.push_back(random() % rareness == 0);
    headBuffer.elements.push_back(!heads.back()      ? 0
                                  : headType == "i1" ? 1
                                                     : uint64_t(1) << random() % test::getBits(headType));
  }
  if (form.isSegmented)
    inputs.push_back(headBuffer);
  std::vector<std::pair<std::string, std::string>> stores;
  for (unsigned n = 0; n < oper.types.size(); ++n)
    stores.push_back({"%w" + std::to_string(n), oper.types[n]});
  std::string text = makeKernel(shape.threads, inputs, getBody(form, oper, shape.tile, headType), stores);
  auto kernel = std::make_unique<ExpandedKernel>(text, target);
  if (!kernel->isLegal())
    return kernel;
  std::vector<Buffer> found = kernel->run(inputs, oper.types, device);
  auto expected = foldByDefinition(form, oper, values, heads, shape.tile ? shape.tile : subgroupSize);
  if (::testing::Test::HasFailure())
    return kernel;
  for (unsigned i = 0; i < shape.threads; ++i)
    for (unsigned n = 0; expected[i] && n < oper.types.size(); ++n)
      if (!isSame(oper, n, found[n].elements[i], (*expected[i])[n])) {
        ADD_FAILURE() << "thread " << i << " of " << target << ", operand " << n << ": found " << found[n].elements[i]
                      << ", expected " << (*expected[i])[n] << "\n"
                      << text;
        return kernel;
      }
  return kernel;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

uint64_t combineByKind(Kind kind, const std::string &type, uint64_t a, uint64_t b) {
  if (isFloat(type)) {
    APFloat x = toFloat(type, a), y = toFloat(type, b);
    switch (kind) {
    case Kind::add: return toBits(x + y);
    case Kind::mul: return toBits(x * y);
    case Kind::minnumf: return toBits(minnum(x, y));
    case Kind::maxnumf: return toBits(maxnum(x, y));
    case Kind::minimumf: return toBits(minimum(x, y));
    default: return toBits(maximum(x, y));
    }
  }
  APInt x(test::getBits(type), a), y(test::getBits(type), b);
  switch (kind) {
  case Kind::add: return (x + y).getZExtValue();
  case Kind::mul: return (x * y).getZExtValue();
  case Kind::minsi: return (x.slt(y) ? x : y).getZExtValue();
  case Kind::minui: return (x.ult(y) ? x : y).getZExtValue();
  case Kind::maxsi: return (x.sgt(y) ? x : y).getZExtValue();
  case Kind::maxui: return (x.ugt(y) ? x : y).getZExtValue();
  case Kind::andi: return a & b;
  case Kind::ori: return a | b;
  default: return a ^ b;
  }
}

uint64_t getIdentityOf(Kind kind, const std::string &type) {
  unsigned bits = test::getBits(type);
  uint64_t ones = llvm::maskTrailingOnes<uint64_t>(bits);
  if (isFloat(type))
    return encode(type, kind == Kind::add   ? 0
                        : kind == Kind::mul ? 1
                        : kind == Kind::minnumf || kind == Kind::minimumf ? INFINITY : -INFINITY);
  switch (kind) {
  case Kind::mul: return 1;
  case Kind::minsi: return ones >> 1;
  case Kind::maxsi: return uint64_t(1) << (bits - 1);
  case Kind::minui:
  case Kind::andi: return ones;
  default: return 0;
  }
}

/// Values on which the result does not depend on how lanes are grouped.
uint64_t makeKindValue(Kind kind, const std::string &type, std::mt19937_64 &random) {
  uint64_t mask = llvm::maskTrailingOnes<uint64_t>(test::getBits(type));
  if (!isFloat(type)) {
    // Equal high words, so that low ones decide.
    switch (random() % 4) {
    case 0: return (random() % 5 - 2) & mask;
    case 1: return random() & mask & ~uint64_t(0xffffffff);
    case 2: return (uint64_t(5) << 32 | (random() & 0xffffffff)) & mask;
    default: return random() & mask;
    }
  }
  if (kind == Kind::add)
    return encode(type, int(random() % 5) - 2);
  if (kind == Kind::mul)
    return encode(type, random() % 2 ? 1 : -1);
  uint64_t quiet = toBits(APFloat::getQNaN(getSemantics(type))), sign = uint64_t(1) << (test::getBits(type) - 1);
  switch (random() % 8) {
  case 0: return quiet | (random() % 2 ? sign : 0) | random() % 3;
  case 1: return encode(type, random() % 2 ? INFINITY : -INFINITY);
  case 2: return encode(type, random() % 2 ? 0.0 : -0.0);
  case 3: return random() % 2 ? 1 : sign | 1; // subnormal
  default: return encode(type, int(random() % 9) - 4);
  }
}

/// How many of the lanes hold a NaN: kinds differ most where all do, or one.
Operator makeKind(Kind kind, const std::string &type, unsigned nanPercent = 12) {
  Operator oper;
  oper.types = {type};
  oper.kind = stringifyKind(kind).str();
  oper.combine = [=](const Tuple &a, const Tuple &b) { return Tuple{combineByKind(kind, type, a[0], b[0])}; };
  oper.identity = {getIdentityOf(kind, type)};
  oper.signOfZeroIsOpen = kind == Kind::minnumf || kind == Kind::maxnumf || kind == Kind::add;
  oper.makeValue = [=](unsigned, std::mt19937_64 &random) {
    bool isExtreme = isFloat(type) && kind != Kind::add && kind != Kind::mul;
    if (isExtreme && random() % 100 < nanPercent)
      return toBits(APFloat::getQNaN(getSemantics(type)));
    uint64_t value = makeKindValue(kind, type, random);
    return isExtreme && nanPercent == 0 && toFloat(type, value).isNaN() ? encode(type, -0.0) : value;
  };
  return oper;
}

uint32_t low(uint64_t value) { return uint32_t(value); }

/// x -> a x + b, one after the other.
Operator makeAffine() {
  Operator oper;
  oper.types = {"i32", "i32"};
  oper.region = "    %r0 = arith.muli %b0, %a0 : i32\n    %t = arith.muli %b0, %a1 : i32\n"
                "    %r1 = arith.addi %t, %b1 : i32\n";
  oper.combine = [](const Tuple &a, const Tuple &b) {
    return Tuple{low(b[0] * a[0]), low(b[0] * a[1] + b[1])};
  };
  oper.identity = {1, 0};
  oper.makeValue = [](unsigned, std::mt19937_64 &random) -> uint64_t { return low(random() | 1); };
  return oper;
}

/// The lowest lane wins: where a region branches and looks at a value from around it.
Operator makeFirstNot(const std::string &type) {
  Operator oper;
  oper.types = {type};
  oper.region = llvm::formatv("    %q = arith.constant 7 : {0}\n    %is = arith.cmpi ne, %a0, %q : {0}\n"
                              "    %r0 = scf.if %is -> {0} {{\n      scf.yield %a0 : {0}\n    } else {{\n"
                              "      scf.yield %b0 : {0}\n    }\n",
                              type);
  oper.combine = [](const Tuple &a, const Tuple &b) { return a[0] != 7 ? a : b; };
  oper.identity = {7};
  oper.makeValue = [](unsigned, std::mt19937_64 &random) -> uint64_t { return random() % 3 ? 7 : random() % 100; };
  return oper;
}

/// The least number and where it stands first; an identity that is none, which must come out of nowhere else.
Operator makeArgMin() {
  Operator oper;
  oper.types = {"f64", "i16"};
  oper.region = "    %less = arith.cmpf olt, %b0, %a0 : f64\n    %r0 = arith.select %less, %b0, %a0 : f64\n"
                "    %r1 = arith.select %less, %b1, %a1 : i16\n";
  oper.combine = [](const Tuple &a, const Tuple &b) {
    return toFloat("f64", b[0]) < toFloat("f64", a[0]) ? b : a;
  };
  oper.identity = {encode("f64", -1000), 77};
  oper.makeValue = [](unsigned operand, std::mt19937_64 &random) {
    return operand == 0 ? encode("f64", int(random() % 9)) : random() & 0xffff;
  };
  return oper;
}

/// Four operands of three types, each by the lower lane's or both.
Operator makeMany() {
  Operator oper;
  oper.types = {"i32", "i8", "i32", "i1"};
  oper.region = "    %r0 = arith.addi %a0, %b0 : i32\n    %r1 = arith.select %true, %b1, %a1 : i8\n"
                "    %r2 = arith.select %true, %a2, %b2 : i32\n    %r3 = arith.xori %a3, %b3 : i1\n";
  oper.region = "    %true2 = arith.constant true\n" + oper.region;
  for (size_t at = 0; (at = oper.region.find("%true,", at)) != std::string::npos; at += 7)
    oper.region.replace(at, 6, "%true2,");
  oper.combine = [](const Tuple &a, const Tuple &b) {
    return Tuple{low(a[0] + b[0]), b[1], a[2], a[3] ^ b[3]};
  };
  oper.identity = {0, 5, 6, 0};
  oper.makeValue = [](unsigned operand, std::mt19937_64 &random) {
    const uint64_t masks[] = {0xffffffff, 0x7f, 0x7fffffff, 1};
    return random() & masks[operand];
  };
  return oper;
}

std::vector<Operator> makeRegions() { return {makeAffine(), makeFirstNot("i64"), makeArgMin(), makeMany()}; }

const char *const types[] = {"i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"};
const Kind kinds[] = {Kind::add,   Kind::mul,     Kind::minsi,   Kind::minui,    Kind::maxsi,
                      Kind::maxui, Kind::minnumf, Kind::maxnumf, Kind::minimumf, Kind::maximumf,
                      Kind::andi,  Kind::ori,     Kind::xori};

bool isLegal(Kind kind, const std::string &type) {
  bool isExtremum = kind >= Kind::minnumf && kind <= Kind::maximumf;
  return kind == Kind::add || kind == Kind::mul || isExtremum == isFloat(type);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

const unsigned sizes[] = {4, 8, 16, 32, 64};

/// No tile, and all that divide the block.
std::vector<unsigned> getTiles(unsigned threads) {
  std::vector<unsigned> tiles = {0};
  for (unsigned tile = 1; tile <= threads && threads % tile == 0; tile *= 2)
    tiles.push_back(tile);
  return tiles;
}

void sweep(llvm::ArrayRef<Operator> operators, llvm::ArrayRef<unsigned> subgroups, llvm::ArrayRef<unsigned> blocks,
           Backend device = Backend::Interp) {
  std::string backend = device == Backend::CPU ? "cpu" : "interp";
  for (unsigned size : subgroups)
    for (unsigned threads : blocks)
      for (unsigned tile : getTiles(threads))
        for (const Operator &oper : operators)
          for (const Form &form : forms) {
            compare(form, oper, {threads, tile}, backend + "@" + std::to_string(size), size, device);
            if (::testing::Test::HasFailure())
              return;
          }
}

TEST(Combine, AllKindsAndTypes) {
  std::vector<Operator> operators;
  for (const char *type : types)
    for (Kind kind : kinds)
      if (isLegal(kind, type))
        operators.push_back(makeKind(kind, type));
  sweep(operators, {8}, {12, 16});
  sweep(operators, {4, 64}, {64});
}

TEST(Combine, AllShapes) {
  sweep({makeKind(Kind::add, "i32"), makeKind(Kind::maxsi, "i16"), makeAffine()}, sizes,
        {1, 2, 3, 5, 8, 12, 16, 31, 32, 33, 48, 64, 80, 100});
}

TEST(Combine, Regions) { sweep(makeRegions(), sizes, {1, 4, 6, 24, 33, 64, 96}); }

TEST(Combine, WideTiles) {
  std::vector<Operator> operators = makeRegions();
  operators.push_back(makeKind(Kind::xori, "i64"));
  operators.push_back(makeKind(Kind::minimumf, "f32"));
  sweep(operators, {4, 8, 32}, {128});
  sweep({makeAffine(), makeKind(Kind::maxui, "i32")}, {4, 16, 64}, {1024});
}

TEST(Combine, OnTheCPU) {
  sweep({makeAffine(), makeFirstNot("i32")}, {8}, {12, 32}, Backend::CPU);
}

/// Where lanes stand in rows.
TEST(Combine, Rows) {
  for (const char *target : {"amdgcn:gfx90a", "amdgcn:gfx1100@32", "amdgcn:gfx1100@64"})
    for (const Operator &oper : {makeAffine(), makeFirstNot("i64"), makeKind(Kind::maxnumf, "f16")})
      for (unsigned threads : {8, 20, 32, 64, 80, 128})
        for (unsigned tile : getTiles(threads))
          for (const Form &form : forms) {
            compare(form, oper, {threads, tile}, target, StringRef(target).ends_with("32") ? 32 : 64);
            if (::testing::Test::HasFailure())
              return;
          }
}

/// Where a chip reduces 32-bit integers itself, whatever the type is made into; some, all or no NaNs.
TEST(Combine, NativeReductions) {
  for (const char *target : {"nvptx:sm_90", "nvptx:sm_70"})
    for (const char *type : types)
      for (Kind kind : kinds)
        for (unsigned nanPercent : {0, 12, 100})
          for (unsigned threads : {1, 2, 20, 32, 80})
            for (const Form &form : forms) {
              bool isReduction = &form < &forms[2];
              if (!isLegal(kind, type) || !isReduction || (nanPercent != 12 && !isFloat(type)))
                continue;
              auto kernel = compare(form, makeKind(kind, type, nanPercent), {threads, 0}, target, 32);
              bool hasRedux = StringRef(target) == "nvptx:sm_90" && kind != Kind::mul && StringRef(type) != "i1" &&
                              !(isFloat(type) && kind == Kind::add) && threads > 1;
              EXPECT_EQ(kernel->count("qd.subgroup.reduce_all") > 0, hasRedux) << kernel->str();
              if (hasRedux || StringRef(type) == "i1")
                EXPECT_EQ(kernel->countShuffles(), 0u) << kernel->str();
              if (::testing::Test::HasFailure())
                return;
            }
}

/// Where a target reduces and scans 32-bit integers of whole subgroups itself, that is all there is.
TEST(Combine, GroupArithmetic) {
  for (unsigned size : {4, 32})
    for (Kind kind : kinds)
      for (unsigned threads : {1, 3, 32, 80})
        for (const Form &form : forms) {
          if (!isLegal(kind, "i32"))
            continue;
          std::string target = llvm::formatv("spirv:vulkan1.3@{0}", size);
          auto kernel = compare(form, makeKind(kind, "i32"), {threads, 0}, target, size);
          const char *native[] = {"qd.subgroup.reduce_all", "qd.subgroup.inclusive_scan", "qd.subgroup.exclusive_scan"};
          unsigned isNative = !form.isSegmented && (threads > 1 || form.result == Form::UpToOwn);
          EXPECT_EQ(countAll(*kernel, native), isNative) << kernel->str();
          if (isNative) {
            EXPECT_EQ(countAll(*kernel, shuffleOps), 0u) << kernel->str();
          }
          auto tiled = compare(form, makeKind(kind, "i32"), {threads, threads % 2 ? 1u : 2u}, target, size);
          EXPECT_EQ(countAll(*tiled, native), 0u) << tiled->str();
          if (::testing::Test::HasFailure())
            return;
        }
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// Over all sizes and tiles: steps in which something is combined are log2(n), and nothing branches or waits.
TEST(Combine, Costs) {
  Operator oper = makeKind(Kind::add, "f32"), sum = makeKind(Kind::add, "i64"), affine = makeAffine();
  for (unsigned size : sizes)
    for (unsigned tile = 2; tile <= size; tile *= 2)
      for (const Form &form : forms) {
        std::string target = "interp@" + std::to_string(size);
        unsigned steps = llvm::Log2_32(tile), isScan = form.result == Form::UpToOwn || form.isSegmented;
        unsigned ends = form.isSegmented && form.result == Form::EveryLane;
        auto kernel = compare(form, oper, {128, tile}, target, size);
        EXPECT_TRUE(kernel->isPlain());
        EXPECT_EQ(kernel->count("arith.addf"), steps) << kernel->str();
        EXPECT_EQ(countAll(*kernel, shuffleOps), steps + form.isExclusive + ends) << kernel->str();
        // One belongs to the test.
        EXPECT_EQ(kernel->count("arith.select"), isScan * steps + form.isExclusive + 1) << kernel->str();
        EXPECT_EQ(kernel->count("qd.subgroup.ballot"), unsigned(form.isSegmented)) << kernel->str();
        EXPECT_EQ(kernel->count("math.ctlz"), unsigned(form.isSegmented)) << kernel->str();
        EXPECT_EQ(kernel->count("math.cttz"), ends) << kernel->str();

        // Integers take the own value out of an inclusive sum.
        auto integers = compare(form, sum, {128, tile}, target, size);
        EXPECT_EQ(countAll(*integers, shuffleOps), steps + ends) << integers->str();
        EXPECT_EQ(integers->count("arith.subi"), unsigned(form.isExclusive)) << integers->str();

        // A region of two operands, cloned at each step. Where lanes meet both ways, their order is selected.
        auto region = compare(form, affine, {128, tile}, target, size);
        EXPECT_TRUE(region->isPlain());
        EXPECT_EQ(region->count("arith.muli"), 2 * steps) << region->str();
        EXPECT_EQ(countAll(*region, shuffleOps), 2 * (steps + form.isExclusive + ends)) << region->str();
        unsigned ordered = form.result == Form::EveryLane && !form.isSegmented;
        EXPECT_EQ(region->count("arith.select"), 2 * (isScan * steps + form.isExclusive + 1 + ordered * 2 * steps))
            << region->str();
        EXPECT_EQ(region->count("qd.subgroup.ballot"), unsigned(form.isSegmented)) << region->str();
        if (::testing::Test::HasFailure())
          return;
      }
}

/// A barrier for each level of subgroups of subgroups, and one more where lanes read their segment's end. The code is
/// as long for a large block as for a small one.
TEST(Combine, WideCosts) {
  for (const Operator &oper : {makeKind(Kind::add, "f32"), makeAffine()})
    for (const Form &form : forms) {
      struct {
        unsigned size, tile, levels;
      } const cases[] = {{32, 64, 1}, {16, 128, 1}, {8, 64, 1}, {4, 16, 1}, {4, 64, 2}};
      for (auto [size, tile, levels] : cases) {
        std::string target = "interp@" + std::to_string(size);
        auto kernel = compare(form, oper, {tile, tile}, target, size);
        unsigned ends = form.isSegmented && form.result == Form::EveryLane;
        EXPECT_EQ(kernel->count("qd.block.sync"), levels + ends) << kernel->str();
        EXPECT_EQ(kernel->count("scf.for") + kernel->count("scf.while"), 0u);
        size_t lines = StringRef(compare(form, oper, {2 * tile, tile}, target, size)->str()).count('\n');
        size_t more = StringRef(compare(form, oper, {8 * tile, tile}, target, size)->str()).count('\n');
        EXPECT_EQ(lines, more);
        if (::testing::Test::HasFailure())
          return;
      }
    }
}

} // namespace

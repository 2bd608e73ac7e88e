//===- ProcessorTest.cpp - code for processors of another kind than this one -------------------===//

#include "Differential.h"

#include <map>
#include <regex>

using namespace qd;
using namespace qd::test;

class Processors : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Processors, testing::ValuesIn(getProcessors()),
                         [](const auto &info) { return info.param.empty() ? std::string("native") : info.param; });

/// Lane numbers that vary: by registers, or a table.
TEST_P(Processors, Shuffles) {
  for (unsigned lanes : allLanes)
    for (const char *type : {"i1", "i8", "i16", "i32", "i64", "f32", "f64"}) {
      SCOPED_TRACE(std::to_string(lanes) + " " + type);
      unsigned size = getBytes(type), count = 3 * lanes;
      Array x = makeArray(type, count, Values::Any), y = makeArray(type, count, Values::Zero);
      std::vector<int> from(count);
      std::mt19937 random(lanes);
      for (int &lane : from)
        lane = random() % (4 * lanes) - 2 * lanes;
      run(fill(R"(
        qd.kernel @k(%x: !qd.buffer<{T}>, %from: !qd.buffer<i32>, %y: !qd.buffer<{T}>) block({count}) {
          %i = qd.thread_index : i32
          %v = qd.load %x[%i] : !qd.buffer<{T}>
          %f = qd.load %from[%i] : !qd.buffer<i32>
          %w = qd.subgroup.shuffle %v, %f : {T}
          qd.store %w, %y[%i] : !qd.buffer<{T}>
          qd.return
        })", {{"T", type}, {"count", std::to_string(count)}}),
          lanes, {1, 1, 1},
          {HostArg{true, x.bytes.data(), count, 0}, buffer(from), HostArg{true, y.bytes.data(), count, 0}},
          /*threads=*/1, GetParam());
      for (unsigned t = 0; t < count; ++t) {
        unsigned source = t / lanes * lanes + unsigned(from[t]) % lanes;
        EXPECT_EQ(std::memcmp(&y.bytes[t * size], &x.bytes[source * size], size), 0) << t;
      }
    }
}

/// Conditions that are made of comparisons, of lanes' numbers and of predicates from memory.
TEST_P(Processors, Selects) {
  for (unsigned lanes : allLanes)
    for (const char *type : {"i8", "i32", "i64", "f32", "f64"}) {
      bool isFloat = type[0] == 'f';
      std::string text = fill(R"(
        qd.kernel @k(%x: !qd.buffer<{T}>, %y: !qd.buffer<{T}>, %p: !qd.buffer<i1>, %o: !qd.buffer<{T}>) block({count}) {
          %c0 = arith.constant 0 : i32
          %c2 = arith.constant 2 : i32
          %true = arith.constant true
          %count = arith.constant {count} : i32
          %i = qd.thread_index : i32
          %lane = qd.subgroup.lane_id : i32
          %a = qd.load %x[%i] : !qd.buffer<{T}>
          %b = qd.load %y[%i] : !qd.buffer<{T}>
          %q = qd.load %p[%i] : !qd.buffer<i1>
          %less = {less} %a, %b : {T}
          %same = {same} %a, %b : {T}
          %more = {less} %b, %a : {T}
          %bit = arith.andi %lane, %c2 : i32
          %isHigh = arith.cmpi ne, %bit, %c0 : i32
          %turned = arith.xori %less, %isHigh : i1
          %o0 = arith.select %turned, %a, %b : {T}
          %either = arith.ori %more, %same : i1
          %notEither = arith.xori %either, %true : i1
          %o1 = arith.select %notEither, %a, %b : {T}
          %andHigh = arith.andi %either, %isHigh : i1
          %o2 = arith.select %andHigh, %o0, %o1 : {T}
          %mixed = arith.andi %turned, %notEither : i1
          %mixedOr = arith.ori %mixed, %same : i1
          %twice = arith.xori %mixedOr, %isHigh : i1
          %o3 = arith.select %twice, %o2, %a : {T}
          %loaded = arith.ori %less, %q : i1
          %o4 = arith.select %loaded, %o3, %b : {T}
          qd.store %o0, %o[%i] : !qd.buffer<{T}>
          {stores}
          qd.return
        })",
                              {{"less", isFloat ? "arith.cmpf olt," : "arith.cmpi slt,"},
                               {"same", isFloat ? "arith.cmpf oeq," : "arith.cmpi eq,"}});
      std::string stores;
      for (unsigned n = 1; n < 5; ++n) {
        std::string before = n == 1 ? "%i" : "%at" + std::to_string(n - 1), at = "%at" + std::to_string(n);
        stores += at + " = arith.addi " + before + ", %count : i32\n  qd.store %o" + std::to_string(n) + ", %o[" + at +
                  "] : !qd.buffer<{T}>\n  ";
      }
      int64_t count = 2 * lanes;
      text = fill(text, {{"stores", stores}});
      text = fill(text, {{"T", type}, {"count", std::to_string(count)}});
      expectLikeInterp(text, lanes, {1, 1, 1},
                       {makeArray(type, count, Values::Small, 1), makeArray(type, count, Values::Small, 2),
                        makeArray("i1", count, Values::Any), makeArray(type, 5 * count, Values::Zero)},
                       /*zerosAreEqual=*/false, /*optLevel=*/2, GetParam());
    }
}

/// With vectors of 256 bits and no mask registers, a step of a sorting network packs no masks, and a shuffle by
/// registers uses no table.
/// Rounded once, with an instruction or without.
TEST_P(Processors, FusedMultiplyAdd) {
  constexpr unsigned count = 4096;
  std::mt19937 random(3);
  std::vector<float> a(count), b(count), c(count), y(count);
  for (unsigned i = 0; i < count; ++i) {
    auto any = [&] { return llvm::bit_cast<float>(uint32_t(random())); };
    auto nearOne = [&] { return llvm::bit_cast<float>(uint32_t(random()) % (4u << 23) + (126u << 23)); };
    a[i] = i % 2 ? nearOne() : any();
    b[i] = i % 2 ? nearOne() : any();
    // The sum is what the product's rounding lost, lies halfway between two numbers, or is anything.
    c[i] = i % 8 == 1 ? -a[i] * b[i] : i % 8 == 3 ? std::ldexp(a[i] * b[i], int(random() % 60) - 30) : any();
    if (i % 8 == 5) {
      b[i] = 1 + 0x1p-23f;
      c[i] = std::ldexp(float(random() % 8), 1 - int(random() % 30));
    }
    if (i % 8 == 6)
      b[i] = 0x1p-130f / a[i]; // often subnormal
  }
  for (unsigned lanes : allLanes) {
    run(R"(
      qd.kernel @k(%a: !qd.buffer<f32>, %b: !qd.buffer<f32>, %c: !qd.buffer<f32>, %y: !qd.buffer<f32>) block(256) {
        %i = qd.global_thread_id x : i32
        %u = qd.load %a[%i] : !qd.buffer<f32>
        %v = qd.load %b[%i] : !qd.buffer<f32>
        %w = qd.load %c[%i] : !qd.buffer<f32>
        %r = math.fma %u, %v, %w : f32
        qd.store %r, %y[%i] : !qd.buffer<f32>
        qd.return
      })",
        lanes, {count / 256, 1, 1}, {buffer(a), buffer(b), buffer(c), buffer(y)}, /*threads=*/1, GetParam());
    for (unsigned i = 0; i < count; ++i) {
      float expected = std::fma(a[i], b[i], c[i]);
      bool isSame = std::isnan(expected) ? std::isnan(y[i])
                                         : llvm::bit_cast<uint32_t>(expected) == llvm::bit_cast<uint32_t>(y[i]);
      EXPECT_TRUE(isSame) << a[i] << " * " << b[i] << " + " << c[i] << ": " << y[i] << ", expected " << expected;
    }
  }
}

TEST(Haswell, CodeStaysInRegisters) {
  Module sort(R"(
    qd.kernel @k(%x: !qd.buffer<i64>) block(16) {
      %c0 = arith.constant 0 : i32
      %c4 = arith.constant 4 : i32
      %i = qd.thread_index : i32
      %v = qd.load %x[%i] : !qd.buffer<i64>
      %w = qd.subgroup.shuffle_xor %v, 4 : i64
      %less = arith.cmpi slt, %w, %v : i64
      %bit = arith.andi %i, %c4 : i32
      %isHigh = arith.cmpi ne, %bit, %c0 : i32
      %turned = arith.xori %less, %isHigh : i1
      %r = arith.select %turned, %w, %v : i64
      qd.store %r, %x[%i] : !qd.buffer<i64>
      qd.return
    })");
  std::string text = sort.emitText(16, CPUText::Assembly, 2, "haswell");
  EXPECT_EQ(text.find("vpack"), std::string::npos) << text;
  EXPECT_EQ(text.find("rsp"), std::string::npos) << text;
  Module shuffle(R"(
    qd.kernel @k(%x: !qd.buffer<f32>, %n: !qd.buffer<i32>) block(32) {
      %i = qd.thread_index : i32
      %v = qd.load %x[%i] : !qd.buffer<f32>
      %l = qd.load %n[%i] : !qd.buffer<i32>
      %w = qd.subgroup.shuffle %v, %l : f32
      qd.store %w, %x[%i] : !qd.buffer<f32>
      qd.return
    })");
  for (unsigned lanes : {4, 8, 16, 32}) {
    text = shuffle.emitText(lanes, CPUText::Assembly, 2, "haswell");
    EXPECT_NE(text.find("vperm"), std::string::npos) << text;
    EXPECT_EQ(text.find("gather"), std::string::npos) << text;
    EXPECT_EQ(text.find("vpinsr"), std::string::npos) << text;
  }
}

/// Loads and stores of vectors stand at rising addresses, also where loads are part of additions and a vector takes
/// several registers. LLVM schedules anew for Zen 5 behind register allocation.
TEST(Processors, AccessesRise) {
  std::string text = R"(
    qd.kernel @k(%x: !qd.buffer<f32> readonly noalias, %o: !qd.buffer<f32> noalias) block(32) {
      %width = arith.constant 256 : i32
      %block = qd.block_id x : i32
      %thread = qd.thread_index : i32
      %start = arith.muli %block, %width : i32
      %i0 = arith.addi %start, %thread : i32
      %v0 = qd.load %x[%i0] : !qd.buffer<f32>)";
  for (int part = 1; part < 8; ++part)
    text += fill(R"(
      %c{n} = arith.constant {offset} : i32
      %i{n} = arith.addi %i0, %c{n} : i32
      %v{n} = qd.load %x[%i{n}] : !qd.buffer<f32>)",
                 {{"n", std::to_string(part)}, {"offset", std::to_string(32 * part)}});
  text += R"(
      %s0 = arith.addf %v0, %v1 : f32
      %s1 = arith.addf %v2, %v3 : f32
      %s2 = arith.addf %v4, %v5 : f32
      %s3 = arith.addf %v6, %v7 : f32
      %t0 = arith.addf %s0, %s1 : f32
      %t1 = arith.addf %s2, %s3 : f32
      %sum = arith.addf %t0, %t1 : f32)";
  std::string sums = text + R"(
      qd.store %sum, %o[%thread] : !qd.buffer<f32>
      qd.return
    })";
  std::string quotients = text;
  for (int part = 0; part < 8; ++part)
    quotients += fill(R"(
      %q{n} = arith.divf %v{n}, %sum : f32
      qd.store %q{n}, %o[%i{n}] : !qd.buffer<f32>)", {{"n", std::to_string(part)}});
  quotients += R"(
      qd.return
    })";
  struct Case {
    std::string text;
    const char *cpu;
    unsigned accesses; ///< of 32 or 64 bytes
  };
  for (const Case &test : {Case{sums, "haswell", 36}, {sums, "znver5", 18}, {quotients, "znver5", 32}}) {
    Module module(test.text);
    std::string text = module.emitText(32, CPUText::Assembly, 2, test.cpu);
    std::map<std::string, int> last; // offset by registers
    unsigned accesses = 0;
    std::regex access(R"(\t(-?\d*)(\(%\w+(,%\w+,4)?\)), %[yz]mm|%[yz]mm\d+, (-?\d*)(\(%\w+(,%\w+,4)?\)))");
    for (std::sregex_iterator at(text.begin(), text.end(), access), end; at != end; ++at) {
      bool isStore = (*at)[5].matched;
      std::string offset = (*at)[isStore ? 4 : 1];
      int bytes = offset.empty() ? 0 : std::stoi(offset);
      std::string registers = (*at)[isStore ? 5 : 2];
      auto [before, isFirst] = last.try_emplace((isStore ? "store " : "load ") + registers, bytes);
      EXPECT_TRUE(isFirst || bytes > before->second) << test.cpu << ": " << at->str() << "\n" << text;
      before->second = bytes;
      ++accesses;
    }
    EXPECT_EQ(accesses, test.accesses) << test.cpu << "\n" << text;
  }
}

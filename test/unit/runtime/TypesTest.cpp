#include "runtime/Types.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace qd::rt;

namespace {

TEST(Types, NamesRoundTrip) {
  for (const char *name : {"i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"}) {
    auto type = parseScalarType(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(scalarName(*type), name);
  }
  EXPECT_EQ(elementName(*parseElementType("vector<4xf32>")), "vector<4xf32>");
  EXPECT_EQ(parseElementType("vector<2xbf16>")->bytes(), 4u);
  for (const char *name : {"", "u32", "vector<>", "vector<4x", "vector<4f32>", "vector<0xf32>",
                           "vector<99xf32>", "vector<4xf32", "vector<-1xf32>", "f3"})
    EXPECT_FALSE(parseElementType(name)) << name;
}

TEST(Types, HalfConversionsRoundTripAndRound) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    for (ScalarType type : {ScalarType::F16, ScalarType::BF16}) {
      double value = floatValue(type, half);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(floatValue(type, floatBits(type, value))));
      else
        EXPECT_EQ(floatBits(type, value), half);
    }
  }
  EXPECT_EQ(doubleToF16(65504), 0x7BFF);
  EXPECT_EQ(doubleToF16(65519.99), 0x7BFF);
  EXPECT_EQ(doubleToF16(65520), 0x7C00) << "the tie goes to infinity";
  EXPECT_EQ(doubleToF16(std::ldexp(1, -25)), 0) << "half the smallest subnormal goes to even";
  EXPECT_EQ(doubleToF16(std::ldexp(1.5, -25)), 1);
  EXPECT_EQ(doubleToF16(1 + std::ldexp(1, -11)), 0x3C00);
  EXPECT_EQ(doubleToF16(1 + std::ldexp(3, -11)), 0x3C02);
  EXPECT_EQ(doubleToBF16(-0.0), 0x8000);
}

TEST(Types, ScalarsParse) {
  EXPECT_EQ(*parseScalar(ScalarType::I32, "-1"), 0xFFFFFFFFu);
  EXPECT_EQ(*parseScalar(ScalarType::I32, "4294967295"), 0xFFFFFFFFu);
  EXPECT_EQ(*parseScalar(ScalarType::I8, "-128"), 0x80u);
  EXPECT_EQ(*parseScalar(ScalarType::I64, "0xFFFFFFFFFFFFFFFF"), ~uint64_t(0));
  EXPECT_EQ(*parseScalar(ScalarType::I1, "true"), 1u);
  EXPECT_EQ(*parseScalar(ScalarType::F32, "0.1"), 0x3DCCCCCDu);
  EXPECT_EQ(*parseScalar(ScalarType::F32, "-0"), 0x80000000u);
  EXPECT_EQ(*parseScalar(ScalarType::F32, "-inf"), 0xFF800000u);
  EXPECT_EQ(*parseScalar(ScalarType::F32, "1e999"), 0x7F800000u);
  EXPECT_EQ(*parseScalar(ScalarType::F64, "0x1p-1"), 0x3FE0000000000000u);
  EXPECT_EQ(*parseScalar(ScalarType::F16, "65504"), 0x7BFFu);
  EXPECT_TRUE(std::isnan(floatValue(ScalarType::BF16, *parseScalar(ScalarType::BF16, "nan"))));

  for (const char *bad : {"", "-", "1.5", "4294967296", "-2147483649", "12x", "0x", "--1", "true"})
    EXPECT_FALSE(parseScalar(ScalarType::I32, bad)) << bad;
  for (const char *bad : {"", "-", "1.5f", "--1", "+-1", "0x", "abc"})
    EXPECT_FALSE(parseScalar(ScalarType::F32, bad)) << bad;
  EXPECT_EQ(parseScalar(ScalarType::I8, "256").message(), "'256' does not fit into i8");
}

TEST(Types, ScalarsPrintShortestAndReadBack) {
  EXPECT_EQ(formatScalar(ScalarType::F32, 0x3DCCCCCD), "0.1");
  EXPECT_EQ(formatScalar(ScalarType::F16, doubleToF16(0.1)), "0.1");
  EXPECT_EQ(formatScalar(ScalarType::F64, floatBits(ScalarType::F64, 0.1)), "0.1");
  EXPECT_EQ(formatScalar(ScalarType::I8, 0xFF), "-1");
  EXPECT_EQ(formatScalar(ScalarType::I8, 0xFF, true), "255");
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    for (ScalarType type : {ScalarType::F16, ScalarType::BF16})
      if (!std::isnan(floatValue(type, bits))) {
        ASSERT_EQ(*parseScalar(type, formatScalar(type, bits)), bits);
      }
}

TEST(Types, SuggestsTheNearest) {
  EXPECT_EQ(suggestion("srcc", {"dst", "src"}), "; did you mean 'src'?");
  EXPECT_EQ(suggestion("something", {"dst", "src"}), "; there is dst, src");
  EXPECT_EQ(suggestion("x", {}), "; there is none");
}

} // namespace

#include "runtime/Npy.h"

#include <gtest/gtest.h>
#include <random>

using namespace qd::rt;

namespace {

/// A file with the given header text and data.
std::vector<uint8_t> file(const std::string &header, const std::string &data, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    bytes += static_cast<char>(header.size() >> (8 * i));
  bytes += header + data;
  return {bytes.begin(), bytes.end()};
}

std::string failure(const std::vector<uint8_t> &bytes) {
  auto array = parseNpy(bytes.data(), bytes.size());
  return array ? "" : array.message();
}

std::string header(const std::string &descr, const std::string &shape, const std::string &order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

TEST(Npy, EveryTypeRoundTrips) {
  for (const char *name : {"i1", "i8", "i16", "i32", "i64", "f16", "f32", "f64"}) {
    auto array = makeArray(*parseScalarType(name), {2, 3});
    ASSERT_TRUE(array);
    for (size_t i = 0; i < 6; ++i)
      array->setBits(i, i % 2);
    std::vector<uint8_t> bytes = formatNpy(*array);
    EXPECT_EQ((bytes.size() - array->data.size()) % 64, 0u) << "NumPy wants its data aligned";
    auto back = parseNpy(bytes.data(), bytes.size());
    ASSERT_TRUE(back) << back.message();
    EXPECT_EQ(back->type, array->type);
    EXPECT_EQ(back->shape, array->shape);
    EXPECT_EQ(back->data, array->data);
  }
}

TEST(Npy, ReadsWhatNumPyWrites) {
  auto bytes = file(header("<i4", "(2,)"), std::string("\1\0\0\0\2\0\0\0", 8));
  auto array = parseNpy(bytes.data(), bytes.size());
  ASSERT_TRUE(array) << array.message();
  EXPECT_EQ(array->bits(1), 2u);
  bytes = file(header("<u2", "()"), std::string("\1\2", 2), 2);
  array = parseNpy(bytes.data(), bytes.size());
  ASSERT_TRUE(array) << array.message();
  EXPECT_TRUE(array->isUnsigned);
  EXPECT_TRUE(array->shape.empty());
  bytes = file(header("|V2", "(1,)"), "ab");
  EXPECT_EQ(parseNpy(bytes.data(), bytes.size())->type, ScalarType::BF16);
  bytes = file(header("<f4", "(0, 5)"), "");
  EXPECT_EQ(parseNpy(bytes.data(), bytes.size())->numScalars(), 0u);
  bytes = file(header("<f4", "(1,)", "True"), "abcd");
  EXPECT_EQ(failure(bytes), "") << "one dimension has no order";
}

TEST(Npy, SaysWhatIsWrong) {
  EXPECT_NE(failure({'a', 'b'}).find("not a .npy file"), std::string::npos);
  EXPECT_NE(failure({}).find("empty"), std::string::npos);
  EXPECT_NE(failure({0x93, 'N', 'U', 'M'}).find("truncated inside its header, after 4 bytes"), std::string::npos);
  EXPECT_NE(
      failure(file(header("<f4", "(2,)"), "abcd")).find("truncated: shape 2 of f32 takes 8 bytes, 4 follow"),
      std::string::npos);
  EXPECT_NE(failure(file(header("<f4", "(1,)"), "abcdefgh")).find("too long"), std::string::npos);
  EXPECT_NE(failure(file(header(">f4", "(1,)"), "abcd")).find("big-endian"), std::string::npos);
  EXPECT_NE(failure(file(header("<c8", "(1,)"), "abcdabcd")).find("'<c8' is not supported"),
            std::string::npos);
  EXPECT_NE(failure(file(header("<f4", "(1, 1)", "True"), "abcd")).find("Fortran order"), std::string::npos);
  EXPECT_NE(
      failure(file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "abcd")).find("dtype"),
      std::string::npos);
  EXPECT_NE(failure(file(header("<f4", "(99999999999, 99999999999)"), "")).find("too large"),
            std::string::npos);
  EXPECT_NE(failure(file(header("<f4", "(99999999999999999999,)"), "")).find("malformed"), std::string::npos);
  EXPECT_NE(failure(file(header("<f4", "(1,)"), "abcd", 9)).find("version 9"), std::string::npos);
  EXPECT_NE(failure(file("{'shape': (1,)}", "abcd")).find("lacks"), std::string::npos);
}

TEST(Npy, DamagedFilesAreErrorsOrArrays) {
  auto array = makeArray(ScalarType::F32, {4, 4});
  const std::vector<uint8_t> whole = formatNpy(*array);
  for (size_t length = 0; length < whole.size(); ++length) {
    std::vector<uint8_t> cut(whole.begin(), whole.begin() + length);
    EXPECT_NE(failure(cut), "") << length;
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes = whole;
    for (int i = 0; i < 3; ++i)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    auto result = parseNpy(bytes.data(), bytes.size());
    if (result) {
      EXPECT_LE(result->data.size(), bytes.size());
    }
  }
}

TEST(Npy, FilesNameThemselvesInErrors) {
  std::string path = testing::TempDir() + "npy-test.npy";
  auto array = makeArray(ScalarType::I16, {3});
  ASSERT_FALSE(writeNpy(path, *array));
  auto back = readNpy(path);
  ASSERT_TRUE(back) << back.message();
  EXPECT_EQ(back->shape, array->shape);
  std::remove(path.c_str());
  EXPECT_EQ(readNpy(path).message(), "cannot open '" + path + "': No such file or directory");
  EXPECT_TRUE(writeNpy("/nonexistent/x.npy", *array));
}

} // namespace

#include "Samples.h"

#include "runtime/Checksum.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace qd::rt;

namespace {

const std::map<std::string, std::string> qirStrings = {{"triple", "qir"}, {"qdb.version", "2"}};

std::vector<uint8_t> sampleBundle() {
  std::vector<uint8_t> bytes = sampleEntry(ImageKind::PTX, nvptxTriple, "sm_80", 32, bytesOf("ptx"));
  append(bytes, sampleEntry(ImageKind::SPIRV, vulkanTriple, "vulkan1.1", 8, bytesOf("spirv words")));
  append(bytes, formatEntry(ImageKind::None, qirStrings, bytesOf("the QIR")));
  return bytes;
}

std::string failure(const std::vector<uint8_t> &bytes) {
  auto bundle = parseBundle(bytes.data(), bytes.size());
  return bundle ? "" : bundle.message();
}

TEST(Bundle, ReadsItsEntries) {
  auto bytes = sampleBundle();
  auto bundle = parseBundle(bytes.data(), bytes.size());
  ASSERT_TRUE(bundle) << bundle.message();
  ASSERT_EQ(bundle->variants.size(), 2u);
  EXPECT_EQ(bundle->variants[0].arch, "sm_80");
  EXPECT_EQ(bundle->variants[0].image, bytesOf("ptx"));
  EXPECT_EQ(bundle->variants[1].kind, ImageKind::SPIRV);
  EXPECT_EQ(bundle->variants[1].subgroupSize, 8u);
  EXPECT_EQ(bundle->qir, bytesOf("the QIR"));
  EXPECT_EQ(describeVariants(*bundle), "sm_80 PTX, spirv with subgroups of 8, QIR");
  const Kernel *kernel = bundle->variants[1].interface.find("wide");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->find("y")->sizeOffset, 16u);
  EXPECT_TRUE(kernel->find("y")->mayBeWritten());
  EXPECT_FALSE(kernel->find("x")->mayBeWritten());
}

TEST(Bundle, EveryCutIsAnError) {
  auto whole = sampleBundle();
  std::vector<size_t> ends;
  for (size_t at = 0; at < whole.size();) {
    uint64_t size;
    std::memcpy(&size, whole.data() + at + 8, sizeof size);
    at += size;
    ends.push_back(at);
  }
  for (size_t length = 0; length < whole.size(); ++length) {
    // A copy of just this length, so that a read past its end is seen by a sanitizer.
    std::vector<uint8_t> cut(whole.begin(), whole.begin() + length);
    bool between = std::find(ends.begin(), ends.end(), length) != ends.end();
    EXPECT_EQ(failure(cut).empty(), between) << length;
  }
}

TEST(Bundle, IsToldByItsBeginningOrItsName) {
  auto whole = sampleBundle();
  for (size_t length : {1, 2, 3, 4, 40})
    EXPECT_TRUE(isBundle(whole.data(), length, "<memory>")) << length;
  auto text = bytesOf("qd.kernel");
  EXPECT_TRUE(isBundle(text.data(), text.size(), "a.qdb"));
  EXPECT_FALSE(isBundle(text.data(), text.size(), "a.qir"));
  EXPECT_FALSE(isBundle(text.data(), 0, "<memory>"));
  whole[3] ^= 1;
  EXPECT_FALSE(isBundle(whole.data(), whole.size(), "<memory>"));
}

/// From xxHash's own test vectors, and of each way through it.
TEST(Bundle, HashesAsXxHashDoes) {
  auto hash = [](std::string_view text) {
    return xxHash64(reinterpret_cast<const uint8_t *>(text.data()), text.size());
  };
  EXPECT_EQ(hash(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(hash("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(hash("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(hash("xxhash"), 0x32DD38952C4BC720u);
}

TEST(Bundle, EveryChangedByteIsAnError) {
  const auto whole = sampleBundle();
  for (size_t at = 0; at < whole.size(); ++at)
    for (uint8_t change : {0x01, 0x20, 0x80, 0xFF}) {
      auto bytes = whole;
      bytes[at] ^= change;
      EXPECT_NE(failure(bytes), "") << "byte " << at << " ^ " << unsigned(change);
    }
}

TEST(Bundle, MutationsNeverCrash) {
  const auto whole = sampleBundle();
  std::mt19937_64 random(7);
  const uint64_t nasty[] = {0,
                            1,
                            7,
                            8,
                            31,
                            32,
                            40,
                            whole.size(),
                            whole.size() - 1,
                            UINT32_MAX,
                            INT64_MAX,
                            UINT64_MAX,
                            UINT64_MAX - 7,
                            uint64_t(1) << 60};
  for (int round = 0; round < 30000; ++round) {
    auto bytes = whole;
    for (uint64_t i = 0, e = 1 + random() % 3; i < e; ++i) {
      // Mostly the records at the front, where offsets and sizes stand.
      size_t at = random() % 4 ? random() % 160 : random() % bytes.size();
      if (random() % 2) {
        bytes[at] ^= static_cast<uint8_t>(1u << random() % 8);
      } else {
        uint64_t value = nasty[random() % std::size(nasty)];
        std::memcpy(bytes.data() + at / 8 * 8, &value, std::min<size_t>(8, bytes.size() - at / 8 * 8));
      }
    }
    EXPECT_EQ(failure(bytes).empty(), bytes == whole) << round;
  }
}

TEST(Bundle, SaysWhatIsWrong) {
  EXPECT_EQ(failure({}), "bundle entry 0 at byte 0: it has 0 bytes, expected a header of 32 bytes");
  EXPECT_EQ(failure({0x10}), "bundle entry 0 at byte 0: it has 1 byte, expected a header of 32 bytes");
  auto bytes = sampleBundle();
  bytes[1] = 0xFE;
  EXPECT_EQ(failure(bytes),
            "bundle entry 0 at byte 0: it begins with the bytes 10 fe 10 ad, expected an offload binary's 10 ff 10 ad");
  bytes = sampleBundle();
  bytes[4] = 2;
  EXPECT_NE(failure(bytes).find("container version 2, expected 1"), std::string::npos);
  auto entry = [](std::map<std::string, std::string> strings) {
    return failure(formatEntry(ImageKind::PTX, strings, {}));
  };
  EXPECT_NE(entry({}).find("no 'triple'"), std::string::npos);
  EXPECT_NE(entry({{"triple", "nvptx64-nvidia-cuda"}}).find("not a qdc bundle"), std::string::npos);
  EXPECT_NE(entry({{"triple", "x"}, {"qdb.version", "1"}}).find("bundle version 1, this runtime reads version 2"),
            std::string::npos);
  EXPECT_NE(entry({{"triple", "x"}, {"qdb.version", "2"}}).find("'subgroup_size'"), std::string::npos);
  EXPECT_NE(
      entry({{"triple", "x"}, {"qdb.version", "2"}, {"subgroup_size", "32"}}).find("no 'qdb.interface'"),
      std::string::npos);
  EXPECT_NE(failure(formatEntry(static_cast<ImageKind>(9), {{"triple", "x"}, {"qdb.version", "2"}}, {}))
                .find("image kind 9"),
            std::string::npos);
  EXPECT_NE(entry({{"triple", "x"}, {"qdb.version", "2"}, {"qdb.checksum", "12"}})
                .find("'qdb.checksum' is '12', expected 16 digits"),
            std::string::npos);
  EXPECT_NE(entry({{"triple", "x"}, {"qdb.version", "2"}, {"qdb.checksum", "0123456789abcdef"}})
                .find("it is damaged: its bytes have checksum "),
            std::string::npos);
  // One bit of the last entry's code.
  bytes = sampleBundle();
  bytes[bytes.size() - 8] ^= 1;
  std::string found = failure(bytes);
  EXPECT_EQ(found.find("bundle entry 2 at byte "), 0u) << found;
  EXPECT_NE(found.find(", expected "), std::string::npos) << found;
}

TEST(Interface, RefusesWhatItCannotTrust) {
  auto failure = [](std::string_view json) {
    auto interface = parseInterface(json);
    return interface ? std::string() : interface.message();
  };
  auto kernel = [&](const std::string &members) {
    return failure(R"({"version":1,"kernels":[{"name":"k",)" + members + "}]}");
  };
  EXPECT_EQ(kernel(R"("block":[1,1,1],"args":[])"), "");
  EXPECT_NE(failure("{").find("not valid JSON"), std::string::npos);
  EXPECT_NE(failure("[]").find("not an object"), std::string::npos);
  EXPECT_NE(failure(R"({"version":2,"kernels":[]})").find("version 2, this runtime reads version 1"),
            std::string::npos);
  EXPECT_NE(failure(R"({"version":"1","kernels":[]})").find("'version' is not an integer"),
            std::string::npos);
  EXPECT_NE(failure(R"({"version":1,"kernels":{}})").find("'kernels' is not a list"), std::string::npos);
  EXPECT_NE(failure(R"({"version":1,"kernels":[5]})").find("not an object"), std::string::npos);
  EXPECT_NE(kernel(R"("block":[1,1],"args":[])").find("three extents"), std::string::npos);
  EXPECT_NE(kernel(R"("block":[0,1,1],"args":[])").find("outside 1 to 1024"), std::string::npos);
  EXPECT_NE(kernel(R"("block":[1024,2,1],"args":[])").find("2048 threads"), std::string::npos);
  EXPECT_NE(kernel(R"("block":[1,1,1])").find("lacks 'args'"), std::string::npos);
  EXPECT_NE(kernel(R"("block":[1,1,1],"args":[],"shared_bytes":-1)").find("'shared_bytes'"),
            std::string::npos);
  EXPECT_NE(kernel(R"("block":[1,1,1],"args":[],"local_size":0)").find("'local_size' is 0"),
            std::string::npos);
  EXPECT_NE(
      kernel(R"("block":[1,1,1],"args":[{"name":"a","kind":"ghost","type":"f32"}])").find("unknown kind"),
      std::string::npos);
  EXPECT_NE(kernel(R"("block":[1,1,1],"args":[{"name":"a","kind":"scalar","type":"vector<2xf32>"}])")
                .find("unknown scalar"),
            std::string::npos);
  EXPECT_NE(kernel(R"("block":[1,1,1],"args":[{"name":"a","kind":"buffer","type":"f32","access":"often"}])")
                .find("unknown access"),
            std::string::npos);
  EXPECT_NE(kernel(R"("block":[1,1,1],"args":[{"name":"a","kind":"scalar","type":"f32"},
                                              {"name":"a","kind":"scalar","type":"f32"}])")
                .find("two arguments 'a'"),
            std::string::npos);
  std::string deep(100000, '[');
  EXPECT_NE(failure(deep), "");
  EXPECT_NE(failure(deep + std::string(100000, ']')), "");
}

TEST(Interface, MutationsNeverCrash) {
  const std::string whole = sampleInterface(32);
  const char *tokens[] = {"null", "true", "-1", "1e300", "99999999999999999999", "\"\"", "[]", "{}", "0.5"};
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string json = whole;
    size_t at = random() % json.size();
    if (random() % 2)
      json[at] = static_cast<char>(random());
    else if (size_t value = json.find_first_of("0123456789\"[", at); value != std::string::npos)
      json.replace(value, 1 + random() % 4, tokens[random() % std::size(tokens)]);
    (void)parseInterface(json);
  }
}

} // namespace

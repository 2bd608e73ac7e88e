// qdc-run as a process: exit status, and what goes to which stream.
#include "Samples.h"
#include "runtime/Device.h"
#include "runtime/File.h"

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <sys/wait.h>

using namespace qd::rt;

namespace {

struct Outcome {
  int status;
  std::string output;
};

/// Runs a shell command line and collects its standard output; "2>&1" in it adds the errors.
Outcome shell(const std::string &line) {
  FILE *pipe = popen(line.c_str(), "r");
  if (!pipe)
    return {-1, ""};
  std::string output;
  char chunk[4096];
  while (size_t got = std::fread(chunk, 1, sizeof chunk, pipe))
    output.append(chunk, got);
  int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

Outcome qdcRun(const std::string &arguments) { return shell(QDC_RUN " " + arguments + " 2>&1"); }

TEST(Command, UsageErrorsAreStatusTwo) {
  for (const char *arguments : {"", "f.qir", "--no-such-option", "f.qir -grid=1 x"}) {
    Outcome outcome = qdcRun(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(outcome.output.find("qdc-run: error: "), 0u) << outcome.output;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  }
}

TEST(Command, FailuresAreStatusOne) {
  Outcome outcome = qdcRun("/nonexistent.qir -grid=1");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.output, "qdc-run: error: cannot open '/nonexistent.qir': No such file or directory\n");
}

TEST(Command, HelpListsEveryOption) {
  Outcome outcome = qdcRun("--help");
  EXPECT_EQ(outcome.status, 0);
  for (const char *option :
       {"-device=", "--list-devices", "-kernel=", "-grid=", "--subgroup-size=", "-O3",
        "--threads=", "--check=", "--launches=", "-out ", "-expect ", "--print=", "--time", "examples:"})
    EXPECT_NE(outcome.output.find(option), std::string::npos) << option;
}

TEST(Command, DevicesAreListedOrExplained) {
  Outcome outcome = qdcRun("--list-devices");
  EXPECT_EQ(outcome.status, 0);
  for (const char *device : {"cpu ", "interp ", "sim:CHIP ", "vulkan", "cuda", "hip"})
    EXPECT_NE(outcome.output.find(device), std::string::npos) << device;
}

TEST(Command, RunsABundleFromStandardInput) {
  auto device = Device::open("vulkan");
  if (!device)
    GTEST_SKIP() << device.message();
  auto code = readFile(SCALE_SPV);
  ASSERT_TRUE(code) << code.message();
  std::vector<uint8_t> bundle;
  for (unsigned lanes : {4, 8, 16, 32, 64})
    append(bundle, sampleEntry(ImageKind::SPIRV, vulkanTriple, "vulkan1.1", lanes, *code));
  std::string path = testing::TempDir() + "command-test.qdb";
  ASSERT_FALSE(writeFile(path, bundle));
  std::string arguments = "- -device=vulkan -kernel=scale -grid=1 n=2 a=2 x=1,2,3 y=zeros:3";
  Outcome outcome = shell(QDC_RUN " " + arguments + " < " + path);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "y: f32[3] = 2, 4, 0\n");
  outcome = shell(QDC_RUN " " + arguments + " -expect y=2,4,6 2>&1 < " + path);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.output, "qdc-run: error: y[2] is 0, expected 6; 1 of 3 values differ\n");
  std::remove(path.c_str());
}

} // namespace

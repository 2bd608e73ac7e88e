// Whole runs of qdc-run's steps on the stand-in compiler, whose kernel also writes into its readonly buffer.
#include "tools/qdc-run/Run.h"
#include "Samples.h"
#include "runtime/File.h"
#include "runtime/Npy.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace qd::rt;

namespace {

class RunTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("QDC_COMPILER_LIBRARY", FAKE_COMPILER, 1);
    folder = testing::TempDir();
    ASSERT_FALSE(writeFile(folder + "run-test.qir", bytesOf("good")));
  }
  void TearDown() override {
    for (const char *name : {"run-test.qir", "run-x.npy", "run-y.npy"})
      std::remove((folder + name).c_str());
  }

  /// What a run prints, or its error.
  std::string runWith(const std::vector<std::string> &words) {
    std::vector<std::string> all = {folder + "run-test.qir", "-grid=1"};
    all.insert(all.end(), words.begin(), words.end());
    auto options = parseCommandLine(all);
    EXPECT_TRUE(options) << options.message();
    testing::internal::CaptureStdout();
    Error error = run(*options);
    std::string printed = testing::internal::GetCapturedStdout();
    return error ? error.message() : printed;
  }

  std::string folder;
};

TEST_F(RunTest, PrintsWhatMayBeWritten) {
  EXPECT_EQ(runWith({"x=1,2,3", "y=zeros:3", "a=2"}), "y: f32[3] = 2, 4, 6\n");
  EXPECT_EQ(runWith({"x=1,2,3", "y=zeros:3", "a=2", "--print=none"}), "");
  EXPECT_EQ(runWith({"x=1,2,3", "y=zeros:3", "a=2", "-expect", "y=2,4,6"}), "");
  EXPECT_EQ(runWith({"x=1,2,3", "y=zeros:3", "a=2", "-expect", "y=2,4,7"}),
            "y[2] is 6, expected 7; 1 of 3 values differ");
}

TEST_F(RunTest, AReadonlyBufferStaysAsGiven) {
  EXPECT_EQ(runWith({"x=1,2,3", "y=zeros:3", "a=2", "-expect", "x=1,2,3", "--print=none"}), "");
}

TEST_F(RunTest, FilesKeepTheirShape) {
  Array x = *makeArray(ScalarType::F32, {2, 3});
  for (size_t i = 0; i < 6; ++i)
    x.setBits(i, floatBits(ScalarType::F32, static_cast<double>(i)));
  ASSERT_FALSE(writeNpy(folder + "run-x.npy", x));
  EXPECT_EQ(runWith({"x=@" + folder + "run-x.npy", "y=@" + folder + "run-x.npy", "a=0.5", "-out",
                     "y=" + folder + "run-y.npy"}),
            "");
  auto y = readNpy(folder + "run-y.npy");
  ASSERT_TRUE(y) << y.message();
  EXPECT_EQ(y->shape, x.shape);
  EXPECT_EQ(y->bits(5), floatBits(ScalarType::F32, 2.5));
}

TEST_F(RunTest, GoesOnInAListAfterAFailure) {
  std::string list = folder + "run-list.txt", text = "-kernel=scale -grid=1 x=1,2 y=zeros:2 a=2 -expect y=2,5\n"
                                                     "-kernel=scal -grid=1\n"
                                                     "-kernel=scale -grid=1 x=1,2 y=zeros:2 a=3 -expect y=3,6\n";
  ASSERT_FALSE(writeFile(list, {text.begin(), text.end()}));
  auto options = parseCommandLine({folder + "run-test.qir", "--launches=" + list});
  ASSERT_TRUE(options) << options.message();
  testing::internal::CaptureStdout();
  Error error = run(*options);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "FAILED: scale: y[1] is 4, expected 5; 1 of 2 values differ\n"
            "FAILED: scal: the file has no kernel 'scal'; did you mean 'scale'?\n"
            "passed: scale\n"
            "1 passed, 2 failed\n");
  EXPECT_EQ(error.message(), "2 of 3 launches failed");
  std::remove(list.c_str());
}

TEST_F(RunTest, TimesFurtherRuns) {
  std::string printed = runWith({"x=1,2,3", "y=zeros:3", "a=2", "--time=3"});
  EXPECT_EQ(printed.find("time: median "), 0u) << printed;
  EXPECT_NE(printed.find("(3 runs)\ny: f32[3] = 2, 4, 6\n"), std::string::npos) << printed;
}

TEST_F(RunTest, NamesAreCheckedBeforeTheLaunch) {
  EXPECT_EQ(runWith({"x=1", "y=1", "a=1", "-out", "z=f.npy"}),
            "-out: kernel 'scale' has no argument 'z'; there is x, y");
  EXPECT_EQ(runWith({"x=1", "y=1", "a=1", "-out", "x=f.npy"}),
            "-out: argument 'x' of kernel 'scale' is readonly, expected one that the kernel may write");
  EXPECT_EQ(runWith({"x=1", "y=1", "a=1", "-expect", "a=1"}),
            "-expect: argument 'a' of kernel 'scale' is a scalar, expected a buffer");
  EXPECT_EQ(runWith({"x=1", "y=1", "a=1", "-kernel=scal"}),
            "the file has no kernel 'scal'; did you mean 'scale'?");
}

} // namespace

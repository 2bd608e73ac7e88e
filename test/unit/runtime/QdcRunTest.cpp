// The parts of qdc-run: its command line, values, and how arguments meet a kernel.
#include "Samples.h"
#include "runtime/Npy.h"
#include "tools/qdc-run/Run.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace qd::rt;

namespace {

constexpr ElementType f32{ScalarType::F32, 1};
constexpr ElementType i32{ScalarType::I32, 1};

std::string usageError(const std::vector<std::string> &words) {
  auto options = parseCommandLine(words);
  return options ? "" : options.message();
}

std::vector<double> floats(const Array &array) {
  std::vector<double> values;
  for (size_t i = 0; i < array.numScalars(); ++i)
    values.push_back(floatValue(array.type, array.bits(i)));
  return values;
}

std::string valueError(ElementType type, const std::string &value) {
  auto array = parseBufferValue("x", type, value);
  return array ? "" : array.message();
}

TEST(CommandLine, Parses) {
  auto options = parseCommandLine({"-device=cuda:1", "f.qdb", "--grid", "4,5", "x=@a=b.npy", "-O3", "n=-5",
                                   "-out", "y=o.npy", "--expect=y=1,2", "--time", "--subgroup-size=16"});
  ASSERT_TRUE(options) << options.message();
  EXPECT_EQ(options->file, "f.qdb");
  EXPECT_EQ(options->device, "cuda:1");
  EXPECT_EQ(options->grid.x, 4u);
  EXPECT_EQ(options->grid.y, 5u);
  EXPECT_EQ(options->grid.z, 1u);
  ASSERT_EQ(options->arguments.size(), 2u);
  EXPECT_EQ(options->arguments[0].value, "@a=b.npy");
  EXPECT_EQ(options->arguments[1].value, "-5");
  EXPECT_EQ(options->deviceOptions.optLevel, 3u);
  EXPECT_EQ(options->deviceOptions.subgroupSize, 16u);
  EXPECT_EQ(options->outputs[0].value, "o.npy");
  EXPECT_EQ(options->expectations[0].value, "1,2");
  EXPECT_EQ(options->timedRuns, 10u);
  EXPECT_EQ(options->repeats, 1u);
  EXPECT_EQ(parseCommandLine({"-", "-grid=1", "--repeat=100"})->repeats, 100u);
  EXPECT_EQ(parseCommandLine({"-", "-grid=1"})->file, "-");
  EXPECT_FALSE(options->deviceOptions.debug);
  EXPECT_TRUE(parseCommandLine({"-", "-grid=1", "-g"})->deviceOptions.debug);
  EXPECT_TRUE(parseCommandLine({"--help"})->help);
}

TEST(CommandLine, SaysWhatIsWrong) {
  EXPECT_NE(usageError({}).find("no file given"), std::string::npos);
  EXPECT_NE(usageError({"f.qir"}).find("no grid given"), std::string::npos);
  EXPECT_EQ(usageError({"f.qir", "-gird=1"}), "unknown option '-gird=1'; did you mean 'grid'?");
  EXPECT_EQ(usageError({"f.qir", "-grid=1,2,3,4"}), "-grid: '1,2,3,4' has more than three extents");
  EXPECT_EQ(usageError({"f.qir", "-grid=1,"}), "-grid: '' is not a number from 0 to 4294967295");
  EXPECT_EQ(usageError({"f.qir", "-grid"}), "--grid needs a value");
  EXPECT_EQ(usageError({"f.qir", "--help=1"}), "--help takes no value");
  EXPECT_EQ(usageError({"f.qir", "-grid=1", "x"}), "argument 'x' is not of the form NAME=VALUE");
  EXPECT_EQ(usageError({"f.qir", "-grid=1", "=3"}), "argument '=3' is not of the form NAME=VALUE");
  EXPECT_EQ(usageError({"f.qir", "-grid=1", "-out", "y"}), "-out: 'y' is not of the form NAME=VALUE");
  EXPECT_EQ(usageError({"f.qir", "-grid=1", "--print=some"}), "--print: 'some' is neither 'all' nor 'none'");
  EXPECT_EQ(usageError({"f.qir", "-grid=1", "--time=0"}), "--time: 0 runs, expected 1 to 1000000");
  EXPECT_EQ(usageError({"f.qir", "-grid=1", "--repeat=0"}), "--repeat: 0 launches, expected 1 to 1000000");
  EXPECT_NE(usageError({"f.qir", "-grid=1", "-O4"}), "");
  EXPECT_EQ(usageError({"f.qir", "-grid=1", "--check=all"}), "--check is for -device=interp, not cpu");
  EXPECT_EQ(usageError({"f.qir", "-grid=1", "--threads=2", "-device=cuda"}),
            "--threads is for -device=cpu, not cuda");
}

TEST(CommandLine, ListsLaunches) {
  EXPECT_EQ(parseCommandLine({"f.qdb", "--launches=l.txt"})->launches, "l.txt");
  EXPECT_EQ(usageError({"f.qdb", "--launches="}), "--launches: the file's name is empty");
  EXPECT_EQ(usageError({"f.qdb", "--launches=l.txt", "-grid=1"}),
            "with --launches, kernels, grids and arguments stand in the list, and nothing is timed");
  Options program;
  program.launches = "l.txt";
  auto launches = parseLaunches(program, "-kernel=a -grid=2 n=1 y=zeros:3 -expect y=1,2,3\n\n-grid=1,2 -kernel=b\n");
  ASSERT_TRUE(launches) << launches.message();
  ASSERT_EQ(launches->size(), 2u);
  EXPECT_EQ((*launches)[0].kernel, "a");
  EXPECT_EQ((*launches)[0].arguments.size(), 2u);
  EXPECT_EQ((*launches)[0].expectations[0].value, "1,2,3");
  EXPECT_EQ((*launches)[1].grid.y, 2u);
}

TEST(CommandLine, SaysWhatIsWrongInAList) {
  Options program;
  program.file = "f.qir";
  program.launches = "l.txt";
  auto error = [&](const char *text) { return parseLaunches(program, text).message(); };
  EXPECT_EQ(error("\n"), "'l.txt' has no launch");
  EXPECT_EQ(error("-grid=1\n-kernel=a\n"), "l.txt:2: no grid given: -grid=X[,Y,Z] says how many blocks run");
  EXPECT_EQ(error("-grid=1 -device=cpu\n"),
            "l.txt:1: --device is for the whole list, not for one of its launches");
  EXPECT_EQ(error("-grid=1 file\n"), "l.txt:1: argument 'file' is not of the form NAME=VALUE");
  EXPECT_EQ(error("-grid=1 -out y=o.npy\n-grid=2 -out z=./o.npy\n"),
            "l.txt: -out: 'y=o.npy' and 'z=./o.npy' are one file, expected a file for each");
  EXPECT_EQ(error("-grid=1 -out y=l.txt\n"),
            "l.txt: -out: 'y=l.txt' is the input 'l.txt' itself, expected another file");
  EXPECT_EQ(error("-grid=1 x=@a.npy\n-grid=1 -out y=a.npy\n"),
            "l.txt: -out: 'y=a.npy' is the input of 'x=@a.npy', expected another file");
  // What one launch leaves is what the next one may begin with.
  EXPECT_TRUE(parseLaunches(program, "-grid=1 -out y=o.npy\n-grid=1 x=@o.npy -out y=p.npy\n"));
}

TEST(CommandLine, OutputsOverwriteNothing) {
  auto errorOf = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"f.qir", "-grid=1"});
    return usageError(words);
  };
  EXPECT_EQ(errorOf({"-out", "y=o.npy", "-out", "z=o.npy"}),
            "-out: 'y=o.npy' and 'z=o.npy' are one file, expected a file for each");
  EXPECT_EQ(errorOf({"-out", "y=o.npy", "-out", "z=./p/../o.npy"}),
            "-out: 'y=o.npy' and 'z=./p/../o.npy' are one file, expected a file for each");
  EXPECT_EQ(errorOf({"-out", "y=f.qir"}), "-out: 'y=f.qir' is the input 'f.qir' itself, expected another file");
  EXPECT_EQ(errorOf({"x=@x.npy", "-out", "y=./x.npy"}),
            "-out: 'y=./x.npy' is the input of 'x=@x.npy', expected another file");
  EXPECT_EQ(errorOf({"y=@y.npy[0:4]", "-out", "y=y.npy"}),
            "-out: 'y=y.npy' is the input of 'y=@y.npy[0:4]', expected another file");
  EXPECT_EQ(errorOf({"-expect", "y=@o.npy:tol=1", "-out", "y=o.npy"}),
            "-out: 'y=o.npy' is the input of 'y=@o.npy:tol=1', expected another file");
  EXPECT_EQ(errorOf({"-out", "y=o.npy", "-out", "z=p.npy", "x=@x.npy"}), "");
  EXPECT_EQ(errorOf({"-out", "y=/dev/null", "-out", "z=/dev/null"}), "");

  // Links are the file that they lead to.
  std::string folder = testing::TempDir() + "qdc-run-links-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::string file = folder + "/a.npy", hard = folder + "/b.npy", soft = folder + "/c.npy";
  std::ofstream(file) << "1";
  std::filesystem::create_hard_link(file, hard);
  std::filesystem::create_symlink("a.npy", soft);
  for (const std::string &link : {hard, soft})
    EXPECT_EQ(errorOf({"-out", "y=" + file, "-out", "z=" + link}),
              "-out: 'y=" + file + "' and 'z=" + link + "' are one file, expected a file for each");
  std::filesystem::remove_all(folder);
}

TEST(Values, PartsOfFiles) {
  std::string file = testing::TempDir() + "parts.npy";
  Array whole = *makeArray(ScalarType::F32, {2, 3});
  for (size_t i = 0; i < 6; ++i)
    whole.setBits(i, floatBits(ScalarType::F32, static_cast<double>(i)));
  ASSERT_FALSE(writeNpy(file, whole));
  EXPECT_EQ(floats(*parseBufferValue("x", f32, "@" + file + "[2:5]")), (std::vector<double>{2, 3, 4}));
  EXPECT_EQ(parseBufferValue("x", f32, "@" + file + "[6:6]")->numScalars(), 0u);
  EXPECT_EQ(valueError(f32, "@" + file + "[2:7]"), "x: '" + file + "[2:7]' is not within the file's 6 elements");
  EXPECT_EQ(valueError(f32, "@" + file + "[3:2]"), "x: '" + file + "[3:2]' is not within the file's 6 elements");
  EXPECT_EQ(valueError(f32, "@" + file + "[3]"), "x: '[3]' is not of the form [FIRST:END]");
  EXPECT_EQ(valueError(f32, "@" + file + "[a:3]"), "x: '[a:3]' is not of the form [FIRST:END]");
  std::remove(file.c_str());
}

TEST(Values, AnyZero) {
  Array zeros = *parseBufferValue("y", f32, "0,-0");
  auto strict = parseExpectation("y", f32, "-0,0"), open = parseExpectation("y", f32, "-0,0:any-zero");
  ASSERT_TRUE(strict && open);
  EXPECT_TRUE(bool(compareArrays(*strict, zeros)));
  EXPECT_FALSE(bool(compareArrays(*open, zeros)));
  EXPECT_TRUE(bool(compareArrays(*parseExpectation("y", f32, "-0,1:any-zero"), zeros)));
}

TEST(Values, Generators) {
  EXPECT_EQ(floats(*parseBufferValue("x", f32, "iota:f32:3")), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(floats(*parseBufferValue("x", f32, "ones:2")), (std::vector<double>{1, 1}));
  EXPECT_EQ(floats(*parseBufferValue("x", f32, "full:f32:2:-inf"))[1], -INFINITY);
  EXPECT_EQ(floats(*parseBufferValue("x", f32, "1,-0.5,1e3")), (std::vector<double>{1, -0.5, 1000}));
  EXPECT_EQ(parseBufferValue("x", f32, "zeros:2x3")->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(parseBufferValue("x", f32, "zeros:0")->numScalars(), 0u);
  ElementType vec4{ScalarType::F32, 4};
  EXPECT_EQ(parseBufferValue("x", vec4, "zeros:vector<4xf32>:2")->shape, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(parseBufferValue("x", vec4, "zeros:f32:8")->shape, (std::vector<int64_t>{8}));
  EXPECT_EQ(parseBufferValue("x", {ScalarType::I1, 1}, "iota:4")->data, (std::vector<uint8_t>{0, 1, 0, 1}));
}

TEST(Values, RandomIsTheDocumentedSequence) {
  // The first output of SplitMix64 with seed 0, from its authors' reference code.
  EXPECT_EQ(randomBits(ScalarType::I64, 0, 0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(randomBits(ScalarType::I8, 0, 0), 0xE2u);
  for (const char *name : {"f16", "bf16", "f32", "f64"}) {
    double least = 1, most = -1, sum = 0;
    for (double value : floats(*parseBufferValue("x", *parseElementType(name), "random:4096:seed=3"))) {
      least = std::min(least, value);
      most = std::max(most, value);
      sum += value;
    }
    EXPECT_GE(least, -1) << name;
    EXPECT_LT(most, 1) << name;
    EXPECT_LT(least, -0.95) << name;
    EXPECT_LT(std::fabs(sum / 4096), 0.05) << name;
  }
  EXPECT_NE(parseBufferValue("x", f32, "random:8")->data,
            parseBufferValue("x", f32, "random:8:seed=1")->data);
  EXPECT_EQ(parseBufferValue("x", f32, "random:8")->data,
            parseBufferValue("x", f32, "random:8:seed=0")->data);
}

TEST(Values, SaysWhatIsWrong) {
  EXPECT_EQ(valueError(f32, ""), "x has no value");
  EXPECT_EQ(valueError(f32, "zeros:f64:3"), "x is a buffer of f32, 'zeros:f64:3' makes f64");
  EXPECT_EQ(valueError(f32, "zeros"), "x: 'zeros' lacks a count, expected zeros:f32:COUNT");
  EXPECT_NE(valueError(f32, "zeros:f31:3").find("no type of ours"), std::string::npos);
  EXPECT_NE(valueError(f32, "zeros:4x").find("not a count or a shape"), std::string::npos);
  EXPECT_NE(valueError(f32, "zeros:-4").find("not a count or a shape"), std::string::npos);
  EXPECT_EQ(valueError(f32, "zeros:4:1"), "x: 'zeros:4:1' has '1' too much");
  EXPECT_EQ(valueError(f32, "random:4:sed=1"), "x: 'random:4:sed=1' has 'sed=1' too much");
  EXPECT_NE(valueError(f32, "zero:4").find("did you mean 'zeros'?"), std::string::npos);
  EXPECT_NE(valueError(f32, "zeros:9999999999999999").find("exceeds this machine's memory"),
            std::string::npos);
  EXPECT_NE(valueError(i32, "1,2.5"), "");
  EXPECT_NE(valueError(i32, "1,,2"), "");
  EXPECT_NE(valueError({ScalarType::F32, 4}, "1,2,3").find("not a multiple of 4"), std::string::npos);
  EXPECT_NE(valueError(f32, "@/nonexistent.npy").find("cannot open '/nonexistent.npy'"), std::string::npos);
}

TEST(Values, FilesAreTyped) {
  std::string path = testing::TempDir() + "values-test.npy";
  Array array = *makeArray(ScalarType::I16, {2, 2});
  array.isUnsigned = true;
  ASSERT_FALSE(writeNpy(path, array));
  EXPECT_EQ(parseBufferValue("x", {ScalarType::BF16, 1}, "@" + path)->type, ScalarType::BF16);
  EXPECT_EQ(parseBufferValue("x", {ScalarType::I16, 1}, "@" + path)->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(valueError(f32, "@" + path), "x is a buffer of f32, '" + path + "' holds i16");
  std::remove(path.c_str());
}

TEST(Expect, ComparesExactlyOrWithin) {
  auto difference = [](ElementType type, const std::string &want, const std::string &got) {
    auto expectation = parseExpectation("y", type, want);
    if (!expectation)
      return expectation.message();
    Error error = compareArrays(*expectation, *parseBufferValue("y", type, got));
    return error ? error.message() : std::string();
  };
  EXPECT_EQ(difference(f32, "1,nan,-inf", "1,nan,-inf"), "");
  EXPECT_EQ(difference(f32, "1,2,3", "1,2.5,4"), "y[1] is 2.5, expected 2; 2 of 3 values differ");
  EXPECT_EQ(difference(f32, "0", "-0"), "y[0] is -0, expected 0; 1 of 1 values differ");
  EXPECT_EQ(difference(f32, "0:tol=0", "-0"), "");
  EXPECT_EQ(difference(f32, "1000:tol=1e-3", "1001"), "");
  EXPECT_NE(difference(f32, "1000:tol=1e-3", "1001.5"), "");
  EXPECT_NE(difference(f32, "nan:tol=1", "0"), "");
  EXPECT_NE(difference(f32, "inf:tol=1", "1"), "");
  EXPECT_EQ(difference(i32, "5:tol=1", "6"), "");
  EXPECT_EQ(difference(i32, "1,2,...", "1,2,3,4"), "");
  EXPECT_NE(difference(i32, "1,2,...", "1"), "");
  EXPECT_EQ(difference(i32, "1,2", "1,2,3"), "y has 3 values, 2 were expected");
  EXPECT_EQ(difference(i32, "0,0,0,9,...", "zeros:2x3"), "y[1,0] is 0, expected 9; 1 of 4 values differ");
  EXPECT_EQ(difference(i32, "1:tol=-1", "1"), "-expect y: the tolerance '-1' is not a number from 0 up");
}

TEST(Print, IsShortUnlessAsked) {
  Array array = *parseBufferValue("y", i32, "iota:100");
  EXPECT_EQ(describeArray("y", array, false), "y: i32[100] = 0, 1, 2, 3, 4, 5, 6, 7, ..., 97, 98, 99");
  EXPECT_EQ(describeArray("y", *parseBufferValue("y", i32, "iota:2x2"), false), "y: i32[2x2] = 0, 1, 2, 3");
  EXPECT_EQ(describeArray("y", *parseBufferValue("y", i32, "iota:0"), false), "y: i32[0] =");
  EXPECT_NE(describeArray("y", array, true).find("49, 50, 51"), std::string::npos);
}

TEST(Arguments, MeetTheKernelByName) {
  Interface interface = *parseInterface(sampleInterface(32));
  const Kernel &kernel = *interface.find("scale");
  auto failure = [&](const std::vector<Assignment> &assignments) {
    auto bound = bindArguments(kernel, assignments);
    return bound ? std::string() : bound.message();
  };
  auto bound = bindArguments(kernel, {{"n", "3"}, {"a", "0.5"}, {"y", "zeros:3"}, {"x", "1,2,3"}});
  ASSERT_TRUE(bound) << bound.message();
  EXPECT_EQ((*bound)[0].parameter->name, "x");
  EXPECT_EQ((*bound)[3].bits, 3u);
  EXPECT_EQ(failure({{"n", "3"}, {"a", "0.5"}, {"y", "zeros:3"}}),
            "argument 'x' of kernel 'scale' is missing; kernel 'scale' takes x: buffer<f32> readonly, y: "
            "buffer<f32> writeonly, a: f32, n: i32");
  EXPECT_EQ(failure({{"m", "3"}}), "kernel 'scale' has no argument 'm'; there is x, y, a, n");
  EXPECT_EQ(failure({{"n", "3"}, {"n", "4"}}), "argument 'n' of kernel 'scale' is given twice");
  EXPECT_EQ(failure({{"n", "3.5"}, {"a", "0.5"}, {"y", "zeros:3"}, {"x", "1,2,3"}}),
            "argument 'n' of kernel 'scale': '3.5' is not an i32 (expected an integer)");
}

TEST(Arguments, TheKernelIsChosen) {
  Interface interface = *parseInterface(sampleInterface(32));
  EXPECT_EQ((*chooseKernel(interface, "wide"))->name, "wide");
  EXPECT_EQ(chooseKernel(interface, "wid").message(), "the file has no kernel 'wid'; did you mean 'wide'?");
  EXPECT_EQ(chooseKernel(interface, "").message(),
            "the file has 4 kernels, -kernel=NAME chooses one; there is scale, lanes, big, wide");
  interface.kernels.resize(1);
  EXPECT_EQ((*chooseKernel(interface, ""))->name, "scale");
}

} // namespace

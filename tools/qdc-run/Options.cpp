// Parsing qdc-run's command line: options with one or two dashes, the first other word is the file, all
// further ones are NAME=VALUE.
#include "tools/qdc-run/Options.h"
#include "tools/qdc-run/Values.h"

#include <charconv>
#include <filesystem>
#include <iterator>
#include <sstream>

namespace qd::rt {

namespace {

Expected<uint32_t> parseNumber(const std::string &what, std::string_view digits) {
  uint32_t number = 0;
  auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || result.ptr != digits.data() + digits.size() || result.ec != std::errc())
    return fail(what, ": '", digits, "' is not a number from 0 to ", UINT32_MAX);
  return number;
}

Expected<Assignment> parseAssignment(const std::string &what, const std::string &word) {
  size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(what, "'", word, "' is not of the form NAME=VALUE");
  return Assignment{word.substr(0, equals), word.substr(equals + 1)};
}

Error parseGrid(const std::string &value, Grid &grid) {
  uint32_t *extents[3] = {&grid.x, &grid.y, &grid.z};
  std::string_view rest = value;
  for (uint32_t *extent : extents) {
    size_t comma = rest.find(',');
    auto number = parseNumber("-grid", rest.substr(0, comma));
    if (!number)
      return number.error();
    *extent = *number;
    if (comma == std::string_view::npos)
      return Error::success();
    rest.remove_prefix(comma + 1);
  }
  return fail("-grid: '", value, "' has more than three extents");
}

struct OptionRow {
  const char *name;
  enum { None, Required, Optional } value;
  /// Whether a launch of a list may have it.
  bool ofLaunch;
  /// The value is empty where none is given.
  Error (*apply)(Options &options, const std::string &value);
};

Error setNumber(const char *option, const std::string &value, uint32_t &target) {
  auto number = parseNumber(option, value);
  if (!number)
    return number.error();
  target = *number;
  return Error::success();
}

/// How many times something is done.
Error setTimes(const char *option, const char *what, const std::string &value, uint32_t &target) {
  constexpr uint32_t most = 1000000;
  if (setNumber(option, value, target) || target == 0 || target > most)
    return fail(option, ": ", value, " ", what, ", expected 1 to ", most);
  return Error::success();
}

const OptionRow optionTable[] = {
    {"help", OptionRow::None, false,
     [](Options &o, const std::string &) {
       o.help = true;
       return Error::success();
     }},
    {"version", OptionRow::None, false,
     [](Options &o, const std::string &) {
       o.version = true;
       return Error::success();
     }},
    {"list-devices", OptionRow::None, false,
     [](Options &o, const std::string &) {
       o.listDevices = true;
       return Error::success();
     }},
    {"device", OptionRow::Required, false,
     [](Options &o, const std::string &value) {
       o.device = value;
       return Error::success();
     }},
    {"kernel", OptionRow::Required, true,
     [](Options &o, const std::string &value) {
       o.kernel = value;
       return Error::success();
     }},
    {"grid", OptionRow::Required, true,
     [](Options &o, const std::string &value) { return parseGrid(value, o.grid); }},
    {"out", OptionRow::Required, true,
     [](Options &o, const std::string &value) {
       auto assignment = parseAssignment("-out: ", value);
       if (!assignment)
         return assignment.error();
       o.outputs.push_back(std::move(*assignment));
       return Error::success();
     }},
    {"expect", OptionRow::Required, true,
     [](Options &o, const std::string &value) {
       auto assignment = parseAssignment("-expect: ", value);
       if (!assignment)
         return assignment.error();
       o.expectations.push_back(std::move(*assignment));
       return Error::success();
     }},
    {"print", OptionRow::Required, false,
     [](Options &o, const std::string &value) {
       if (value != "all" && value != "none")
         return fail("--print: '", value, "' is neither 'all' nor 'none'");
       o.print = value == "all" ? Options::Print::All : Options::Print::None;
       return Error::success();
     }},
    {"time", OptionRow::Optional, false,
     [](Options &o, const std::string &value) {
       o.timedRuns = 10;
       if (value.empty())
         return Error::success();
       return setTimes("--time", "runs", value, o.timedRuns);
     }},
    {"repeat", OptionRow::Required, false,
     [](Options &o, const std::string &value) {
       return setTimes("--repeat", "launches", value, o.repeats);
     }},
    {"launches", OptionRow::Required, false,
     [](Options &o, const std::string &value) {
       if (value.empty())
         return fail("--launches: the file's name is empty");
       o.launches = value;
       return Error::success();
     }},
    {"subgroup-size", OptionRow::Required, false,
     [](Options &o, const std::string &value) {
       return setNumber("--subgroup-size", value, o.deviceOptions.subgroupSize);
     }},
    {"block", OptionRow::Required, false,
     [](Options &o, const std::string &value) {
       o.deviceOptions.blocks += (o.deviceOptions.blocks.empty() ? "" : ",") + value;
       return Error::success();
     }},
    {"bind", OptionRow::Required, false,
     [](Options &o, const std::string &value) {
       o.deviceOptions.bind += (o.deviceOptions.bind.empty() ? "" : ",") + value;
       return Error::success();
     }},
    {"occupancy", OptionRow::None, false,
     [](Options &o, const std::string &) {
       o.occupancy = true;
       return Error::success();
     }},
    {"g", OptionRow::None, false,
     [](Options &o, const std::string &) {
       o.deviceOptions.debug = true;
       return Error::success();
     }},
    {"threads", OptionRow::Required, false,
     [](Options &o, const std::string &value) {
       return setNumber("--threads", value, o.deviceOptions.threads);
     }},
    {"time-limit", OptionRow::Required, false,
     [](Options &o, const std::string &value) {
       return setNumber("--time-limit", value, o.deviceOptions.launchTimeLimit);
     }},
    {"check", OptionRow::Required, false,
     [](Options &o, const std::string &value) {
       o.deviceOptions.checks = value;
       return Error::success();
     }},
};

std::vector<std::string> optionNames() {
  std::vector<std::string> names;
  for (const OptionRow &row : optionTable)
    names.push_back(row.name);
  return names;
}

Error parseOption(const std::vector<std::string> &words, size_t &at, bool ofLaunch, Options &options,
                  bool &sawGrid) {
  const std::string &word = words[at];
  std::string name = word.substr(word.compare(0, 2, "--") == 0 ? 2 : 1);
  std::optional<std::string> value;
  if (size_t equals = name.find('='); equals != std::string::npos) {
    value = name.substr(equals + 1);
    name.resize(equals);
  }
  if (name == "h")
    name = "help";
  if (!ofLaunch && name.size() == 2 && name[0] == 'O' && name[1] >= '0' && name[1] <= '3' && !value) {
    options.deviceOptions.optLevel = static_cast<uint32_t>(name[1] - '0');
    return Error::success();
  }
  for (const OptionRow &row : optionTable) {
    if (name != row.name)
      continue;
    if (ofLaunch && !row.ofLaunch)
      return fail("--", name, " is for the whole list, not for one of its launches");
    if (row.value == OptionRow::None && value)
      return fail("--", name, " takes no value");
    if (row.value == OptionRow::Required && !value) {
      if (at + 1 == words.size())
        return fail("--", name, " needs a value");
      value = words[++at];
    }
    sawGrid |= name == "grid";
    return row.apply(options, value.value_or(""));
  }
  return fail("unknown option '", word, "'", suggestion(name, optionNames()));
}

/// Options and NAME=VALUE; the first other word is the file, which a launch of a list has not.
Error parseWords(const std::vector<std::string> &words, bool ofLaunch, Options &options, bool &sawGrid) {
  for (size_t at = 0; at < words.size(); ++at) {
    const std::string &word = words[at];
    if (word.size() > 1 && word[0] == '-') {
      if (Error error = parseOption(words, at, ofLaunch, options, sawGrid))
        return error;
    } else if (!ofLaunch && options.file.empty()) {
      if (word.empty())
        return fail("the file's name is empty");
      options.file = word;
    } else {
      auto assignment = parseAssignment("argument ", word);
      if (!assignment)
        return assignment.error();
      options.arguments.push_back(std::move(*assignment));
    }
  }
  return Error::success();
}

/// Whether two names are one file, which need not be there; never for a device, which nothing is lost in.
bool isSameFile(const std::string &one, const std::string &other) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::file_status status = fs::status(one, error);
  if (fs::exists(status))
    return fs::is_regular_file(status) && fs::equivalent(one, other, error) && !error;
  fs::path first = fs::weakly_canonical(fs::absolute(one, error), error);
  return !error && first == fs::weakly_canonical(fs::absolute(other, error), error) && !error;
}

std::string print(const Assignment &assignment) { return "'" + assignment.name + "=" + assignment.value + "'"; }

/// What is written must not overwrite another output, nor what has been read before; a later launch may read it.
/// `program` has the files beside the launches'.
Error checkOutputs(const Options &program, const std::vector<Options> &launches) {
  struct Input {
    Assignment given;
    std::string file;
  };
  std::vector<Input> inputs;
  std::vector<Assignment> outputs;
  for (const Options &launch : launches) {
    for (const Assignment &argument : launch.arguments)
      inputs.push_back({argument, fileOf(argument.value)});
    for (const Assignment &expected : launch.expectations)
      inputs.push_back({expected, fileOf(splitExpectation(expected.value).array)});
    for (const Assignment &output : launch.outputs) {
      for (const std::string &read : {program.file, program.launches})
        if (!read.empty() && isSameFile(output.value, read))
          return fail("-out: ", print(output), " is the input '", read, "' itself, expected another file");
      for (const Input &input : inputs)
        if (!input.file.empty() && isSameFile(output.value, input.file))
          return fail("-out: ", print(output), " is the input of ", print(input.given), ", expected another file");
      for (const Assignment &earlier : outputs)
        if (isSameFile(output.value, earlier.value))
          return fail("-out: ", print(earlier), " and ", print(output), " are one file, expected a file for each");
      outputs.push_back(output);
    }
  }
  return Error::success();
}

constexpr const char *noGrid = "no grid given: -grid=X[,Y,Z] says how many blocks run";

} // namespace

Expected<Options> parseCommandLine(const std::vector<std::string> &words) {
  Options options;
  bool sawGrid = false;
  if (Error error = parseWords(words, /*ofLaunch=*/false, options, sawGrid))
    return error;
  if (options.help || options.version || options.listDevices)
    return options;
  if (options.file.empty())
    return fail("no file given; 'qdc-run --help' shows how it is used");
  if (!options.launches.empty()) {
    if (sawGrid || !options.kernel.empty() || !options.arguments.empty() || !options.outputs.empty() ||
        !options.expectations.empty() || options.timedRuns)
      return fail("with --launches, kernels, grids and arguments stand in the list, and nothing is timed");
  } else if (!sawGrid && !options.occupancy) {
    return fail(noGrid);
  }
  if (!options.deviceOptions.checks.empty() && options.device != "interp")
    return fail("--check is for -device=interp, not ", options.device);
  if (options.deviceOptions.threads && options.device != "cpu")
    return fail("--threads is for -device=cpu, not ", options.device);
  if (Error error = checkOutputs(options, {options}))
    return error;
  return options;
}

Expected<std::vector<Options>> parseLaunches(const Options &program, const std::string &text) {
  const std::string &name = program.launches;
  std::vector<Options> launches;
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream stream(line);
    std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
    if (words.empty())
      continue;
    Options options;
    bool sawGrid = false;
    Error error = parseWords(words, /*ofLaunch=*/true, options, sawGrid);
    if (!error && !sawGrid)
      error = fail(noGrid);
    if (error)
      return fail(name, ":", number, ": ", error.message());
    options.print = Options::Print::None;
    launches.push_back(std::move(options));
  }
  if (launches.empty())
    return fail("'", name, "' has no launch");
  if (Error error = checkOutputs(program, launches))
    return fail(name, ": ", error.message());
  return launches;
}

std::string helpText() {
  return R"(qdc-run: runs a GPU kernel of a QIR file or a compiled bundle

usage: qdc-run FILE.qir|FILE.qdb -grid=X[,Y,Z] [OPTIONS] NAME=VALUE...

FILE is QIR text or bytecode, or a bundle made by qdc; '-' reads standard input.
Each kernel argument is given by its name:

  n=1000                    a scalar: integer (also 0x..), float, inf, nan, true, false
  x=1,2,3                   a buffer of these values, of the kernel's type
  x=@in.npy                 a buffer from a NumPy file; its shape is kept for the output
  x=@in.npy[64:128]         elements 64 to 127 of it, in C order
  x=zeros:f32:1024          COUNT may be a shape (64x64); the type may be left out (zeros:1024)
  x=ones:f32:1024           ones
  x=iota:i32:64             0, 1, 2, ...
  x=full:f32:64:2.5         one value
  x=random:f32:4096:seed=1  floats uniform in [-1, 1), integers over their full range

Types: i1 i8 i16 i32 i64 f16 bf16 f32 f64. In .npy files i1 is bool, and bf16 is uint16.
random is SplitMix64: element k of seed s mixes s + (k+1) * 0x9E3779B97F4A7C15; of the 64 bits
the topmost make an integer, or with the type's significand of p bits the float top_p / 2^(p-1) - 1.

where it runs:
  -device=DEVICE        cpu (default), interp, sim:CHIP (sim:sm_80), vulkan, cuda, hip; :N picks
                        one of several (cuda:1). FILE.qir is compiled for the device
  --list-devices        every device, or why it is absent
  -kernel=NAME          the kernel, where the file has several
  -grid=X[,Y,Z]         blocks to run; the block's size is the kernel's own
  -block=NAME=X[xY[xZ]] another block size for a resizable kernel, compiled on the spot
  -bind=NAME=VALUE      makes a scalar argument a constant of the compiled kernel; KERNEL.NAME is of that kernel
                        alone. It is not given again among the arguments
  --occupancy           prints how many blocks of the kernel run at once on the device, and launches nothing
  --launches=LIST       many launches of the file's kernels instead: a line of the file LIST each, with its
                        -kernel, -grid, NAME=VALUE, -out and -expect. Prints a line for each, "passed: KERNEL"
                        or "FAILED: KERNEL: why", and goes on; at last "N passed, M failed"
  --subgroup-size=N     lanes of a subgroup, where the device has a choice
  -O0 .. -O3            optimisation of a FILE.qir (2)
  -g                    compiles a FILE.qir for cuda, hip and vulkan with its lines, for debuggers and profilers
  --threads=N           threads of the cpu device (one a processor)
  --time-limit=MS       milliseconds that each launch may take on cpu, interp and sim; no limit by default
  --check=LIST          checks of the interp device, no others: all, none, or some of poison, divergence,
                        uninitialized, promises and races; without this option all but races. steps=N among
                        them limits waits: all,steps=1000

what comes out:
  (nothing)             prints each buffer that the kernel may write: name, type, shape, values
  -out y=out.npy        writes a buffer to a NumPy file instead; may be repeated, never over another output or an
                        input of this run
  -expect y=VALUE       compares a buffer instead, VALUE as above; a list may end in '...' to compare
                        only its beginning. Bit for bit, but any NaN equals any other;
                        y=VALUE:tol=1e-6 lets each element differ by 1e-6 * max(1, |expected|), and
                        y=VALUE:any-zero takes -0 for +0
  --print=all|none      prints all values of all written buffers, or nothing
  --repeat=N            launches N times (each launch of a list, too), always with the inputs as given, and
                        compares each time; buffers are printed and written after the last one
  --time[=RUNS]         the device's time of RUNS (10) further runs: median, least and most

Exit status: 0 on success, 1 when something failed or differed, 2 for a wrong command line.

examples:
  Add two vectors of 1000 elements, 256 threads a block, and print the sum:
    qdc-run add.qir -grid=4 n=1000 x=iota:f32:1000 y=ones:f32:1000 sum=zeros:f32:1000
  The same on the GPU, from files to a file:
    qdc-run add.qir -device=cuda -grid=4 n=1000 x=@x.npy y=@y.npy sum=zeros:f32:1000 -out sum=s.npy
  Test a bundle on Vulkan against known numbers:
    qdc-run reduce.qdb -device=vulkan -kernel=sum32 -grid=1 x=iota:f32:32 y=zeros:f32:1 -expect y=496
  Look for races and out-of-bounds accesses:
    qdc-run add.qir -device=interp --check=all -grid=4 n=1000 x=iota:1000 y=ones:1000 sum=zeros:1000
  Measure:
    qdc-run add.qdb -device=cuda -grid=4096 n=1048576 x=random:f32:1048576 y=random:f32:1048576 \
      sum=zeros:f32:1048576 --time=100 --print=none
)";
}

} // namespace qd::rt

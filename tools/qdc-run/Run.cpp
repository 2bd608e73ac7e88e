// The steps of one run, in order. All names and values of the command line are checked against the kernel's
// interface before anything is launched.
#include "tools/qdc-run/Run.h"
#include "runtime/File.h"
#include "runtime/Npy.h"

#include <algorithm>
#include <cstdio>

namespace qd::rt {

namespace {

std::string argumentOf(const Kernel &kernel, const std::string &name) {
  return "argument '" + name + "' of kernel '" + kernel.name + "'";
}

/// "kernel 'k' takes n: i32, x: buffer<f32> readonly".
std::string signature(const Kernel &kernel) {
  std::string result = "kernel '" + kernel.name + "' takes ";
  if (kernel.parameters.empty())
    return result + "no arguments";
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const Parameter &parameter = kernel.parameters[i];
    result += (i ? ", " : "") + parameter.name + ": ";
    result += parameter.isBuffer()
                  ? text("buffer<", parameter.rank == 3 ? "?x?x?x" : parameter.rank == 2 ? "?x?x" : "",
                         elementName(parameter.type), "> ", accessName(parameter.access))
                  : elementName(parameter.type);
  }
  return result;
}

std::vector<std::string> parameterNames(const Kernel &kernel, bool buffersOnly) {
  std::vector<std::string> names;
  for (const Parameter &parameter : kernel.parameters)
    if (!buffersOnly || parameter.isBuffer())
      names.push_back(parameter.name);
  return names;
}

/// The buffer that -out or -expect speaks of.
Expected<const Parameter *> findBuffer(const Kernel &kernel, const char *option, const std::string &name) {
  const Parameter *parameter = kernel.find(name);
  if (!parameter)
    return fail(option, ": kernel '", kernel.name, "' has no argument '", name, "'",
                suggestion(name, parameterNames(kernel, true)));
  if (!parameter->isBuffer())
    return fail(option, ": ", argumentOf(kernel, name), " is a scalar, expected a buffer");
  return parameter;
}

std::string duration(double seconds) {
  char line[64];
  if (seconds < 1e-3)
    std::snprintf(line, sizeof line, "%.2f us", seconds * 1e6);
  else if (seconds < 1)
    std::snprintf(line, sizeof line, "%.3f ms", seconds * 1e3);
  else
    std::snprintf(line, sizeof line, "%.3f s", seconds);
  return line;
}

/// Gives the buffers that the kernel may write the contents that they had before it; those that it does not read only
/// where `all`.
Error restore(const std::vector<Argument> &arguments, const std::vector<BoundArgument> &inputs, bool all) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (inputs[i].parameter->mayBeWritten() && (all || inputs[i].parameter->access == Access::ReadWrite))
      if (Error error = arguments[i].memory->upload(inputs[i].array.data.data(), inputs[i].array.data.size()))
        return error;
  return Error::success();
}

/// Launches some more times, each with the inputs that the first run had.
Error measure(unsigned runs, Module &module, const Kernel &kernel, Grid grid,
              const std::vector<Argument> &arguments, const std::vector<BoundArgument> &inputs) {
  std::vector<double> times;
  for (unsigned i = 0; i < runs; ++i) {
    if (Error error = restore(arguments, inputs, /*all=*/false))
      return error;
    auto seconds = module.launch(kernel.name, grid, arguments);
    if (!seconds)
      return seconds.error();
    times.push_back(*seconds);
  }
  std::sort(times.begin(), times.end());
  double median = (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
  std::printf("time: median %s, min %s, max %s (%u run%s)\n", duration(median).c_str(),
              duration(times.front()).c_str(), duration(times.back()).c_str(), runs, runs == 1 ? "" : "s");
  return Error::success();
}

bool names(const std::vector<Assignment> &assignments, const std::string &name) {
  return std::any_of(assignments.begin(), assignments.end(),
                     [&](const Assignment &assignment) { return assignment.name == name; });
}

} // namespace

Expected<const Kernel *> chooseKernel(const Interface &interface, const std::string &name) {
  std::vector<std::string> all;
  for (const Kernel &kernel : interface.kernels)
    all.push_back(kernel.name);
  if (name.empty()) {
    if (all.size() == 1)
      return &interface.kernels[0];
    if (all.empty())
      return fail("the file has no kernel");
    return fail("the file has ", all.size(), " kernels, -kernel=NAME chooses one", suggestion("", all));
  }
  if (const Kernel *kernel = interface.find(name))
    return kernel;
  return fail("the file has no kernel '", name, "'", suggestion(name, all));
}

Expected<std::vector<BoundArgument>> bindArguments(const Kernel &kernel,
                                                   const std::vector<Assignment> &assignments) {
  for (size_t i = 0; i < assignments.size(); ++i) {
    const std::string &name = assignments[i].name;
    if (!kernel.find(name))
      return fail("kernel '", kernel.name, "' has no argument '", name, "'",
                  suggestion(name, parameterNames(kernel, false)));
    for (size_t j = 0; j < i; ++j)
      if (assignments[j].name == name)
        return fail(argumentOf(kernel, name), " is given twice");
  }
  std::vector<BoundArgument> bound;
  for (const Parameter &parameter : kernel.parameters) {
    auto given = std::find_if(assignments.begin(), assignments.end(), [&](const Assignment &assignment) {
      return assignment.name == parameter.name;
    });
    std::string what = argumentOf(kernel, parameter.name);
    if (given == assignments.end())
      return fail(what, " is missing; ", signature(kernel));
    BoundArgument argument{&parameter, {}, 0};
    if (parameter.isBuffer()) {
      auto array = parseBufferValue(what, parameter.type, given->value);
      if (!array)
        return array.error();
      argument.array = std::move(*array);
    } else {
      auto bits = parseScalar(parameter.type.scalar, given->value);
      if (!bits)
        return fail(what, ": ", bits.message());
      argument.bits = *bits;
    }
    bound.push_back(std::move(argument));
  }
  return bound;
}

namespace {

/// The elements by dimension. What a buffer of one dimension gets may have any shape.
Expected<std::vector<int64_t>> extentsOf(const Kernel &kernel, const Parameter &parameter, const Array &array) {
  unsigned lanes = parameter.type.lanes;
  if (parameter.rank == 1)
    return std::vector<int64_t>{static_cast<int64_t>(array.numScalars() / lanes)};
  std::vector<int64_t> shape = array.shape;
  if (lanes > 1 && shape.size() == parameter.rank + 1 && shape.back() == lanes)
    shape.pop_back();
  else if (lanes > 1)
    return fail(argumentOf(kernel, parameter.name), " has ", parameter.rank, " dimensions of ",
                elementName(parameter.type), ", got the shape ", shapeText(array.shape));
  if (shape.size() != parameter.rank)
    return fail(argumentOf(kernel, parameter.name), " has ", parameter.rank, " dimensions, got the shape ",
                shapeText(array.shape));
  return shape;
}

Error runLaunch(Device &device, Module &module, const Options &options) {
  auto kernel = chooseKernel(module.interface(), options.kernel);
  if (!kernel)
    return kernel.error();

  auto inputs = bindArguments(**kernel, options.arguments);
  if (!inputs)
    return inputs.error();
  for (const Assignment &output : options.outputs) {
    auto parameter = findBuffer(**kernel, "-out", output.name);
    if (!parameter)
      return parameter.error();
    if (!(*parameter)->mayBeWritten())
      return fail("-out: ", argumentOf(**kernel, output.name), " is readonly, expected one that the kernel may write");
  }
  std::vector<Expectation> expectations;
  for (const Assignment &expected : options.expectations) {
    auto parameter = findBuffer(**kernel, "-expect", expected.name);
    if (!parameter)
      return parameter.error();
    auto expectation = parseExpectation(expected.name, (*parameter)->type, expected.value);
    if (!expectation)
      return expectation.error();
    expectations.push_back(std::move(*expectation));
  }

  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Argument> arguments;
  for (const BoundArgument &input : *inputs) {
    if (!input.parameter->isBuffer()) {
      arguments.push_back(Argument::scalar(input.parameter->type.scalar, input.bits));
      continue;
    }
    auto buffer = device.allocate(input.array.data.size());
    if (!buffer)
      return fail(argumentOf(**kernel, input.parameter->name), ": ", buffer.message());
    if (Error error = (*buffer)->upload(input.array.data.data(), input.array.data.size()))
      return error;
    auto extents = extentsOf(**kernel, *input.parameter, input.array);
    if (!extents)
      return extents.error();
    arguments.push_back(Argument::buffer(**buffer, input.parameter->type, *extents));
    buffers.push_back(std::move(*buffer));
  }
  std::vector<Array> results;
  for (const BoundArgument &input : *inputs)
    results.push_back(input.array);
  auto resultOf = [&](const std::string &name) -> const Array & {
    return results[static_cast<size_t>((*kernel)->find(name) - (*kernel)->parameters.data())];
  };
  auto compare = [&]() -> Error {
    for (const Expectation &expectation : expectations)
      if (Error error = compareArrays(expectation, resultOf(expectation.name)))
        return error;
    return Error::success();
  };
  /// A readonly buffer is never read back.
  auto launchOnce = [&]() -> Error {
    if (auto seconds = module.launch((*kernel)->name, options.grid, arguments); !seconds)
      return seconds.error();
    for (size_t i = 0; i < arguments.size(); ++i)
      if ((*inputs)[i].parameter->mayBeWritten())
        if (Error error = arguments[i].memory->download(results[i].data.data(), results[i].data.size()))
          return error;
    return Error::success();
  };
  for (unsigned number = 1; number < options.repeats; ++number) {
    Error error = launchOnce();
    if (!error)
      error = compare();
    if (error)
      return fail("launch ", number, " of ", options.repeats, ": ", error.message());
    if (Error error = restore(arguments, *inputs, /*all=*/true))
      return error;
  }
  if (Error error = launchOnce())
    return error;
  if (options.timedRuns)
    if (Error error = measure(options.timedRuns, module, **kernel, options.grid, arguments, *inputs))
      return error;

  for (const Assignment &output : options.outputs)
    if (Error error = writeNpy(output.value, resultOf(output.name)))
      return error;
  if (options.print != Options::Print::None)
    for (const BoundArgument &input : *inputs) {
      const std::string &name = input.parameter->name;
      bool all = options.print == Options::Print::All;
      bool handled = names(options.outputs, name) || names(options.expectations, name);
      if (input.parameter->mayBeWritten() && (all || !handled))
        std::printf("%s\n", describeArray(name, resultOf(name), all).c_str());
    }
  return compare();
}

Error printOccupancy(Module &module, const std::string &device, const Options &options) {
  auto kernel = chooseKernel(module.interface(), options.kernel);
  if (!kernel)
    return kernel.error();
  auto occupancy = module.occupancy((*kernel)->name);
  if (!occupancy)
    return occupancy.error();
  std::printf("%llu blocks of kernel '%s' run at once on each of %llu multiprocessors of %s, %llu in all\n",
              static_cast<unsigned long long>(occupancy->blocks), (*kernel)->name.c_str(),
              static_cast<unsigned long long>(occupancy->multiprocessors), device.c_str(),
              static_cast<unsigned long long>(occupancy->total()));
  return Error::success();
}

/// Each launch of a list, whatever becomes of those before it.
Error runLaunches(Device &device, Module &module, std::vector<Options> launches, unsigned repeats) {
  size_t failed = 0;
  for (Options &launch : launches) {
    launch.repeats = repeats;
    Error error = runLaunch(device, module, launch);
    failed += bool(error);
    auto kernel = chooseKernel(module.interface(), launch.kernel);
    std::string name = kernel ? (*kernel)->name : launch.kernel.empty() ? "(no kernel)" : launch.kernel;
    std::printf("%s: %s%s%s\n", error ? "FAILED" : "passed", name.c_str(), error ? ": " : "",
                error ? error.message().c_str() : "");
    // Where the next launch ends the process, this line tells which one it was.
    std::fflush(stdout);
  }
  std::printf("%zu passed, %zu failed\n", launches.size() - failed, failed);
  return failed ? fail(failed, " of ", launches.size(), " launches failed") : Error::success();
}

Expected<std::vector<Options>> readLaunches(const Options &options) {
  auto bytes = readFile(options.launches);
  if (!bytes)
    return bytes.error();
  return parseLaunches(options, {bytes->begin(), bytes->end()});
}

} // namespace

Error run(const Options &options) {
  std::vector<Options> launches;
  if (!options.launches.empty()) {
    auto list = readLaunches(options);
    if (!list)
      return list.error();
    launches = std::move(*list);
  }
  auto bytes = readFile(options.file);
  if (!bytes)
    return bytes.error();
  Program program{std::move(*bytes), options.file == "-" ? "<stdin>" : options.file};
  if (program.bytes.empty())
    return fail("'", program.name, "' is empty");
  auto device = Device::open(options.device, options.deviceOptions);
  if (!device)
    return device.error();
  auto module = (*device)->load(program);
  if (!module)
    return module.error();
  std::fputs((*module)->warnings().c_str(), stderr);
  if (options.occupancy)
    return printOccupancy(**module, (*device)->name(), options);
  return launches.empty() ? runLaunch(**device, **module, options)
                          : runLaunches(**device, **module, std::move(launches), options.repeats);
}

void printDevices() {
  std::vector<DeviceEntry> entries = listDevices();
  size_t width = 0;
  for (const DeviceEntry &entry : entries)
    width = std::max(width, entry.name.size());
  for (const DeviceEntry &entry : entries)
    std::printf("%-*s  %s%s\n", static_cast<int>(width), entry.name.c_str(),
                entry.present ? "" : "absent: ", entry.text.c_str());
}

} // namespace qd::rt

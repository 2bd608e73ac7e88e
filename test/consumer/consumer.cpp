// Compiles the kernel of a file to PTX and to a bundle, and runs the bundle on a device named on the command line.
#include "compiler/Compiler.h"
#include "runtime/Device.h"

#include <cstdio>
#include <fstream>
#include <iterator>

using namespace qd::rt;

static int report(const std::string &message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

static Error run(Device &device, const std::string &bundle) {
  auto module = device.load({{bundle.begin(), bundle.end()}, "sum32.qdb"});
  if (!module)
    return module.error();
  std::vector<float> src(128), dst(4);
  for (size_t i = 0; i < src.size(); ++i)
    src[i] = static_cast<float>(i);
  auto x = device.allocate(src.size() * sizeof(float)), y = device.allocate(dst.size() * sizeof(float));
  if (!x || !y)
    return x ? y.error() : x.error();
  if (Error error = (*x)->upload(src.data(), src.size() * sizeof(float)))
    return error;
  auto seconds = (*module)->launch("sum32", {1, 1, 1},
                                   {Argument::buffer(**x, {ScalarType::F32}, 128),
                                    Argument::buffer(**y, {ScalarType::F32}, 4)});
  if (!seconds)
    return seconds.error();
  if (Error error = (*y)->download(dst.data(), dst.size() * sizeof(float)))
    return error;
  std::printf("%s: %g %g %g %g\n", device.name().c_str(), dst[0], dst[1], dst[2], dst[3]);
  return Error::success();
}

int main(int argc, char **argv) {
  if (argc < 3)
    return report("usage: consumer FILE.qir DEVICE...");
  std::ifstream file(argv[1]);
  std::string qir{std::istreambuf_iterator<char>(file), {}};

  qd::CompileOptions options;
  options.targets = {"nvptx:sm_90"};
  options.emit = "ptx";
  qd::CompileResult ptx = qd::compile(qir, argv[1], options);
  if (!ptx.ok)
    return report(ptx.diagnostics);
  std::printf("%s\n", ptx.data.find("shfl.sync") != std::string::npos ? "ptx with shuffles" : "ptx without shuffles");

  options.targets = {"nvptx:sm_90", "amdgcn:gfx942"};
  options.emit = "qdb";
  qd::CompileResult bundle = qd::compile(qir, argv[1], options);
  if (!bundle.ok)
    return report(bundle.diagnostics);
  for (int i = 2; i < argc; ++i) {
    auto device = Device::open(argv[i]);
    if (!device)
      return report(device.message());
    if (Error error = run(**device, bundle.data))
      return report(error.message());
  }
  return 0;
}

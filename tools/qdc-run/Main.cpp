// qdc-run's entry: the command line in, one line for an error, the exit status out.
#include "tools/qdc-run/Run.h"

#include <cstdio>

using namespace qd::rt;

int main(int argc, char **argv) {
  auto complain = [](const Error &error, int status) {
    std::fflush(stdout);
    // Diagnostics of the compiler end their lines themselves.
    const std::string &message = error.message();
    bool ended = !message.empty() && message.back() == '\n';
    std::fprintf(stderr, "qdc-run: error: %s%s", message.c_str(), ended ? "" : "\n");
    return status;
  };
  auto options = parseCommandLine({argv + 1, argv + argc});
  if (!options)
    return complain(options.error(), 2);
  if (options->help) {
    std::fputs(helpText().c_str(), stdout);
  } else if (options->version) {
    std::puts("qdc-run " QD_VERSION);
  } else if (options->listDevices) {
    printDevices();
  } else if (Error error = run(*options)) {
    return complain(error, 1);
  }
  if (std::fflush(stdout) != 0)
    return complain(fail("cannot write to standard output"), 1);
  return 0;
}

// The command line of qdc-run as values. What parseCommandLine returns is well-formed by itself; whether it
// fits the module is found out later.
#ifndef QD_TOOLS_QDC_RUN_OPTIONS_H
#define QD_TOOLS_QDC_RUN_OPTIONS_H

#include "runtime/Device.h"

namespace qd::rt {

/// NAME=VALUE.
struct Assignment {
  std::string name;
  std::string value;
};

struct Options {
  enum class Print { Default, All, None };

  std::string file;
  std::string device = "cpu";
  std::string kernel;
  Grid grid;
  DeviceOptions deviceOptions;
  std::vector<Assignment> arguments;
  std::vector<Assignment> outputs;
  std::vector<Assignment> expectations;
  Print print = Print::Default;
  /// How often each launch is carried out and compared.
  unsigned repeats = 1;
  /// Timed runs; 0 for none.
  unsigned timedRuns = 0;
  bool help = false;
  bool version = false;
  bool listDevices = false;
  /// Tell how many blocks of the kernel run at once, and launch nothing.
  bool occupancy = false;
  /// A file with a launch a line; empty for the one launch of the command line.
  std::string launches;
};

/// The arguments after the program's name. Any failure is one of usage.
Expected<Options> parseCommandLine(const std::vector<std::string> &words);

/// The launches of the text of the list that the command line names, a line each.
Expected<std::vector<Options>> parseLaunches(const Options &program, const std::string &text);

std::string helpText();

} // namespace qd::rt

#endif // QD_TOOLS_QDC_RUN_OPTIONS_H

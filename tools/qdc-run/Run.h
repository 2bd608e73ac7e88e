// One run: opens the device, loads the file, binds the arguments by name, launches, and hands the results
// out.
#ifndef QD_TOOLS_QDC_RUN_RUN_H
#define QD_TOOLS_QDC_RUN_RUN_H

#include "tools/qdc-run/Options.h"
#include "tools/qdc-run/Values.h"

namespace qd::rt {

/// What a kernel's parameters are given, in their order.
struct BoundArgument {
  const Parameter *parameter;
  /// A buffer's contents.
  Array array;
  /// A scalar's value.
  uint64_t bits = 0;
};

/// The kernel that the options name, or the only one.
Expected<const Kernel *> chooseKernel(const Interface &interface, const std::string &name);

/// Matches NAME=VALUE with the kernel's parameters: each given once, none unknown, all of the right type.
Expected<std::vector<BoundArgument>> bindArguments(const Kernel &kernel,
                                                   const std::vector<Assignment> &assignments);

/// Prints results to standard output and warnings to standard error.
Error run(const Options &options);

void printDevices();

} // namespace qd::rt

#endif // QD_TOOLS_QDC_RUN_RUN_H

// A shared library opened at run time, for vendors' drivers and the compiler: nothing of theirs is needed to
// build or to start.
#ifndef QD_RUNTIME_LIBRARY_H
#define QD_RUNTIME_LIBRARY_H

#include "runtime/Error.h"

#include <vector>

namespace qd::rt {

class Library {
public:
  /// Opens the first of `names` that the system can load. The library stays loaded until the process ends:
  /// drivers start threads and exit handlers that outlive a handle.
  static Expected<Library> open(const std::vector<std::string> &names);

  /// The address of a symbol, null when the library has none.
  void *find(const char *symbol) const;
  /// The name it was opened by.
  const std::string &name() const { return libraryName; }

  /// Sets `function` to a symbol that must be there.
  template <typename Function> Error get(Function *&function, const char *symbol) const {
    function = reinterpret_cast<Function *>(find(symbol));
    if (!function)
      return fail(libraryName, " has no ", symbol);
    return Error::success();
  }

private:
  void *handle = nullptr;
  std::string libraryName;
};

/// Folders to look in for a library that ships with this one: that of the code itself and that of the
/// executable, and a `lib` folder beside each.
std::vector<std::string> siblingFolders();

} // namespace qd::rt

#endif // QD_RUNTIME_LIBRARY_H

// Opening shared libraries. RTLD_LOCAL keeps their symbols (an LLVM of a Vulkan driver, say) out of others'.
#include "runtime/Library.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

namespace qd::rt {

Expected<Library> Library::open(const std::vector<std::string> &names) {
  std::string reason;
  for (const std::string &name : names) {
    Library library;
    library.handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    library.libraryName = name;
    if (library.handle)
      return library;
    // A file that exists and does not load says more than the absence of the others.
    const char *message = dlerror();
    bool exists = name.find('/') != std::string::npos && access(name.c_str(), F_OK) == 0;
    if (exists && message)
      return fail("cannot load ", message);
    if (message && std::string(message).find("No such file") == std::string::npos && reason.empty())
      reason = text("cannot load ", message);
  }
  if (!reason.empty())
    return Error::failure(reason);
  std::string tried;
  for (const std::string &name : names)
    tried += (tried.empty() ? "" : ", ") + name;
  return fail("no ", tried, " found");
}

void *Library::find(const char *symbol) const { return dlsym(handle, symbol); }

std::vector<std::string> siblingFolders() {
  std::vector<std::string> files;
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&siblingFolders), &info) && info.dli_fname)
    files.push_back(info.dli_fname);
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length > 0 && length < static_cast<ssize_t>(sizeof path))
    files.emplace_back(path, static_cast<size_t>(length));

  std::vector<std::string> folders;
  for (const std::string &file : files) {
    char resolved[PATH_MAX];
    if (!realpath(file.c_str(), resolved))
      continue;
    std::string folder = resolved;
    folder.resize(folder.rfind('/'));
    for (const std::string &candidate : {folder, folder + "/../lib"})
      if (std::find(folders.begin(), folders.end(), candidate) == folders.end())
        folders.push_back(candidate);
  }
  return folders;
}

} // namespace qd::rt

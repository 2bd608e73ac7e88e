// Whole files to and from memory. Every failure, a short read or write included, is an error that names the
// file and the system's reason.
#include "runtime/File.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>

namespace qd::rt {

Expected<std::vector<uint8_t>> readFile(const std::string &path) {
  bool isStdin = path == "-";
  FILE *file = isStdin ? stdin : std::fopen(path.c_str(), "rb");
  if (!file)
    return fail("cannot open '", path, "': ", std::strerror(errno));
  struct stat status = {};
  if (fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode)) {
    if (!isStdin)
      std::fclose(file);
    return fail("cannot read '", path, "': it is a directory");
  }
  // A device or pipe can go on for ever.
  constexpr size_t maxStream = size_t(256) << 20;
  std::vector<uint8_t> bytes;
  bool isEndless = false;
  if (S_ISREG(status.st_mode) && status.st_size > 0)
    bytes.reserve(static_cast<size_t>(status.st_size));
  uint8_t chunk[65536];
  while (size_t got = isEndless ? 0 : std::fread(chunk, 1, sizeof chunk, file)) {
    bytes.insert(bytes.end(), chunk, chunk + got);
    isEndless = !S_ISREG(status.st_mode) && bytes.size() > maxStream;
  }
  int failed = std::ferror(file) ? errno : 0;
  if (!isStdin)
    std::fclose(file);
  if (failed)
    return fail("cannot read '", path, "': ", std::strerror(failed));
  if (isEndless)
    return fail("cannot read '", path, "': it gives more than ", maxStream >> 20, " MiB and is no regular file");
  return bytes;
}

Error writeFile(const std::string &path, const std::vector<uint8_t> &bytes) {
  FILE *file = std::fopen(path.c_str(), "wb");
  if (!file)
    return fail("cannot create '", path, "': ", std::strerror(errno));
  size_t written = std::fwrite(bytes.data(), 1, bytes.size(), file);
  int failed = written == bytes.size() ? 0 : errno;
  if (std::fclose(file) != 0 && !failed)
    failed = errno;
  if (failed)
    return fail("cannot write '", path, "': ", std::strerror(failed));
  return Error::success();
}

} // namespace qd::rt

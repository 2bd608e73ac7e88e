//===- DiskCache.cpp - entries, the file of counts, and eviction ------------------------------------===//

#include "compiler/DiskCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

using llvm::StringRef;

namespace qd {

static constexpr StringRef entrySuffix = ".qdc", temporaryPrefix = ".writing-";

namespace {
/// In front of an entry's bytes.
struct Header {
  char magic[8] = {'q', 'd', 'c', 'e', 'n', 't', 'r', '1'};
  CacheKey key;
  uint64_t size;
  uint64_t digest[2]; ///< of the key and the bytes
};

/// The file `usage`.
struct UsageFile {
  char magic[8] = {'q', 'd', 'c', 'u', 's', 'e', 'd', '1'};
  CacheUsage usage;
  uint64_t digest;
};

class File {
public:
  explicit File(int descriptor) : descriptor(descriptor) {}
  ~File() {
    if (descriptor >= 0)
      close(descriptor);
  }
  File(const File &) = delete;
  explicit operator bool() const { return descriptor >= 0; }
  int get() const { return descriptor; }

private:
  int descriptor;
};
} // namespace

static bool readAll(int file, void *into, size_t size) {
  auto *at = static_cast<char *>(into);
  while (size) {
    ssize_t got = read(file, at, size);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    at += got;
    size -= got;
  }
  return true;
}

static bool writeAll(int file, const void *from, size_t size) {
  auto *at = static_cast<const char *>(from);
  while (size) {
    ssize_t got = write(file, at, size);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    at += got;
    size -= got;
  }
  return true;
}

static Header makeHeader(const CacheKey &key, StringRef bytes) {
  Header header;
  header.key = key;
  header.size = bytes.size();
  // Of the key too: another key's entry under this name is none.
  uint64_t seed = llvm::xxh3_64bits(llvm::ArrayRef<uint8_t>(key));
  llvm::XXH128_hash_t digest = llvm::xxh3_128bits({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
  header.digest[0] = digest.low64 ^ seed;
  header.digest[1] = digest.high64;
  return header;
}

std::string DiskCache::getPath(const CacheKey &key) const {
  return folder + "/" + llvm::toHex(key, /*LowerCase=*/true) + entrySuffix.str();
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

static std::optional<std::string> readEntry(const std::string &path, const CacheKey &key) {
  constexpr off_t most = off_t(1) << 30;
  File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (!file || fstat(file.get(), &status) || !S_ISREG(status.st_mode) || status.st_size < off_t(sizeof(Header)) ||
      status.st_size > most)
    return std::nullopt;
  Header found;
  if (!readAll(file.get(), &found, sizeof found) || found.size != uint64_t(status.st_size) - sizeof found)
    return std::nullopt;
  std::string bytes(found.size, 0);
  if (!readAll(file.get(), bytes.data(), bytes.size()))
    return std::nullopt;
  Header wanted = makeHeader(key, bytes);
  if (memcmp(&found, &wanted, sizeof found))
    return std::nullopt;
  // The age that eviction goes by.
  futimens(file.get(), nullptr);
  return bytes;
}

std::optional<std::string> DiskCache::load(const CacheKey &key) {
  std::optional<std::string> bytes = readEntry(getPath(key), key);
  note(bytes.has_value());
  return bytes;
}

/// Locks the file, unless others keep it for longer than stores take: a process that is stopped must not hold up
/// compiles.
static bool takeTurn(int file) {
  constexpr auto patience = std::chrono::seconds(2);
  constexpr std::chrono::microseconds mostPause(10000);
  auto start = std::chrono::steady_clock::now();
  std::chrono::microseconds pause(100);
  while (flock(file, LOCK_EX | LOCK_NB)) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return true;
    if (std::chrono::steady_clock::now() - start > patience)
      return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, mostPause);
  }
  return true;
}

void DiskCache::store(const CacheKey &key, StringRef bytes) {
  uint64_t size = sizeof(Header) + bytes.size();
  if (size > limit || llvm::sys::fs::create_directories(folder, true, llvm::sys::fs::owner_all))
    return;
  // Stores take turns, so that the count holds for all files that are there. The kernel drops the lock of a process
  // that dies. Where files cannot be locked, the limit may be exceeded by what is being written.
  File usage(open((folder + "/usage").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!usage)
    return;
  if (!takeTurn(usage.get()) || !reserve(usage.get(), size))
    return;
  std::string path = folder + "/" + temporaryPrefix.str() + "XXXXXX";
  bool isWritten = false;
  {
    File file(mkostemp(path.data(), O_CLOEXEC));
    if (!file)
      return;
    Header header = makeHeader(key, bytes);
    isWritten = writeAll(file.get(), &header, sizeof header) && writeAll(file.get(), bytes.data(), bytes.size());
  }
  if (!isWritten || rename(path.c_str(), getPath(key).c_str()))
    unlink(path.c_str());
}

//===----------------------------------------------------------------------===//
// The file of counts
//===----------------------------------------------------------------------===//

static uint64_t digest(const CacheUsage &usage) {
  return llvm::xxh3_64bits({reinterpret_cast<const uint8_t *>(&usage), sizeof usage});
}

static bool readUsage(int file, CacheUsage &usage) {
  UsageFile found, wanted;
  if (pread(file, &found, sizeof found, 0) != ssize_t(sizeof found) ||
      memcmp(found.magic, wanted.magic, sizeof found.magic) || found.digest != digest(found.usage))
    return false;
  usage = found.usage;
  return true;
}

static bool writeUsage(int file, const CacheUsage &usage) {
  UsageFile content;
  content.usage = usage;
  content.digest = digest(usage);
  return pwrite(file, &content, sizeof content, 0) == ssize_t(sizeof content);
}

/// Counts an entry of `size` bytes before it is there, and makes room for it.
bool DiskCache::reserve(int file, uint64_t size) {
  CacheUsage usage;
  bool isKnown = readUsage(file, usage);
  if (!isKnown || usage.bytes + size > limit)
    tidy(usage, size);
  usage.bytes += size;
  ++usage.stores;
  usage.hits += hits.exchange(0);
  usage.misses += misses.exchange(0);
  return writeUsage(file, usage);
}

/// Counts a load at once if nobody else is at it, and later otherwise.
void DiskCache::note(bool isHit) {
  ++(isHit ? hits : misses);
  File file(open((folder + "/usage").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  CacheUsage usage;
  if (!file || flock(file.get(), LOCK_EX | LOCK_NB) || !readUsage(file.get(), usage))
    return;
  usage.hits += hits.exchange(0);
  usage.misses += misses.exchange(0);
  writeUsage(file.get(), usage);
}

//===----------------------------------------------------------------------===//
// Eviction
//===----------------------------------------------------------------------===//

namespace {
struct Entry {
  std::string name;
  uint64_t size;
  timespec used;
};
} // namespace

/// Calls `visit` with each file that a cache made, and its status.
template <typename Visit>
static void forEachFile(const std::string &folder, Visit visit) {
  DIR *directory = opendir(folder.c_str());
  if (!directory)
    return;
  while (const dirent *item = readdir(directory)) {
    StringRef name = item->d_name;
    struct stat status;
    if ((name.ends_with(entrySuffix) || name.starts_with(temporaryPrefix)) &&
        !fstatat(dirfd(directory), item->d_name, &status, AT_SYMLINK_NOFOLLOW) && S_ISREG(status.st_mode))
      visit(name, status);
  }
  closedir(directory);
}

/// Counts anew, removes what dead processes left, and the entries that were not used for longest, until there is room
/// for `size` bytes and some more.
void DiskCache::tidy(CacheUsage &usage, uint64_t size) {
  std::vector<Entry> entries;
  usage.bytes = 0;
  forEachFile(folder, [&](StringRef name, const struct stat &status) {
    if (name.starts_with(temporaryPrefix)) {
      unlink((folder + "/" + name.str()).c_str());
      return;
    }
    usage.bytes += status.st_size;
    entries.push_back({name.str(), uint64_t(status.st_size), status.st_mtim});
  });
  if (usage.bytes + size <= limit)
    return;
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec, a.name) < std::tie(b.used.tv_sec, b.used.tv_nsec, b.name);
  });
  // A fifth is freed at once, so that not every store tidies.
  uint64_t room = limit - limit / 5, kept = room > size ? room - size : 0;
  for (const Entry &entry : entries) {
    if (usage.bytes <= kept)
      break;
    if (unlink((folder + "/" + entry.name).c_str()) && errno != ENOENT)
      continue;
    usage.bytes -= entry.size;
    ++usage.evictions;
  }
}

uint64_t DiskCache::countEntries(CacheUsage &usage) {
  uint64_t entries = 0, bytes = 0;
  forEachFile(folder, [&](StringRef name, const struct stat &status) {
    if (name.ends_with(entrySuffix)) {
      ++entries;
      bytes += status.st_size;
    }
  });
  usage = {};
  File file(open((folder + "/usage").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file)
    readUsage(file.get(), usage);
  usage.bytes = bytes;
  return entries;
}

} // namespace qd

//===- DiskCache.h - a folder of entries that many processes share -----------------------------===//
//
// Purpose: keeps bytes by key in files, within a limit.
// Invariants: a file under its final name is whole, since it got there by a rename; a load gives what was stored under
// that very key or nothing, whatever the folder holds; a process that dies at any point leaves at most a
// temporary file and a count that is too high, which the next tidying up corrects. A folder that cannot be written is
// read, one that cannot be read is as good as none: no call fails.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_DISKCACHE_H
#define QD_COMPILER_DISKCACHE_H

#include "llvm/ADT/StringRef.h"
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace qd {

using CacheKey = std::array<uint8_t, 32>;

/// What a folder's file `usage` says.
struct CacheUsage {
  uint64_t bytes = 0, hits = 0, misses = 0, stores = 0, evictions = 0;
};

/// Thread-safe.
class DiskCache {
public:
  /// Makes no folder until something is stored. `limit` bounds the files' bytes.
  DiskCache(std::string folder, uint64_t limit) : folder(std::move(folder)), limit(limit) {}

  std::optional<std::string> load(const CacheKey &key);
  void store(const CacheKey &key, llvm::StringRef bytes);

  /// Counts the entries by looking at each.
  uint64_t countEntries(CacheUsage &usage);
  const std::string &getFolder() const { return folder; }
  uint64_t getLimit() const { return limit; }

private:
  std::string getPath(const CacheKey &key) const;
  bool reserve(int file, uint64_t size);
  void tidy(CacheUsage &usage, uint64_t size);
  void note(bool isHit);

  const std::string folder;
  const uint64_t limit;
  /// Not yet in the file.
  std::atomic<uint64_t> hits{0}, misses{0};
};

} // namespace qd

#endif

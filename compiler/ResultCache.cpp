//===- ResultCache.cpp - policies, keys, memory, and compiling once ---------------------------------===//

#include "compiler/ResultCache.h"

#include "compiler/BuildId.h"
#include "compiler/Bytes.h"
#include "compiler/Ptxas.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/TargetParser/Host.h"
#include <condition_variable>
#include <cstdlib>
#include <list>
#include <map>
#include <mutex>
#include <tuple>

using llvm::StringRef;

namespace qd {

//===----------------------------------------------------------------------===//
// Policies
//===----------------------------------------------------------------------===//

static std::string getVariable(StringRef name) { return llvm::sys::Process::GetEnv(name).value_or(""); }

static CachePolicy findPolicy(const CompileOptions &options) {
  if (StringRef(getVariable("QDC_CACHE")).equals_insensitive("off"))
    return CachePolicy::Off;
  if (options.cache == CachePolicy::Environment)
    return getVariable("QDC_CACHE_DIR").empty() ? CachePolicy::Off : CachePolicy::Disk;
  return options.cache;
}

/// "" where nothing names one.
static std::string findFolder(const CompileOptions &options) {
  if (!options.cacheFolder.empty())
    return options.cacheFolder;
  if (std::string named = getVariable("QDC_CACHE_DIR"); !named.empty())
    return named;
  // Relative ones are to be ignored, says the standard of this variable.
  if (std::string base = getVariable("XDG_CACHE_HOME"); llvm::sys::path::is_absolute(base))
    return base + "/qdc";
  std::string home = getVariable("HOME");
  return home.empty() ? "" : home + "/.cache/qdc";
}

/// "512M" in bytes.
static std::optional<uint64_t> parseSize(StringRef text) {
  uint64_t value = 0;
  if (text.consumeInteger(10, value) || value == 0 || text.size() > 1)
    return std::nullopt;
  size_t unit = text.empty() ? 0 : StringRef("KMG").find(llvm::toUpper(text.front())) + 1;
  if ((!text.empty() && !unit) || value > UINT64_MAX >> (10 * unit))
    return std::nullopt;
  return value << (10 * unit);
}

static uint64_t findLimit(const CompileOptions &options) {
  constexpr uint64_t usual = uint64_t(1) << 30;
  return options.cacheBytes ? options.cacheBytes : parseSize(getVariable("QDC_CACHE_SIZE")).value_or(usual);
}

/// What in the environment has not the effect, or another, than whoever set it may think.
static std::string describeEnvironment() {
  std::string text;
  if (std::string value = getVariable("QDC_CACHE"); StringRef(value).equals_insensitive("off"))
    text += "QDC_CACHE is 'off': nothing is looked up or kept\n";
  else if (!value.empty())
    text += "QDC_CACHE is '" + value + "', which has no effect: expected 'off'\n";
  if (std::string size = getVariable("QDC_CACHE_SIZE"); !size.empty() && !parseSize(size))
    text +=
        "QDC_CACHE_SIZE is '" + size + "', which has no effect: expected a number, with K, M or G behind it or none\n";
  return text;
}

static std::shared_ptr<DiskCache> openFolder(const CompileOptions &options) {
  std::string folder = findFolder(options);
  if (folder.empty())
    return nullptr;
  static auto &mutex = *new std::mutex;
  static auto &open = *new std::map<std::pair<std::string, uint64_t>, std::shared_ptr<DiskCache>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<DiskCache> &cache = open[{folder, findLimit(options)}];
  if (!cache)
    cache = std::make_shared<DiskCache>(folder, findLimit(options));
  return cache;
}

std::shared_ptr<DiskCache> getDiskCache(const CompileOptions &options) {
  return findPolicy(options) == CachePolicy::Disk ? openFolder(options) : nullptr;
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// Which ptxas would be run: it may be replaced by another at any time.
static void writePtxas(ByteWriter &writer) {
  std::optional<std::string> path = findPtxas();
  llvm::sys::fs::file_status status;
  if (!path || llvm::sys::fs::status(*path, status))
    return;
  writer.text(*path);
  writer.number(status.getSize());
  writer.number(status.getLastModificationTime().time_since_epoch().count());
}

/// The processor that the cpu target compiles for.
static std::string describeHost() {
  std::vector<std::string> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    if (feature.second)
      features.push_back(feature.first().str());
  // A map of strings has no order of its own.
  llvm::sort(features);
  const char *named = std::getenv("QDC_CPU");
  return (llvm::sys::getHostCPUName() + " " + llvm::join(features, " ") + " " + (named ? named : "")).str();
}

static CacheKey makeKey(std::string_view qir, std::string_view name, const CompileOptions &options) {
  static const auto &host = *new std::string(describeHost());
  ByteWriter writer;
  writer.text("result 1");
  writer.text(buildId);
  writer.text(getVersionText());
  writeOptions(options, writer);
  writer.text(StringRef(name.data(), name.size()));
  if (options.statistics || options.emit == "cubin" || StringRef(options.emit).starts_with("stats"))
    writePtxas(writer);
  if (llvm::any_of(options.targets, [](StringRef target) { return target.starts_with("cpu"); }))
    writer.text(host);
  llvm::BLAKE3 hasher;
  hasher.update(writer.take());
  hasher.update(StringRef(qir.data(), qir.size()));
  return hasher.final();
}

namespace {
/// Machine code beside the results.
class FolderStore : public CodeStore {
public:
  explicit FolderStore(std::shared_ptr<DiskCache> disk) : disk(std::move(disk)) {}
  std::optional<std::string> load(StringRef key) override { return disk->load(makeKey(key)); }
  void store(StringRef key, StringRef code) override { disk->store(makeKey(key), code); }

private:
  static CacheKey makeKey(StringRef key) {
    llvm::BLAKE3 hasher;
    hasher.update("code 1");
    hasher.update(StringRef(buildId));
    hasher.update(key);
    return hasher.final();
  }

  std::shared_ptr<DiskCache> disk;
};
} // namespace

std::shared_ptr<CodeStore> getCodeStore(const CompileOptions &options) {
  std::shared_ptr<DiskCache> disk = getDiskCache(options);
  return disk ? std::make_shared<FolderStore>(std::move(disk)) : nullptr;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

using SharedResult = std::shared_ptr<const CompileResult>;

/// A key and the limits that a compile of it is under: whoever has others may not wait for it.
using FlightKey = std::tuple<CacheKey, bool, unsigned, unsigned>;

static FlightKey makeFlightKey(const CacheKey &key, const CompileOptions &options) {
  return {key, options.isolate, options.timeLimit, options.memoryLimit};
}

namespace {
/// A compile that a thread is at; others wait for it.
struct Flight {
  std::mutex mutex;
  std::condition_variable landed;
  SharedResult result;
};

/// The process's results, the latest used first, and its compiles under way.
class Memory {
public:
  /// A result, or the flight to wait for, or a flight that the caller has to carry out (`isOurs`).
  SharedResult find(const FlightKey &key, std::shared_ptr<Flight> &flight, bool &isOurs) {
    std::lock_guard<std::mutex> lock(mutex);
    if (auto found = entries.find(std::get<CacheKey>(key)); found != entries.end()) {
      order.splice(order.begin(), order, found->second);
      return found->second->result;
    }
    std::shared_ptr<Flight> &started = flights[key];
    isOurs = !started;
    if (isOurs)
      started = std::make_shared<Flight>();
    flight = started;
    return nullptr;
  }

  void land(const FlightKey &key, Flight &flight, SharedResult result, bool isKept) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      flights.erase(key);
      if (isKept)
        add(std::get<CacheKey>(key), result);
    }
    std::lock_guard<std::mutex> lock(flight.mutex);
    flight.result = std::move(result);
    flight.landed.notify_all();
  }

private:
  struct Entry {
    CacheKey key;
    SharedResult result;
    size_t bytes;
  };

  static size_t measure(const CompileResult &result) {
    size_t bytes = sizeof result + result.data.size() + result.diagnostics.size();
    for (const Message &message : result.messages)
      bytes += (1 + message.notes.size()) * (sizeof message + message.text.size() + message.excerpt.size());
    for (const Variant &variant : result.variants)
      bytes += sizeof variant + variant.interface.size() + variant.statistics.size();
    return bytes;
  }

  void add(const CacheKey &key, const SharedResult &result) {
    constexpr size_t limit = size_t(64) << 20;
    // Under other limits it may have been compiled twice.
    if (entries.count(key))
      return;
    order.push_front({key, result, measure(*result)});
    entries[key] = order.begin();
    bytes += order.front().bytes;
    while (bytes > limit) {
      bytes -= order.back().bytes;
      entries.erase(order.back().key);
      order.pop_back();
    }
  }

  std::mutex mutex;
  std::list<Entry> order;
  std::map<CacheKey, std::list<Entry>::iterator> entries;
  std::map<FlightKey, std::shared_ptr<Flight>> flights;
  size_t bytes = 0;
};
} // namespace

/// Never destroyed: threads may compile while the process ends.
static Memory &getMemory() {
  static auto &memory = *new Memory;
  return memory;
}

//===----------------------------------------------------------------------===//
// Looking up
//===----------------------------------------------------------------------===//

/// Excerpts from other files than the input are of files that may change.
static bool isKeepable(const CompileResult &result, std::string_view name) {
  auto isOfInput = [&](const Message &message) { return message.file.empty() || message.file == name; };
  return result.ok && llvm::all_of(result.messages, [&](const Message &message) {
           return isOfInput(message) && llvm::all_of(message.notes, isOfInput);
         });
}

static CompileResult share(const CompileResult &result) {
  CompileResult copy = result;
  copy.isCached = true;
  return copy;
}

CompileResult lookUpOrCompile(std::string_view qir, std::string_view name, const CompileOptions &options,
                              llvm::function_ref<CompileResult()> compile) {
  CachePolicy policy = findPolicy(options);
  if (policy != CachePolicy::Memory && policy != CachePolicy::Disk)
    return compile();
  CacheKey key = makeKey(qir, name, options);
  FlightKey flightKey = makeFlightKey(key, options);
  std::shared_ptr<Flight> flight;
  bool isOurs = false;
  if (SharedResult found = getMemory().find(flightKey, flight, isOurs))
    return share(*found);
  if (!isOurs) {
    std::unique_lock<std::mutex> lock(flight->mutex);
    flight->landed.wait(lock, [&] { return flight->result != nullptr; });
    return share(*flight->result);
  }
  std::shared_ptr<DiskCache> disk = getDiskCache(options);
  if (disk)
    if (std::optional<std::string> bytes = disk->load(key)) {
      ByteReader reader(*bytes);
      if (std::optional<CompileResult> result = readResult(reader)) {
        result->isCached = true;
        getMemory().land(flightKey, *flight, std::make_shared<const CompileResult>(*result), true);
        return std::move(*result);
      }
    }
  CompileResult result = compile();
  bool isKept = isKeepable(result, name);
  if (disk && isKept) {
    ByteWriter writer;
    writeResult(result, writer);
    disk->store(key, writer.take());
  }
  getMemory().land(flightKey, *flight, std::make_shared<const CompileResult>(result), isKept);
  return result;
}

std::string describeCache(const CompileOptions &options) {
  std::shared_ptr<DiskCache> disk = openFolder(options);
  if (!disk)
    return describeEnvironment() + "no cache folder: neither QDC_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set\n";
  CacheUsage usage;
  uint64_t entries = disk->countEntries(usage);
  return describeEnvironment() +
         llvm::formatv("folder     {0}\nentries    {1}\nbytes      {2} of {3}\nhits       {4}\nmisses     {5}\n"
                       "stores     {6}\nevictions  {7}\n",
                       disk->getFolder(), entries, usage.bytes, disk->getLimit(), usage.hits, usage.misses,
                       usage.stores, usage.evictions)
             .str();
}

} // namespace qd

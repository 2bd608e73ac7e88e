//===- LaunchWatch.h - whether a launch on this machine has to end ------------------------------------------------===//
//
// Purpose: what interp, cpu and sim ask while they run a grid: its time may be up, or its caller may want it no longer.
// Any of a launch's threads may ask; only the one that began it asks the caller.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_LAUNCHWATCH_H
#define QD_CODEGEN_LAUNCHWATCH_H

#include "codegen/HostProgram.h"

#include "llvm/Support/FormatVariadic.h"
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace qd {

/// The blocks of a grid; an error where 64 bits do not number them.
inline llvm::Expected<uint64_t> countBlocks(const std::array<uint32_t, 3> &grid) {
  constexpr uint64_t most = uint64_t(1) << 62;
  unsigned __int128 all = static_cast<unsigned __int128>(grid[0]) * grid[1] * grid[2];
  if (all > most)
    return llvm::createStringError(llvm::formatv("the grid is {0} x {1} x {2}, expected at most {3} blocks in all",
                                                 grid[0], grid[1], grid[2], most));
  return uint64_t(all);
}

/// Of one launch.
class LaunchWatch {
public:
  explicit LaunchWatch(const HostOptions &options)
      : limit(options.launchTimeLimit), isInterrupted(options.isInterrupted),
        start(isNeeded() ? Clock::now() : Clock::time_point()), nextQuestion(start + pause) {}

  bool isNeeded() const { return limit || isInterrupted; }

  /// Whether the launch has to end; takes a look at the clock.
  bool mustEnd() {
    if (!isNeeded())
      return false;
    if (end.load(std::memory_order_relaxed) != End::None)
      return true;
    Clock::time_point now = Clock::now();
    if (limit && now - start >= std::chrono::milliseconds(limit)) {
      end = End::TimedOut;
      return true;
    }
    if (!isInterrupted || std::this_thread::get_id() != caller || now < nextQuestion)
      return false;
    nextQuestion = now + pause;
    if (isInterrupted())
      end = End::Interrupted;
    return end != End::None;
  }

  /// Why the launch ended early; success where it did not.
  llvm::Error takeError() const {
    switch (end) {
    case End::TimedOut:
      return llvm::createStringError(llvm::formatv("the launch takes longer than its limit of {0} ms", limit));
    case End::Interrupted:
      return llvm::createStringError("the launch was interrupted by its caller");
    case End::None:
      break;
    }
    return llvm::Error::success();
  }

private:
  using Clock = std::chrono::steady_clock;
  /// Between two questions to the caller.
  static constexpr std::chrono::milliseconds pause{50};
  enum class End { None, TimedOut, Interrupted };

  const unsigned limit;
  const std::function<bool()> &isInterrupted;
  const Clock::time_point start;
  const std::thread::id caller = std::this_thread::get_id();
  Clock::time_point nextQuestion; ///< the caller's own
  std::atomic<End> end{End::None};
};

} // namespace qd

#endif

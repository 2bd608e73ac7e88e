//===- WorkerProtocol.h - what host and worker send each other ---------------------------------===//
//
// Purpose: messages with their length in front, over a stream socket. First the worker says which build it is; then
// each request (its kind, name, options, memory limit, input, and what is the kind's own) gets an answer (whether the
// worker goes on, and the result).
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_WORKERPROTOCOL_H
#define QD_COMPILER_WORKERPROTOCOL_H

#include "llvm/ADT/StringRef.h"
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace qd {

constexpr const char *workerGreeting = "qdc-worker 1";

enum class WorkerTask : uint64_t { Compile, PrepareHostModule };

/// Exit status of a worker that came to its memory limit.
constexpr int outOfMemoryStatus = 121;

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

enum class Transfer { Done, Closed, TimedOut };

/// Both wait no longer than until the deadline, if there is one. Neither raises SIGPIPE.
Transfer sendMessage(int socket, llvm::StringRef message, Deadline deadline);
Transfer receiveMessage(int socket, std::string &message, Deadline deadline);

} // namespace qd

#endif

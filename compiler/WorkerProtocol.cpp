//===- WorkerProtocol.cpp - messages over a socket ---------------------------------------------------===//

#include "compiler/WorkerProtocol.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

namespace qd {

/// Waits until the socket can be read or written, or its other end is closed.
static Transfer wait(int socket, short events, Deadline deadline) {
  while (true) {
    int milliseconds = -1;
    if (deadline) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now()).count();
      if (left <= 0)
        return Transfer::TimedOut;
      milliseconds = int(std::min<int64_t>(left, INT32_MAX));
    }
    pollfd poller = {socket, events, 0};
    int ready = poll(&poller, 1, milliseconds);
    if (ready > 0)
      return Transfer::Done;
    if (ready < 0 && errno != EINTR)
      return Transfer::Closed;
  }
}

template <typename Step>
static Transfer transfer(int socket, short events, size_t size, Deadline deadline, Step step) {
  for (size_t done = 0; done < size;) {
    if (Transfer waited = wait(socket, events, deadline); waited != Transfer::Done)
      return waited;
    ssize_t moved = step(done);
    if (moved > 0)
      done += moved;
    else if (moved == 0 || (errno != EINTR && errno != EAGAIN))
      return Transfer::Closed;
  }
  return Transfer::Done;
}

static Transfer sendBytes(int socket, const void *bytes, size_t size, Deadline deadline) {
  return transfer(socket, POLLOUT, size, deadline, [&](size_t done) {
    return send(socket, static_cast<const char *>(bytes) + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}

static Transfer receiveBytes(int socket, void *bytes, size_t size, Deadline deadline) {
  return transfer(socket, POLLIN, size, deadline, [&](size_t done) {
    return recv(socket, static_cast<char *>(bytes) + done, size - done, MSG_DONTWAIT);
  });
}

Transfer sendMessage(int socket, llvm::StringRef message, Deadline deadline) {
  uint64_t size = message.size();
  Transfer sent = sendBytes(socket, &size, sizeof size, deadline);
  return sent == Transfer::Done ? sendBytes(socket, message.data(), message.size(), deadline) : sent;
}

Transfer receiveMessage(int socket, std::string &message, Deadline deadline) {
  constexpr uint64_t most = uint64_t(1) << 32;
  uint64_t size = 0;
  Transfer received = receiveBytes(socket, &size, sizeof size, deadline);
  if (received != Transfer::Done)
    return received;
  if (size > most)
    return Transfer::Closed;
  // Grows with what comes: the length may be anything.
  constexpr size_t piece = size_t(1) << 20;
  message.clear();
  while (message.size() < size) {
    size_t before = message.size(), next = std::min<size_t>(piece, size - before);
    message.resize(before + next);
    received = receiveBytes(socket, message.data() + before, next, deadline);
    if (received != Transfer::Done)
      return received;
  }
  return Transfer::Done;
}

} // namespace qd

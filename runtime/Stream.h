// Work that is given to a device without waiting for it: prepared launches, streams, events and graphs.
//
//   auto launch = (*module)->prepare("scale", {16, 1, 1}, arguments);
//   auto stream = (*device)->createStream();
//   (*stream)->launch(**launch);
//   (*stream)->synchronize();
//
// What a stream was given runs in order. Streams of cuda and hip run beside each other. Those of a vulkan device share
// one queue: their work runs in the order in which it was given. Host devices carry it out before the call returns.
//
// A prepared launch or buffer must outlive the graphs that it is in and, as memory of the host does, the work on it
// that is under way; destructors of what a driver still uses wait for it.
#ifndef QD_RUNTIME_STREAM_H
#define QD_RUNTIME_STREAM_H

#include "runtime/Device.h"

namespace qd::rt {

/// A kernel with its grid and arguments, checked and bound: launched again and again without either.
class Launch {
public:
  virtual ~Launch() = default;
  Launch(const Launch &) = delete;
  Launch &operator=(const Launch &) = delete;

  const Kernel &kernel() const { return launchedKernel; }
  const Identity *owner() const { return module.owner(); }
  /// Checks and binds another argument or grid, for launches from now on. Not while it is part of a graph.
  Error setArgument(size_t index, const Argument &argument);
  Error setGrid(Grid grid);

protected:
  Launch(const Module &module, const Kernel &kernel, Grid grid, std::vector<Argument> arguments)
      : grid(grid), arguments(std::move(arguments)), module(module), launchedKernel(kernel) {}
  /// Brings what a driver is given in line with `grid` and `arguments`, which fit the kernel.
  virtual Error bind() = 0;

  Grid grid;
  std::vector<Argument> arguments;

private:
  friend class Graph;
  Error change(Grid newGrid, std::vector<Argument> newArguments);

  const Module &module;
  const Kernel &launchedKernel;
  unsigned graphs = 0;
};

class Event;

class Stream {
public:
  explicit Stream(const Identity *owner) : identity(owner) {}
  virtual ~Stream() = default;
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  const Identity *owner() const { return identity; }
  Error launch(Launch &launch);
  /// As the functions of Buffer, in the stream's order. Memory of the host is in use until the work has finished.
  Error upload(Buffer &target, size_t offset, const void *data, size_t bytes);
  Error download(Buffer &source, size_t offset, void *data, size_t bytes);
  Error copy(Buffer &target, size_t offset, Buffer &source, size_t sourceOffset, size_t bytes);
  Error fill(Buffer &target, size_t offset, uint8_t value, size_t bytes);
  /// The event happens when all that the stream was given so far has finished.
  Error record(Event &event);
  /// What the stream is given from now on begins after the event as it was last recorded.
  Error wait(Event &event);

  /// Waits for all that the stream was given.
  virtual Error synchronize() = 0;
  virtual Expected<bool> isFinished() = 0;
  /// The driver's own: a CUstream or hipStream_t; null where there is none.
  virtual void *native() const { return nullptr; }

protected:
  // All belong to the stream's device; ranges lie inside the buffers and are not empty.
  virtual Error doLaunch(Launch &launch) = 0;
  virtual Error doUpload(Buffer &target, size_t offset, const void *data, size_t bytes) = 0;
  virtual Error doDownload(Buffer &source, size_t offset, void *data, size_t bytes) = 0;
  virtual Error doCopy(Buffer &target, size_t offset, Buffer &source, size_t sourceOffset, size_t bytes) = 0;
  virtual Error doFill(Buffer &target, size_t offset, uint8_t value, size_t bytes) = 0;
  virtual Error doRecord(Event &event) = 0;
  virtual Error doWait(Event &event) = 0;

private:
  Error checkOwner(const char *what, const Identity *other) const;

  const Identity *identity;
};

/// A point in a stream's work.
class Event {
public:
  explicit Event(const Identity *owner) : identity(owner) {}
  virtual ~Event() = default;
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  const Identity *owner() const { return identity; }
  bool isRecorded() const { return recorded; }
  /// Waits until it has happened, as it was last recorded.
  Error synchronize();
  Expected<bool> hasHappened();
  /// Waits for both events; the seconds of the device between them.
  Expected<double> since(Event &start);

protected:
  virtual Error doSynchronize() = 0;
  virtual Expected<bool> doHasHappened() = 0;
  virtual Expected<double> doSince(Event &start) = 0;

private:
  friend class Stream;
  const Identity *identity;
  bool recorded = false;
};

/// Launches and copies that are given to a stream at once, in their order. Devices record them for their driver when
/// the graph is first launched; from then on nothing can be added.
class Graph {
public:
  explicit Graph(const Identity *owner) : identity(owner) {}
  virtual ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  const Identity *owner() const { return identity; }
  Error addLaunch(Launch &launch);
  Error addUpload(Buffer &target, size_t offset, const void *data, size_t bytes);
  Error addDownload(Buffer &source, size_t offset, void *data, size_t bytes);
  Error addCopy(Buffer &target, size_t offset, Buffer &source, size_t sourceOffset, size_t bytes);
  Error addFill(Buffer &target, size_t offset, uint8_t value, size_t bytes);
  Error launch(Stream &stream);

protected:
  struct Operation {
    enum class Kind : uint8_t { Launch, Upload, Download, Copy, Fill } kind = Kind::Launch;
    uint8_t value = 0;
    Launch *launch = nullptr;
    Buffer *target = nullptr, *source = nullptr;
    size_t offset = 0, sourceOffset = 0, bytes = 0;
    const void *from = nullptr;
    void *to = nullptr;
  };
  /// Gives an operation to a stream.
  static Error apply(const Operation &operation, Stream &stream);
  /// Called once, before the first launch.
  virtual Error record() { return Error::success(); }
  /// By one operation after the other, where the device has nothing better.
  virtual Error doLaunch(Stream &stream);

  std::vector<Operation> operations;

private:
  Error add(const Operation &operation, const Identity *owner);

  const Identity *identity;
  bool isRecorded = false;
};

} // namespace qd::rt

#endif // QD_RUNTIME_STREAM_H

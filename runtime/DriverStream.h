// Prepared launches, streams, events and graphs of CUDA and HIP devices.
#ifndef QD_RUNTIME_DRIVERSTREAM_H
#define QD_RUNTIME_DRIVERSTREAM_H

#include "runtime/Driver.h"
#include "runtime/Stream.h"

namespace qd::rt {

/// "cannot copy to the device: WORDS (NAME)".
Error driverStatus(const Driver &driver, const char *what, int code);

/// A kernel's parameters as the driver takes them. Buffers must not move: the driver is given pointers into it.
class DriverParameters {
public:
  /// In argument order: a scalar's value, a buffer's address and after it the extents where the kernel takes them.
  /// Every value lies little-endian in a slot of its own; the driver reads as many bytes as the parameter has.
  void assign(const Kernel &kernel, const std::vector<Argument> &arguments);
  void **data() { return pointers.data(); }

private:
  std::vector<uint64_t> slots;
  std::vector<void *> pointers;
};

class DriverLaunch : public Launch {
public:
  /// `function` is the kernel's, checked to be able to run on the grid by `check`.
  DriverLaunch(const Driver &driver, const Module &module, const Kernel &kernel, void *function,
               std::function<Error(Grid)> check, Grid grid, std::vector<Argument> arguments)
      : Launch(module, kernel, grid, std::move(arguments)), driver(driver), function(function),
        check(std::move(check)) {
    parameters.assign(kernel, this->arguments);
  }
  /// Gives it to a stream.
  int enqueue(void *stream) {
    const Kernel &of = kernel();
    return of.cooperative
               ? driver.launchCooperative(function, grid.x, grid.y, grid.z, of.block[0], of.block[1], of.block[2],
                                          of.dynamicSharedBytes, stream, parameters.data())
               : driver.launch(function, grid.x, grid.y, grid.z, of.block[0], of.block[1], of.block[2],
                               of.dynamicSharedBytes, stream, parameters.data(), nullptr);
  }
  Error failure(int code) const;

protected:
  Error bind() override {
    if (Error error = check(grid))
      return error;
    parameters.assign(kernel(), arguments);
    return Error::success();
  }

private:
  const Driver &driver;
  void *function;
  std::function<Error(Grid)> check;
  DriverParameters parameters;
};

class DriverEvent : public Event {
public:
  explicit DriverEvent(const Driver &driver) : Event(&driver), driver(driver) {}
  ~DriverEvent() override;
  int create() { return driver.eventCreate(&handle, 0); }
  void *handle = nullptr;

protected:
  Error doSynchronize() override;
  Expected<bool> doHasHappened() override;
  Expected<double> doSince(Event &start) override;

private:
  const Driver &driver;
};

class DriverStream : public Stream {
public:
  /// A stream that is `owned` is destroyed with it; the driver lets its work finish.
  DriverStream(const Driver &driver, void *handle, bool owned)
      : Stream(&driver), driver(driver), handle(handle), owned(owned) {}
  ~DriverStream() override;
  Error synchronize() override;
  Expected<bool> isFinished() override;
  void *native() const override { return handle; }

protected:
  Error doLaunch(Launch &launch) override;
  Error doUpload(Buffer &target, size_t offset, const void *data, size_t bytes) override;
  Error doDownload(Buffer &source, size_t offset, void *data, size_t bytes) override;
  Error doCopy(Buffer &target, size_t offset, Buffer &source, size_t sourceOffset, size_t bytes) override;
  Error doFill(Buffer &target, size_t offset, uint8_t value, size_t bytes) override;
  Error doRecord(Event &event) override;
  Error doWait(Event &event) override;

private:
  /// The thread's device says which default stream is meant.
  template <typename Call> int call(Call &&call) { return handle ? driver.call(call) : driver.run(call); }

  const Driver &driver;
  void *handle;
  bool owned;
};

/// A graph of the driver, captured from a stream; drivers without graphs are given the operations one by one.
class DriverGraph : public Graph {
public:
  explicit DriverGraph(const Driver &driver) : Graph(&driver), driver(driver) {}
  ~DriverGraph() override;

protected:
  Error record() override;
  Error doLaunch(Stream &stream) override;

private:
  const Driver &driver;
  void *executable = nullptr;
};

} // namespace qd::rt

#endif // QD_RUNTIME_DRIVERSTREAM_H

// Prepared launches, streams, events and graphs through a CUDA or HIP driver.
#include "runtime/DriverStream.h"

#include <mutex>

namespace qd::rt {

namespace {

/// Of the thread: which device it last entered through this library, 0 for none.
thread_local uint64_t entered = 0;

/// CU_STREAM_CAPTURE_MODE_RELAXED: other threads may call the driver meanwhile.
constexpr int relaxedCapture = 2;
/// CU_STREAM_NON_BLOCKING: other threads may use the default stream meanwhile.
constexpr unsigned nonBlockingStream = 1;

} // namespace

std::shared_mutex Driver::captures;

int Driver::enter() const {
  int code = makeCurrent();
  entered = code ? 0 : token;
  return code;
}

int Driver::stay() const { return entered == token ? 0 : enter(); }

Error Driver::makeUsable() const { return driverStatus(*this, "make the device current", enter()); }

Error driverStatus(const Driver &driver, const char *what, int code) {
  return code ? fail("cannot ", what, ": ", driver.statusText(code)) : Error::success();
}

void DriverParameters::assign(const Kernel &kernel, const std::vector<Argument> &arguments) {
  slots.clear();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!kernel.parameters[i].isBuffer()) {
      slots.push_back(arguments[i].bits);
      continue;
    }
    slots.push_back(arguments[i].begin());
    if (kernel.parameters[i].hasSize)
      for (unsigned dim = 0; dim < kernel.parameters[i].rank; ++dim)
        slots.push_back(static_cast<uint64_t>(arguments[i].extents[dim]));
  }
  pointers.clear();
  for (uint64_t &slot : slots)
    pointers.push_back(&slot);
}

Error DriverLaunch::failure(int code) const {
  return fail("kernel '", kernel().name, "' failed: ", driver.statusText(code));
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

DriverEvent::~DriverEvent() {
  if (!handle)
    return;
  driver.enter();
  driver.eventDestroy(handle);
}

Error DriverEvent::doSynchronize() {
  return driverStatus(driver, "wait for an event", driver.call([&] { return driver.eventSynchronize(handle); }));
}

Expected<bool> DriverEvent::doHasHappened() {
  int code = driver.call([&] { return driver.eventQuery(handle); });
  if (code && code != Driver::notReady)
    return driverStatus(driver, "ask for an event", code);
  return code == 0;
}

Expected<double> DriverEvent::doSince(Event &start) {
  float milliseconds = 0;
  int code = driver.call([&] {
    return driver.eventElapsed(&milliseconds, static_cast<DriverEvent &>(start).handle, handle);
  });
  if (code)
    return driverStatus(driver, "take the time between events", code);
  return milliseconds / 1e3;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

DriverStream::~DriverStream() {
  if (!owned)
    return;
  driver.enter();
  if (!driver.outlivesHandles)
    driver.streamSynchronize(handle);
  driver.streamDestroy(handle);
}

Error DriverStream::synchronize() {
  return driverStatus(driver, "wait for a stream", call([&] { return driver.streamSynchronize(handle); }));
}

Expected<bool> DriverStream::isFinished() {
  int code = call([&] { return driver.streamQuery(handle); });
  if (code && code != Driver::notReady)
    return driverStatus(driver, "ask for a stream", code);
  return code == 0;
}

Error DriverStream::doLaunch(Launch &launch) {
  auto &prepared = static_cast<DriverLaunch &>(launch);
  int code = call([&] { return prepared.enqueue(handle); });
  return code ? prepared.failure(code) : Error::success();
}

Error DriverStream::doUpload(Buffer &target, size_t offset, const void *data, size_t bytes) {
  return driverStatus(driver, "copy to the device", call([&] {
    return driver.copyToDeviceOn(target.address() + offset, data, bytes, handle);
  }));
}

Error DriverStream::doDownload(Buffer &source, size_t offset, void *data, size_t bytes) {
  return driverStatus(driver, "copy from the device", call([&] {
    return driver.copyToHostOn(data, source.address() + offset, bytes, handle);
  }));
}

Error DriverStream::doCopy(Buffer &target, size_t offset, Buffer &source, size_t sourceOffset, size_t bytes) {
  return driverStatus(driver, "copy on the device", call([&] {
    return driver.copyOnDeviceOn(target.address() + offset, source.address() + sourceOffset, bytes, handle);
  }));
}

Error DriverStream::doFill(Buffer &target, size_t offset, uint8_t value, size_t bytes) {
  return driverStatus(driver, "fill memory of the device", call([&] {
    return driver.fillOn(target.address() + offset, value, bytes, handle);
  }));
}

Error DriverStream::doRecord(Event &event) {
  return driverStatus(driver, "record an event", call([&] {
    return driver.eventRecord(static_cast<DriverEvent &>(event).handle, handle);
  }));
}

Error DriverStream::doWait(Event &event) {
  return driverStatus(driver, "wait for an event", call([&] {
    return driver.streamWaitEvent(handle, static_cast<DriverEvent &>(event).handle, 0);
  }));
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

DriverGraph::~DriverGraph() {
  if (!executable)
    return;
  driver.enter();
  if (!driver.outlivesHandles)
    driver.runWaiting([&] { return driver.synchronize(); });
  driver.executableDestroy(executable);
}

Error DriverGraph::record() {
  if (!driver.beginCapture || !driver.endCapture || !driver.graphInstantiate || !driver.graphLaunch ||
      !driver.graphDestroy || !driver.executableDestroy || operations.empty())
    return Error::success();
  bool copiesWithHost = false;
  for (const Operation &operation : operations) {
    copiesWithHost |= operation.from || operation.to;
    if (operation.launch && operation.launch->kernel().cooperative && !driver.capturesCooperative)
      return Error::success();
  }
  auto failed = [&](int code) { return driverStatus(driver, "record a graph", code); };
  void *handle = nullptr;
  if (int code = driver.run([&] { return driver.streamCreate(&handle, nonBlockingStream); }))
    return failed(code);
  DriverStream stream(driver, handle, /*owned=*/true);
  std::unique_lock<std::shared_mutex> lock(Driver::captures, std::defer_lock);
  if (driver.waitingEndsCaptures)
    lock.lock();
  if (int code = driver.beginCapture(handle, relaxedCapture))
    return failed(code);
  Error error;
  for (const Operation &operation : operations)
    if ((error = apply(operation, stream)))
      break;
  void *graph = nullptr;
  int code = driver.endCapture(handle, &graph);
  if (!code && !error)
    code = driver.graphInstantiate(&executable, graph, 0);
  if (graph)
    driver.graphDestroy(graph);
  // Not every driver records copies of memory that it did not allocate itself, and other code of the process may end a
  // recording: such a graph is given piece by piece.
  if ((copiesWithHost || driver.waitingEndsCaptures) && (error || code))
    return Error::success();
  return error ? std::move(error) : failed(code);
}

Error DriverGraph::doLaunch(Stream &stream) {
  if (!executable)
    return Graph::doLaunch(stream);
  return driverStatus(driver, "launch a graph", driver.call([&] {
    return driver.graphLaunch(executable, stream.native());
  }));
}

} // namespace qd::rt

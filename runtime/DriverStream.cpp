// Prepared launches, streams, events and graphs through a CUDA or HIP driver.
#include "runtime/DriverStream.h"

namespace qd::rt {

namespace {

/// Of the thread: which device it last entered through this library, 0 for none.
thread_local uint64_t entered = 0;

/// CU_STREAM_CAPTURE_MODE_RELAXED: other threads may call the driver meanwhile.
constexpr int relaxedCapture = 2;

} // namespace

int Driver::enter() const {
  entered = token;
  return makeCurrent();
}

void Driver::stay() const {
  if (entered != token)
    enter();
}

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
  driver.streamDestroy(handle);
}

Error DriverStream::synchronize() {
  return driverStatus(driver, "wait for a stream", driver.call([&] { return driver.streamSynchronize(handle); }));
}

Expected<bool> DriverStream::isFinished() {
  int code = driver.call([&] { return driver.streamQuery(handle); });
  if (code && code != Driver::notReady)
    return driverStatus(driver, "ask for a stream", code);
  return code == 0;
}

Error DriverStream::doLaunch(Launch &launch) {
  auto &prepared = static_cast<DriverLaunch &>(launch);
  int code = driver.call([&] { return prepared.enqueue(handle); });
  return code ? prepared.failure(code) : Error::success();
}

Error DriverStream::doUpload(Buffer &target, size_t offset, const void *data, size_t bytes) {
  return driverStatus(driver, "copy to the device", driver.call([&] {
    return driver.copyToDeviceOn(target.address() + offset, data, bytes, handle);
  }));
}

Error DriverStream::doDownload(Buffer &source, size_t offset, void *data, size_t bytes) {
  return driverStatus(driver, "copy from the device", driver.call([&] {
    return driver.copyToHostOn(data, source.address() + offset, bytes, handle);
  }));
}

Error DriverStream::doCopy(Buffer &target, size_t offset, Buffer &source, size_t sourceOffset, size_t bytes) {
  return driverStatus(driver, "copy on the device", driver.call([&] {
    return driver.copyOnDeviceOn(target.address() + offset, source.address() + sourceOffset, bytes, handle);
  }));
}

Error DriverStream::doFill(Buffer &target, size_t offset, uint8_t value, size_t bytes) {
  return driverStatus(driver, "fill memory of the device", driver.call([&] {
    return driver.fillOn(target.address() + offset, value, bytes, handle);
  }));
}

Error DriverStream::doRecord(Event &event) {
  return driverStatus(driver, "record an event", driver.call([&] {
    return driver.eventRecord(static_cast<DriverEvent &>(event).handle, handle);
  }));
}

Error DriverStream::doWait(Event &event) {
  return driverStatus(driver, "wait for an event", driver.call([&] {
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
  driver.executableDestroy(executable);
}

Error DriverGraph::record() {
  if (!driver.beginCapture || !driver.endCapture || !driver.graphInstantiate || !driver.graphLaunch ||
      !driver.graphDestroy || !driver.executableDestroy || operations.empty())
    return Error::success();
  driver.enter();
  void *handle = nullptr;
  if (int code = driver.streamCreate(&handle, 0))
    return driverStatus(driver, "record a graph", code);
  DriverStream stream(driver, handle, /*owned=*/true);
  if (int code = driver.beginCapture(handle, relaxedCapture))
    return driverStatus(driver, "record a graph", code);
  Error error;
  bool copiesWithHost = false;
  for (const Operation &operation : operations) {
    copiesWithHost |= operation.from || operation.to;
    if ((error = apply(operation, stream)))
      break;
  }
  void *graph = nullptr;
  int code = driver.endCapture(handle, &graph);
  if (!code && !error)
    code = driver.graphInstantiate(&executable, graph, 0);
  if (graph)
    driver.graphDestroy(graph);
  // Not every driver records copies of memory that it did not allocate itself: such a graph is given piece by piece.
  if (copiesWithHost && (error || code))
    return Error::success();
  return error ? std::move(error) : driverStatus(driver, "record a graph", code);
}

Error DriverGraph::doLaunch(Stream &stream) {
  if (!executable)
    return Graph::doLaunch(stream);
  return driverStatus(driver, "launch a graph", driver.call([&] {
    return driver.graphLaunch(executable, stream.native());
  }));
}

} // namespace qd::rt

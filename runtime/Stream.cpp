// What all devices share of prepared launches, streams, events and graphs: the checks.
#include "runtime/Stream.h"

namespace qd::rt {

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

Error Launch::change(Grid newGrid, std::vector<Argument> newArguments) {
  if (graphs)
    return refuse("the launch of kernel '", launchedKernel.name, "' is part of a graph and cannot be changed");
  auto checked = module.check(launchedKernel.name, newGrid, newArguments);
  if (!checked)
    return checked.error();
  std::swap(grid, newGrid);
  arguments.swap(newArguments);
  Error error = bind();
  if (!error)
    return error;
  std::swap(grid, newGrid);
  arguments.swap(newArguments);
  // What was bound before binds again, or the launch fails where it is given to a stream.
  if (Error again = bind())
    return again;
  return error;
}

Error Launch::setArgument(size_t index, const Argument &argument) {
  if (index >= arguments.size())
    return refuse("kernel '", launchedKernel.name, "' takes ", arguments.size(), " arguments, got one at position ",
                  index);
  std::vector<Argument> changed = arguments;
  changed[index] = argument;
  return change(grid, std::move(changed));
}

Error Launch::setGrid(Grid newGrid) { return change(newGrid, arguments); }

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

Error Stream::checkOwner(const char *what, const Identity *other) const {
  return other == identity ? Error::success() : refuse(what, " is of ", otherDevice(other, identity), ", the stream's");
}

Error Stream::launch(Launch &launch) {
  if (launch.owner() != identity)
    return checkOwner("the launch", launch.owner());
  return doLaunch(launch);
}

Error Stream::upload(Buffer &target, size_t offset, const void *data, size_t bytes) {
  if (Error error = checkOwner("the buffer", target.owner()))
    return error;
  if (Error error = target.checkRange("a copy", bytes, offset))
    return error;
  return bytes ? doUpload(target, offset, data, bytes) : Error::success();
}

Error Stream::download(Buffer &source, size_t offset, void *data, size_t bytes) {
  if (Error error = checkOwner("the buffer", source.owner()))
    return error;
  if (Error error = source.checkRange("a copy", bytes, offset))
    return error;
  return bytes ? doDownload(source, offset, data, bytes) : Error::success();
}

Error Stream::copy(Buffer &target, size_t offset, Buffer &source, size_t sourceOffset, size_t bytes) {
  if (Error error = checkOwner("the buffer", target.owner()))
    return error;
  if (Error error = checkOwner("the buffer", source.owner()))
    return error;
  if (Error error = target.checkCopy(source, bytes, offset, sourceOffset))
    return error;
  return bytes ? doCopy(target, offset, source, sourceOffset, bytes) : Error::success();
}

Error Stream::fill(Buffer &target, size_t offset, uint8_t value, size_t bytes) {
  if (Error error = checkOwner("the buffer", target.owner()))
    return error;
  if (Error error = target.checkRange("a fill", bytes, offset))
    return error;
  return bytes ? doFill(target, offset, value, bytes) : Error::success();
}

Error Stream::record(Event &event) {
  if (Error error = checkOwner("the event", event.owner()))
    return error;
  if (Error error = doRecord(event))
    return error;
  event.recorded = true;
  return Error::success();
}

Error Stream::wait(Event &event) {
  if (!event.isRecorded())
    return refuse("the event was never recorded");
  // Devices cannot wait for each other: the host does.
  if (event.owner() != identity)
    return event.synchronize();
  return doWait(event);
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

Error Event::synchronize() { return recorded ? doSynchronize() : refuse("the event was never recorded"); }

Expected<bool> Event::hasHappened() {
  if (!recorded)
    return refuse("the event was never recorded");
  return doHasHappened();
}

Expected<double> Event::since(Event &start) {
  if (start.owner() != identity)
    return refuse("the first event is of ", otherDevice(start.owner(), identity), ", the second's");
  if (Error error = start.synchronize())
    return error;
  if (Error error = synchronize())
    return error;
  return doSince(start);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

Graph::~Graph() {
  for (Operation &operation : operations)
    if (operation.launch)
      --operation.launch->graphs;
}

Error Graph::add(const Operation &operation, const Identity *owner) {
  if (owner != identity)
    return refuse(operation.launch ? "the launch" : "the buffer", " is of ", otherDevice(owner, identity),
                  ", the graph's");
  if (isRecorded)
    return refuse("the graph was launched: nothing can be added to it");
  operations.push_back(operation);
  if (operation.launch)
    ++operation.launch->graphs;
  return Error::success();
}

Error Graph::addLaunch(Launch &launch) {
  Operation operation;
  operation.launch = &launch;
  return add(operation, launch.owner());
}

Error Graph::addUpload(Buffer &target, size_t offset, const void *data, size_t bytes) {
  if (Error error = target.checkRange("a copy", bytes, offset))
    return error;
  Operation operation;
  operation.kind = Operation::Kind::Upload;
  operation.target = &target;
  operation.offset = offset;
  operation.from = data;
  operation.bytes = bytes;
  return add(operation, target.owner());
}

Error Graph::addDownload(Buffer &source, size_t offset, void *data, size_t bytes) {
  if (Error error = source.checkRange("a copy", bytes, offset))
    return error;
  Operation operation;
  operation.kind = Operation::Kind::Download;
  operation.source = &source;
  operation.sourceOffset = offset;
  operation.to = data;
  operation.bytes = bytes;
  return add(operation, source.owner());
}

Error Graph::addCopy(Buffer &target, size_t offset, Buffer &source, size_t sourceOffset, size_t bytes) {
  if (Error error = target.checkCopy(source, bytes, offset, sourceOffset))
    return error;
  if (source.owner() != target.owner())
    return refuse("the source is of ", otherDevice(source.owner(), target.owner()), ", the target's");
  Operation operation;
  operation.kind = Operation::Kind::Copy;
  operation.target = &target;
  operation.source = &source;
  operation.offset = offset;
  operation.sourceOffset = sourceOffset;
  operation.bytes = bytes;
  return add(operation, target.owner());
}

Error Graph::addFill(Buffer &target, size_t offset, uint8_t value, size_t bytes) {
  if (Error error = target.checkRange("a fill", bytes, offset))
    return error;
  Operation operation;
  operation.kind = Operation::Kind::Fill;
  operation.target = &target;
  operation.offset = offset;
  operation.value = value;
  operation.bytes = bytes;
  return add(operation, target.owner());
}

Error Graph::apply(const Operation &operation, Stream &stream) {
  switch (operation.kind) {
  case Operation::Kind::Launch:
    return stream.launch(*operation.launch);
  case Operation::Kind::Upload:
    return stream.upload(*operation.target, operation.offset, operation.from, operation.bytes);
  case Operation::Kind::Download:
    return stream.download(*operation.source, operation.sourceOffset, operation.to, operation.bytes);
  case Operation::Kind::Copy:
    return stream.copy(*operation.target, operation.offset, *operation.source, operation.sourceOffset,
                       operation.bytes);
  case Operation::Kind::Fill:
    break;
  }
  return stream.fill(*operation.target, operation.offset, operation.value, operation.bytes);
}

Error Graph::doLaunch(Stream &stream) {
  for (const Operation &operation : operations)
    if (Error error = apply(operation, stream))
      return error;
  return Error::success();
}

Error Graph::launch(Stream &stream) {
  if (stream.owner() != identity)
    return refuse("the stream is of ", otherDevice(stream.owner(), identity), ", the graph's");
  if (!isRecorded) {
    if (Error error = record())
      return error;
    isRecorded = true;
  }
  return doLaunch(stream);
}

//===----------------------------------------------------------------------===//
// Modules and devices
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<Launch>> Module::prepare(std::string_view name, Grid grid,
                                                  const std::vector<Argument> &arguments) {
  auto kernel = check(name, grid, arguments);
  if (!kernel)
    return kernel.error();
  return doPrepare(**kernel, grid, arguments);
}

Expected<std::unique_ptr<Stream>> Device::wrapStream(void *) {
  return refuse(name(), " takes no streams of its driver");
}

Expected<std::unique_ptr<Stream>> Device::createDefaultStream() { return createStream(); }

} // namespace qd::rt

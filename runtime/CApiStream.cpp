// The C interface: prepared launches, streams, events and graphs.
#include "runtime/CApi.h"

using namespace qd::rt;
using namespace qd::rt::capi;

namespace {

/// Makes an object of a device by one of its functions and hands it out.
template <typename State, typename Part, typename Handle, typename Make>
qdrtStatus make(qdrtDevice device, const char *what, Handle *handle, std::unique_ptr<Part> State::*part, Make &&call) {
  if (!hasPlace(handle, what))
    return QDRT_INVALID;
  auto owner = share<DeviceState>(device);
  if (!owner)
    return QDRT_INVALID;
  Expected<std::unique_ptr<Part>> made = call(*owner->device);
  if (!made)
    return report(made.error());
  auto state = std::make_shared<State>();
  state->device = std::move(owner);
  (*state).*part = std::move(*made);
  return give(std::move(state), handle);
}

/// A live stream of an open device, that of `device` for null; or null, reported.
Stream *streamOf(qdrtStream handle, const DeviceState &device) {
  if (!handle)
    return device.stream.get();
  auto *state = findOpen<StreamState>(handle);
  return state ? state->stream.get() : nullptr;
}

qdrtStatus tell(const Expected<bool> &answer, int *place) {
  if (!answer)
    return report(answer.error());
  *place = *answer;
  return QDRT_OK;
}

/// Adds an operation to a graph, which keeps its parts.
template <typename... Parts>
qdrtStatus addTo(GraphState &graph, const Error &error, const std::shared_ptr<Parts> &...parts) {
  if (error)
    return report(error);
  (graph.parts.push_back(parts), ...);
  return QDRT_OK;
}

} // namespace

//===----------------------------------------------------------------------===//
// Prepared launches
//===----------------------------------------------------------------------===//

qdrtStatus qdrtPrepare(qdrtKernel kernel, const uint32_t grid[3], const qdrtArgument *arguments, size_t count,
                       qdrtPrepared *prepared) {
  if (!hasPlace(prepared, "the prepared launch"))
    return QDRT_INVALID;
  auto *state = findOpen<KernelState>(kernel);
  if (!state)
    return QDRT_INVALID;
  auto result = std::make_shared<LaunchState>();
  std::vector<Argument> read;
  if (qdrtStatus status = readLaunch(*state, grid, arguments, count, read, result->buffers))
    return status;
  auto launch = state->module->module->prepare(state->kernel->name, {grid[0], grid[1], grid[2]}, read);
  if (!launch)
    return report(launch.error());
  result->module = state->module;
  result->launch = std::move(*launch);
  return give(std::move(result), prepared);
}

qdrtStatus qdrtPreparedSetArgument(qdrtPrepared prepared, size_t index, const qdrtArgument *argument) {
  auto *state = findOpen<LaunchState>(prepared);
  if (!state)
    return QDRT_INVALID;
  if (!argument)
    return report(QDRT_INVALID, "the argument is null");
  const Kernel &kernel = state->launch->kernel();
  if (index >= kernel.parameters.size())
    return report(QDRT_INVALID, text("kernel '", kernel.name, "' takes ", kernel.parameters.size(),
                                     " arguments, got one at position ", index));
  std::shared_ptr<BufferState> buffer;
  auto read = readArgument(*argument, buffer);
  if (!read)
    return report(QDRT_INVALID, text("argument '", kernel.parameters[index].name, "' of kernel '", kernel.name, "' ",
                                     read.message()));
  if (Error error = state->launch->setArgument(index, *read))
    return report(error);
  state->buffers[index] = std::move(buffer);
  return QDRT_OK;
}

qdrtStatus qdrtPreparedSetGrid(qdrtPrepared prepared, const uint32_t grid[3]) {
  auto *state = findOpen<LaunchState>(prepared);
  if (!state)
    return QDRT_INVALID;
  if (!grid)
    return report(QDRT_INVALID, "the grid is null");
  return finish(state->launch->setGrid({grid[0], grid[1], grid[2]}));
}

qdrtStatus qdrtPreparedLaunch(qdrtPrepared prepared, qdrtStream stream) {
  auto *state = findOpen<LaunchState>(prepared);
  Stream *to = state ? streamOf(stream, *state->module->device) : nullptr;
  if (!to)
    return QDRT_INVALID;
  return finish(to->launch(*state->launch));
}

void qdrtPreparedFree(qdrtPrepared prepared) { endHandle(HandleKind::Launch, reinterpret_cast<uint64_t>(prepared)); }

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

qdrtStatus qdrtStreamCreate(qdrtDevice device, qdrtStream *stream) {
  return make(device, "the stream", stream, &StreamState::stream, [](Device &of) { return of.createStream(); });
}

qdrtStatus qdrtStreamWrap(qdrtDevice device, void *native, qdrtStream *stream) {
  return make(device, "the stream", stream, &StreamState::stream,
              [native](Device &of) { return of.wrapStream(native); });
}

void qdrtStreamFree(qdrtStream stream) { endHandle(HandleKind::Stream, reinterpret_cast<uint64_t>(stream)); }

void *qdrtStreamNative(qdrtStream stream) {
  auto *state = findOpen<StreamState>(stream);
  return state ? state->stream->native() : nullptr;
}

qdrtStatus qdrtStreamSynchronize(qdrtStream stream) {
  auto *state = findOpen<StreamState>(stream);
  return state ? finish(state->stream->synchronize()) : QDRT_INVALID;
}

qdrtStatus qdrtStreamQuery(qdrtStream stream, int *isFinished) {
  if (!hasPlace(isFinished, "the answer"))
    return QDRT_INVALID;
  auto *state = findOpen<StreamState>(stream);
  return state ? tell(state->stream->isFinished(), isFinished) : QDRT_INVALID;
}

qdrtStatus qdrtStreamWaitEvent(qdrtStream stream, qdrtEvent event) {
  auto *waiting = findOpen<EventState>(event);
  Stream *to = waiting ? streamOf(stream, *waiting->device) : nullptr;
  return to ? finish(to->wait(*waiting->event)) : QDRT_INVALID;
}

qdrtStatus qdrtStreamUpload(qdrtStream stream, qdrtBuffer buffer, uint64_t offset, const void *data, uint64_t bytes) {
  auto *target = findOpen<BufferState>(buffer);
  Stream *to = target && hasData(data, bytes) ? streamOf(stream, *target->device) : nullptr;
  return to ? finish(to->upload(*target->buffer, offset, data, bytes)) : QDRT_INVALID;
}

qdrtStatus qdrtStreamDownload(qdrtStream stream, qdrtBuffer buffer, uint64_t offset, void *data, uint64_t bytes) {
  auto *source = findOpen<BufferState>(buffer);
  Stream *to = source && hasData(data, bytes) ? streamOf(stream, *source->device) : nullptr;
  return to ? finish(to->download(*source->buffer, offset, data, bytes)) : QDRT_INVALID;
}

qdrtStatus qdrtStreamCopy(qdrtStream stream, qdrtBuffer target, uint64_t targetOffset, qdrtBuffer source,
                          uint64_t sourceOffset, uint64_t bytes) {
  auto *into = findOpen<BufferState>(target), *from = into ? findOpen<BufferState>(source) : nullptr;
  Stream *to = from ? streamOf(stream, *into->device) : nullptr;
  return to ? finish(to->copy(*into->buffer, targetOffset, *from->buffer, sourceOffset, bytes)) : QDRT_INVALID;
}

qdrtStatus qdrtStreamFill(qdrtStream stream, qdrtBuffer buffer, uint64_t offset, uint32_t value, uint64_t bytes) {
  auto *target = findOpen<BufferState>(buffer);
  Stream *to = target ? streamOf(stream, *target->device) : nullptr;
  return to ? finish(to->fill(*target->buffer, offset, static_cast<uint8_t>(value), bytes)) : QDRT_INVALID;
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

qdrtStatus qdrtEventCreate(qdrtDevice device, qdrtEvent *event) {
  return make(device, "the event", event, &EventState::event, [](Device &of) { return of.createEvent(); });
}

void qdrtEventFree(qdrtEvent event) { endHandle(HandleKind::Event, reinterpret_cast<uint64_t>(event)); }

qdrtStatus qdrtEventRecord(qdrtEvent event, qdrtStream stream) {
  auto *state = findOpen<EventState>(event);
  Stream *of = state ? streamOf(stream, *state->device) : nullptr;
  return of ? finish(of->record(*state->event)) : QDRT_INVALID;
}

qdrtStatus qdrtEventSynchronize(qdrtEvent event) {
  auto *state = findOpen<EventState>(event);
  return state ? finish(state->event->synchronize()) : QDRT_INVALID;
}

qdrtStatus qdrtEventQuery(qdrtEvent event, int *hasHappened) {
  if (!hasPlace(hasHappened, "the answer"))
    return QDRT_INVALID;
  auto *state = findOpen<EventState>(event);
  return state ? tell(state->event->hasHappened(), hasHappened) : QDRT_INVALID;
}

qdrtStatus qdrtEventElapsed(qdrtEvent start, qdrtEvent end, double *seconds) {
  if (!hasPlace(seconds, "the seconds"))
    return QDRT_INVALID;
  auto *from = findOpen<EventState>(start), *to = from ? findOpen<EventState>(end) : nullptr;
  if (!to)
    return QDRT_INVALID;
  auto passed = to->event->since(*from->event);
  if (!passed)
    return report(passed.error());
  *seconds = *passed;
  return QDRT_OK;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

qdrtStatus qdrtGraphCreate(qdrtDevice device, qdrtGraph *graph) {
  return make(device, "the graph", graph, &GraphState::graph, [](Device &of) { return of.createGraph(); });
}

void qdrtGraphFree(qdrtGraph graph) { endHandle(HandleKind::Graph, reinterpret_cast<uint64_t>(graph)); }

qdrtStatus qdrtGraphAddLaunch(qdrtGraph graph, qdrtPrepared prepared) {
  auto *state = findOpen<GraphState>(graph);
  auto part = state ? shareOpen<LaunchState>(prepared) : nullptr;
  return part ? addTo(*state, state->graph->addLaunch(*part->launch), part) : QDRT_INVALID;
}

qdrtStatus qdrtGraphAddUpload(qdrtGraph graph, qdrtBuffer buffer, uint64_t offset, const void *data, uint64_t bytes) {
  auto *state = findOpen<GraphState>(graph);
  auto part = state && hasData(data, bytes) ? shareOpen<BufferState>(buffer) : nullptr;
  return part ? addTo(*state, state->graph->addUpload(*part->buffer, offset, data, bytes), part) : QDRT_INVALID;
}

qdrtStatus qdrtGraphAddDownload(qdrtGraph graph, qdrtBuffer buffer, uint64_t offset, void *data, uint64_t bytes) {
  auto *state = findOpen<GraphState>(graph);
  auto part = state && hasData(data, bytes) ? shareOpen<BufferState>(buffer) : nullptr;
  return part ? addTo(*state, state->graph->addDownload(*part->buffer, offset, data, bytes), part) : QDRT_INVALID;
}

qdrtStatus qdrtGraphAddCopy(qdrtGraph graph, qdrtBuffer target, uint64_t targetOffset, qdrtBuffer source,
                            uint64_t sourceOffset, uint64_t bytes) {
  auto *state = findOpen<GraphState>(graph);
  auto into = state ? shareOpen<BufferState>(target) : nullptr;
  auto from = into ? shareOpen<BufferState>(source) : nullptr;
  if (!from)
    return QDRT_INVALID;
  return addTo(*state, state->graph->addCopy(*into->buffer, targetOffset, *from->buffer, sourceOffset, bytes), into,
               from);
}

qdrtStatus qdrtGraphAddFill(qdrtGraph graph, qdrtBuffer buffer, uint64_t offset, uint32_t value, uint64_t bytes) {
  auto *state = findOpen<GraphState>(graph);
  auto part = state ? shareOpen<BufferState>(buffer) : nullptr;
  if (!part)
    return QDRT_INVALID;
  return addTo(*state, state->graph->addFill(*part->buffer, offset, static_cast<uint8_t>(value), bytes), part);
}

qdrtStatus qdrtGraphLaunch(qdrtGraph graph, qdrtStream stream) {
  auto *state = findOpen<GraphState>(graph);
  Stream *to = state ? streamOf(stream, *state->device) : nullptr;
  return to ? finish(state->graph->launch(*to)) : QDRT_INVALID;
}

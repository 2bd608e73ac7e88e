// Exported functions: streams, events and graphs.
#include "Call.h"

#include <chrono>

using namespace hipdouble;

namespace {

constexpr unsigned nonBlocking = 1;
constexpr int relaxed = 2;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Each question lets one more command be carried out.
int query(const Point &point) {
  if (!point.queue || point.queue->done >= point.number)
    return success;
  finish(point.queue, point.queue->done + 1);
  return notReady;
}

int noStream(const char *what) { return misuse(contextIsDestroyed, std::string(what) + " a stream that is none"); }
int noEvent(const char *what) { return misuse(invalidHandle, std::string(what) + " an event that is none"); }

} // namespace

HIP_API int hipStreamCreateWithFlags(void **stream, unsigned flags) {
  HIP_BEGIN("hipStreamCreateWithFlags");
  if (flags > nonBlocking)
    return invalidValue;
  auto object = std::make_shared<StreamObject>();
  object->queue = std::make_shared<Queue>();
  object->queue->device = currentDevice;
  object->queue->isBlocking = !flags;
  *stream = addObject(std::move(object));
  return success;
}
/// HIP may wait for a stream's commands or drop them: these are dropped.
HIP_API int hipStreamDestroy(void *stream) {
  Call call("hipStreamDestroy");
  auto object = findObject<StreamObject>(stream);
  if (!object)
    return noStream("destroyed is");
  if (!object->queue->commands.empty())
    misuse(success, "a stream is destroyed that has not finished");
  object->queue->commands.clear();
  object->queue->done = object->queue->given;
  removeObject(stream);
  return call.injected;
}
HIP_API int hipStreamSynchronize(void *stream) {
  HIP_BEGIN("hipStreamSynchronize");
  if (!stream) {
    finishDevice(currentDevice, /*blockingOnly=*/true);
    return takeError(currentDevice);
  }
  std::shared_ptr<Queue> queue = queueOf(stream);
  if (!queue)
    return noStream("waited is for");
  if (queue->captured)
    return queue->isInvalidated = true, captureUnsupported;
  finish(queue, queue->given);
  return takeError(queue->device);
}
HIP_API int hipStreamQuery(void *stream) {
  HIP_BEGIN("hipStreamQuery");
  std::shared_ptr<Queue> queue = queueOf(stream);
  return queue ? query({queue, queue->given}) : noStream("asked is for");
}
HIP_API int hipStreamWaitEvent(void *stream, void *event, unsigned flags) {
  HIP_BEGIN("hipStreamWaitEvent");
  std::shared_ptr<Queue> queue = queueOf(stream);
  auto object = findObject<EventObject>(event);
  if (!queue || !object)
    return queue ? noEvent("waited is for") : noStream("an event is waited for by");
  if (flags)
    return invalidValue;
  if (!object->point.queue)
    return success;
  return give(*queue, [] { return success; }, {object->point});
}
HIP_API int hipDeviceSynchronize() {
  HIP_BEGIN("hipDeviceSynchronize");
  if (int code = breakCaptures(captureUnsupported))
    return code;
  finishDevice(currentDevice, /*blockingOnly=*/false);
  return takeError(currentDevice);
}

HIP_API int hipEventCreateWithFlags(void **event, unsigned) {
  HIP_BEGIN("hipEventCreateWithFlags");
  *event = addObject(std::make_shared<EventObject>());
  return success;
}
HIP_API int hipEventRecord(void *event, void *stream) {
  HIP_BEGIN("hipEventRecord");
  std::shared_ptr<Queue> queue = queueOf(stream);
  auto object = findObject<EventObject>(event);
  if (!queue || !object)
    return queue ? noEvent("recorded is") : noStream("an event is recorded in");
  if (object->device != queue->device)
    return invalidHandle;
  if (queue->captured)
    return queue->isInvalidated = true, captureUnsupported;
  auto time = std::make_shared<int64_t>(0);
  int code = give(*queue, [time] { return *time = now(), success; });
  object->point = {queue, queue->given};
  object->time = time;
  return code;
}
HIP_API int hipEventSynchronize(void *event) {
  HIP_BEGIN("hipEventSynchronize");
  auto object = findObject<EventObject>(event);
  if (!object)
    return noEvent("waited is for");
  if (!object->point.queue)
    return success;
  finish(object->point.queue, object->point.number);
  return takeError(object->device);
}
HIP_API int hipEventQuery(void *event) {
  HIP_BEGIN("hipEventQuery");
  auto object = findObject<EventObject>(event);
  return object ? query(object->point) : noEvent("asked is for");
}
HIP_API int hipEventElapsedTime(float *milliseconds, void *start, void *end) {
  HIP_BEGIN("hipEventElapsedTime");
  auto first = findObject<EventObject>(start), last = findObject<EventObject>(end);
  if (!first || !last)
    return noEvent("the time is asked of");
  if (first->device != last->device || !first->time || !last->time)
    return invalidHandle;
  if (!*first->time || !*last->time)
    return notReady;
  *milliseconds = float(double(*last->time - *first->time) * 1e-6);
  return success;
}
HIP_API int hipEventDestroy(void *event) {
  Call call("hipEventDestroy");
  if (!findObject<EventObject>(event))
    return misuse(contextIsDestroyed, "an event is destroyed that is none");
  removeObject(event);
  return call.injected;
}

HIP_API int hipStreamBeginCapture(void *stream, int mode) {
  HIP_BEGIN("hipStreamBeginCapture");
  std::shared_ptr<Queue> queue = queueOf(stream);
  if (!queue)
    return noStream("captured is");
  if (!stream || queue->captured || mode != relaxed)
    return captureUnsupported;
  queue->captured = std::make_unique<Steps>();
  return success;
}
/// Ends the capture whatever it returns.
HIP_API int hipStreamEndCapture(void *stream, void **graph) {
  Call call("hipStreamEndCapture");
  std::shared_ptr<Queue> queue = queueOf(stream);
  *graph = nullptr;
  if (!queue || !queue->captured)
    return queue ? int(captureUnmatched) : noStream("captured is");
  std::unique_ptr<Steps> steps = std::move(queue->captured);
  if (std::exchange(queue->isInvalidated, false) || call.injected)
    return call.injected ? call.injected : captureInvalidated;
  auto object = std::make_shared<GraphObject>();
  object->steps = std::move(*steps);
  *graph = addObject(std::move(object));
  return success;
}
HIP_API int hipGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
  HIP_BEGIN("hipGraphInstantiateWithFlags");
  auto object = findObject<GraphObject>(graph);
  if (!object || flags)
    return object ? int(invalidValue) : misuse(invalidValue, "instantiated is a graph that is none");
  auto made = std::make_shared<ExecutableObject>();
  made->steps = object->steps;
  *executable = addObject(std::move(made));
  return success;
}
/// The graph must live until its commands were carried out.
HIP_API int hipGraphLaunch(void *executable, void *stream) {
  HIP_BEGIN("hipGraphLaunch");
  std::shared_ptr<Queue> queue = queueOf(stream);
  auto object = findObject<ExecutableObject>(executable);
  if (!queue || !object)
    return queue ? misuse(invalidValue, "launched is a graph that is none") : noStream("a graph is launched in");
  return give(*queue, [graph = std::weak_ptr<ExecutableObject>(object)]() -> int {
    auto live = graph.lock();
    if (!live)
      return misuse(launchFailure, "a graph is destroyed before its launch has finished");
    int code = success;
    for (auto &step : live->steps)
      if (int stepCode = step(); stepCode && !code)
        code = stepCode;
    return code;
  });
}
HIP_API int hipGraphDestroy(void *graph) {
  Call call("hipGraphDestroy");
  if (!findObject<GraphObject>(graph))
    return misuse(invalidValue, "a graph is destroyed that is none");
  removeObject(graph);
  return call.injected;
}
HIP_API int hipGraphExecDestroy(void *executable) {
  Call call("hipGraphExecDestroy");
  if (!findObject<ExecutableObject>(executable))
    return misuse(invalidValue, "an executable graph is destroyed that is none");
  removeObject(executable);
  return call.injected;
}

// Streams, events and graphs of a Vulkan device. All are command buffers on its one queue, each begun and ended by a
// barrier, so that the queue runs them in the order in which they were submitted; a stream knows its last one.
#include "runtime/Vulkan.h"

#include <algorithm>

namespace qd::rt {

namespace {

using Serial = VulkanContext::Serial;

/// Whether the device can fill the bytes: by whole words, the last of which may reach into the padding of the buffer.
bool fillsWords(const Buffer &buffer, size_t offset, size_t bytes) {
  return offset % 4 == 0 && (bytes % 4 == 0 || offset + bytes == buffer.bytes());
}

void recordFill(const VulkanContext &context, VkCommandBuffer commands, Buffer &target, size_t offset, uint8_t value,
                size_t bytes) {
  context.vk.CmdFillBuffer(commands, static_cast<VulkanBuffer &>(target).storage().buffer, offset,
                           (bytes + 3) / 4 * 4, value * 0x01010101u);
}

void recordCopy(const VulkanContext &context, VkCommandBuffer commands, Buffer &target, size_t offset, Buffer &source,
                size_t sourceOffset, size_t bytes) {
  VkBufferCopy region = {sourceOffset, offset, bytes};
  context.vk.CmdCopyBuffer(commands, static_cast<VulkanBuffer &>(source).storage().buffer,
                           static_cast<VulkanBuffer &>(target).storage().buffer, 1, &region);
}

class VulkanEvent : public Event {
public:
  explicit VulkanEvent(VulkanContext &context) : Event(&context), context(context) {}
  ~VulkanEvent() override {
    (void)context.wait(serial);
    context.release(commands);
    if (queries)
      context.vk.DestroyQueryPool(context.device, queries, nullptr);
  }

  Error create() {
    if (context.facts.timestampBits) {
      VkQueryPoolCreateInfo info = {};
      info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
      info.queryType = VK_QUERY_TYPE_TIMESTAMP;
      info.queryCount = 1;
      if (VkResult result = context.vk.CreateQueryPool(context.device, &info, nullptr, &queries))
        return fail("cannot create an event: ", vulkanStatus(result));
    }
    Error error = context.record(commands, [&](VkCommandBuffer into) {
      if (!queries)
        return;
      context.vk.CmdResetQueryPool(into, queries, 0, 1);
      context.vk.CmdWriteTimestamp(into, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries, 0);
    });
    return error ? fail("cannot create an event: ", error.message()) : Error::success();
  }

  Expected<Serial> submit() {
    auto submitted = context.submit(commands);
    if (!submitted)
      return fail("cannot record an event: ", submitted.message());
    serial = *submitted;
    return serial;
  }

protected:
  Error doSynchronize() override {
    Error error = context.wait(serial);
    return error ? fail("cannot wait for an event: ", error.message()) : Error::success();
  }
  Expected<bool> doHasHappened() override { return context.hasFinished(serial); }
  Expected<double> doSince(Event &start) override {
    if (!queries)
      return fail(context.facts.name, " does not measure time");
    uint64_t ticks[2] = {};
    VkQueryPool pools[2] = {static_cast<VulkanEvent &>(start).queries, queries};
    for (int i = 0; i < 2; ++i)
      if (VkResult result = context.vk.GetQueryPoolResults(context.device, pools[i], 0, 1, sizeof ticks[i], &ticks[i],
                                                           sizeof ticks[i], VK_QUERY_RESULT_64_BIT))
        return fail("cannot take the time between events: ", vulkanStatus(result));
    uint32_t bits = context.facts.timestampBits;
    // Of the counter's width: it may have begun again in between, and the events may have come in the other order.
    auto passed = static_cast<int64_t>((ticks[1] - ticks[0]) << (64 - bits)) >> (64 - bits);
    return static_cast<double>(passed) * context.facts.limits.timestampPeriod * 1e-9;
  }

private:
  VulkanContext &context;
  VkQueryPool queries = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  Serial serial = 0;
};

class VulkanStream : public Stream {
public:
  explicit VulkanStream(VulkanContext &context) : Stream(&context), context(context) {}
  ~VulkanStream() override {
    (void)context.wait(last);
    for (Recorded &each : recorded)
      context.release(each.commands);
  }

  Error synchronize() override {
    Error error = context.wait(last);
    return error ? fail("cannot wait for a stream: ", error.message()) : Error::success();
  }
  Expected<bool> isFinished() override { return context.hasFinished(last); }

  /// The stream's work now ends with a submission.
  Error follow(const Expected<Serial> &serial) {
    if (!serial)
      return serial.error();
    last = *serial;
    return Error::success();
  }

protected:
  Error doLaunch(Launch &launch) override { return follow(static_cast<VulkanLaunch &>(launch).submit()); }
  // Copies with the host wait for it: they have finished on return.
  Error doUpload(Buffer &target, size_t offset, const void *data, size_t bytes) override {
    return target.upload(data, bytes, offset);
  }
  Error doDownload(Buffer &source, size_t offset, void *data, size_t bytes) override {
    return source.download(data, bytes, offset);
  }
  Error doCopy(Buffer &target, size_t offset, Buffer &source, size_t sourceOffset, size_t bytes) override {
    return run("copy on the device", [&](VkCommandBuffer commands) {
      recordCopy(context, commands, target, offset, source, sourceOffset, bytes);
    });
  }
  Error doFill(Buffer &target, size_t offset, uint8_t value, size_t bytes) override {
    if (!fillsWords(target, offset, bytes))
      return target.fill(value, bytes, offset);
    return run("fill memory of the device", [&](VkCommandBuffer commands) {
      recordFill(context, commands, target, offset, value, bytes);
    });
  }
  Error doRecord(Event &event) override { return follow(static_cast<VulkanEvent &>(event).submit()); }
  /// The queue runs later work later.
  Error doWait(Event &) override { return Error::success(); }

private:
  struct Recorded {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    Serial serial = 0;
  };

  /// Submits commands that are recorded for this once.
  Error run(const char *what, const std::function<void(VkCommandBuffer)> &content) {
    Recorded &slot = recorded[next++ % recorded.size()];
    Error error = context.wait(slot.serial);
    if (!error)
      error = context.record(slot.commands, content);
    if (!error) {
      auto serial = context.submit(slot.commands);
      slot.serial = serial ? *serial : 0;
      error = follow(serial);
    }
    return error ? fail("cannot ", what, ": ", error.message()) : Error::success();
  }

  VulkanContext &context;
  Serial last = 0;
  std::array<Recorded, 8> recorded;
  size_t next = 0;
};

/// A command buffer for each run of operations without the host.
class VulkanGraph : public Graph {
public:
  explicit VulkanGraph(VulkanContext &context) : Graph(&context), context(context) {}
  ~VulkanGraph() override {
    (void)context.wait(last);
    for (Part &part : parts)
      context.release(part.commands);
  }

protected:
  Error record() override {
    for (size_t begin = 0; begin < operations.size();) {
      size_t end = begin;
      while (end < operations.size() && runsOnDevice(operations[end]))
        ++end;
      if (end == begin) {
        parts.push_back({VK_NULL_HANDLE, begin++});
        continue;
      }
      parts.push_back({VK_NULL_HANDLE, begin});
      Error error = context.record(parts.back().commands, [&](VkCommandBuffer commands) {
        for (size_t i = begin; i < end; ++i) {
          constexpr VkPipelineStageFlags work = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
          if (i > begin)
            context.barrier(commands, work, work);
          recordOne(operations[i], commands);
        }
      });
      if (error)
        return fail("cannot record a graph: ", error.message());
      begin = end;
    }
    return Error::success();
  }

  Error doLaunch(Stream &stream) override {
    for (const Part &part : parts) {
      if (!part.commands) {
        if (Error error = apply(operations[part.first], stream))
          return error;
        continue;
      }
      auto serial = context.submit(part.commands);
      if (!serial)
        return fail("cannot launch a graph: ", serial.message());
      last = *serial;
      if (Error error = static_cast<VulkanStream &>(stream).follow(serial))
        return error;
    }
    return Error::success();
  }

private:
  struct Part {
    /// Null for an operation that the host carries out.
    VkCommandBuffer commands;
    size_t first;
  };

  static bool runsOnDevice(const Operation &operation) {
    switch (operation.kind) {
    case Operation::Kind::Launch:
    case Operation::Kind::Copy:
      return true;
    case Operation::Kind::Fill:
      return fillsWords(*operation.target, operation.offset, operation.bytes);
    case Operation::Kind::Upload:
    case Operation::Kind::Download:
      break;
    }
    return false;
  }

  void recordOne(const Operation &operation, VkCommandBuffer commands) {
    if (operation.kind == Operation::Kind::Launch)
      static_cast<VulkanLaunch *>(operation.launch)->recordTo(commands);
    // Vulkan knows no empty copies.
    else if (!operation.bytes)
      return;
    else if (operation.kind == Operation::Kind::Copy)
      recordCopy(context, commands, *operation.target, operation.offset, *operation.source, operation.sourceOffset,
                 operation.bytes);
    else
      recordFill(context, commands, *operation.target, operation.offset, operation.value, operation.bytes);
  }

  VulkanContext &context;
  std::vector<Part> parts;
  Serial last = 0;
};

} // namespace

Expected<std::unique_ptr<Stream>> createVulkanStream(VulkanContext &context) {
  return std::unique_ptr<Stream>(new VulkanStream(context));
}

Expected<std::unique_ptr<Event>> createVulkanEvent(VulkanContext &context) {
  auto event = std::make_unique<VulkanEvent>(context);
  if (Error error = event->create())
    return error;
  return std::unique_ptr<Event>(std::move(event));
}

std::unique_ptr<Graph> createVulkanGraph(VulkanContext &context) {
  return std::make_unique<VulkanGraph>(context);
}

} // namespace qd::rt

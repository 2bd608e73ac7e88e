// Launches kernels of an object that qdc's LLVM IR for 64-bit Arm was made into: a program without a C library, which
// takes launches from its standard input (Protocol.h) and writes back what they left in their buffers.
//
// Input: `kernels`, a constant of the object. Each launch's blocks are run by processes of their own, which share the
// buffers and take one block after the other in ascending order; what ends one of them is its launch's result.
#include "Protocol.h"

struct Kernel {
  void (*entry)(const void *launch, const void *worker, uint64_t begin, uint64_t end);
  const uint32_t *facts; // bytes of shared memory, where a block's state is in it, subgroups, whether it is cooperative
};
extern const struct Kernel kernels[];

struct Worker {
  void *shared;
  void **frames;
};

struct BlockState {
  uint32_t arrivals, departures, atGrid, phase, progress;
};
enum { NotStarted, Running, AtGrid, Done };

// What the processes of a launch share beside its buffers.
static struct Shared {
  uint64_t next;
  uint32_t lock;
  struct Reply reply;
  const char *message; // of the program's own constants, which are at one place in all processes
} *launch;

//===----------------------------------------------------------------------===//
// What a C library would have
//===----------------------------------------------------------------------===//

enum { sysRead = 63, sysWrite = 64, sysExit = 94, sysYield = 124, sysUnmap = 215, sysClone = 220, sysMap = 222, sysWait = 260 };

static long call(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}

static void leave(int status) {
  call(sysExit, status, 0, 0, 0, 0, 0);
  __builtin_unreachable();
}

void *memset(void *memory, int byte, size_t count) {
  for (size_t i = 0; i < count; ++i)
    ((volatile uint8_t *)memory)[i] = (uint8_t)byte;
  return memory;
}

void *memcpy(void *to, const void *from, size_t count) {
  for (size_t i = 0; i < count; ++i)
    ((volatile uint8_t *)to)[i] = ((const uint8_t *)from)[i];
  return to;
}

void *memmove(void *to, const void *from, size_t count) {
  if ((uintptr_t)to <= (uintptr_t)from)
    return memcpy(to, from, count);
  while (count--)
    ((volatile uint8_t *)to)[count] = ((const uint8_t *)from)[count];
  return to;
}

// Pages of zeros, aligned to more than anybody asks for.
static void *allocate(size_t bytes, int isShared) {
  long memory = call(sysMap, 0, (long)(bytes ? bytes : 1), 3, isShared ? 0x21 : 0x22, -1, 0);
  if (memory < 0 && memory > -4096)
    leave(noMemory);
  return (void *)memory;
}

// The program ends with its input.
static void receive(void *into, size_t bytes) {
  for (uint8_t *at = into; bytes;) {
    long got = call(sysRead, 0, (long)at, (long)bytes, 0, 0, 0);
    if (got <= 0)
      leave(0);
    at += got;
    bytes -= (size_t)got;
  }
}

static void answer(const void *from, size_t bytes) {
  for (const uint8_t *at = from; bytes;) {
    long put = call(sysWrite, 1, (long)at, (long)bytes, 0, 0, 0);
    if (put <= 0)
      leave(1);
    at += put;
    bytes -= (size_t)put;
  }
}

//===----------------------------------------------------------------------===//
// What kernels call
//===----------------------------------------------------------------------===//

void *qd_cpu_frame(uint64_t size, uint64_t alignment) {
  (void)alignment;
  return allocate(size, 0);
}

// What is printed is text for people, and not looked at here.
void qd_cpu_print(void *reports, const char *text, const void *values, uint64_t block) {
  (void)reports, (void)text, (void)values, (void)block;
}

void qd_cpu_fail_assert(void *reports, const char *message, uint64_t block, uint32_t thread) {
  (void)reports;
  while (__atomic_exchange_n(&launch->lock, 1, __ATOMIC_ACQUIRE))
    call(sysYield, 0, 0, 0, 0, 0, 0);
  struct Reply *reply = &launch->reply;
  if (reply->outcome != AssertFailed || block < reply->block || (block == reply->block && thread < reply->thread)) {
    launch->message = message;
    reply->block = block;
    reply->thread = thread;
    __atomic_store_n(&reply->outcome, AssertFailed, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&launch->lock, 0, __ATOMIC_RELEASE);
  leave(0);
}

static int hasFailed(void) { return __atomic_load_n(&launch->reply.outcome, __ATOMIC_RELAXED) != Finished; }

void qd_cpu_check_launch(void *reports) {
  (void)reports;
  if (hasFailed())
    leave(0);
}

void qd_cpu_pause(void) { call(sysYield, 0, 0, 0, 0, 0, 0); }

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

// Memory holds anything when a block starts.
static void equip(struct Worker *worker, const uint32_t *facts) {
  worker->shared = allocate(facts[0], 0);
  memset(worker->shared, 0xa5, facts[0]);
  worker->frames = allocate(facts[2] * sizeof(void *), 0);
}

static void runApart(const struct Kernel *kernel, const void *record, uint64_t blocks) {
  struct Worker worker;
  equip(&worker, kernel->facts);
  while (!hasFailed()) {
    uint64_t block = __atomic_fetch_add(&launch->next, 1, __ATOMIC_RELAXED);
    if (block >= blocks)
      return;
    kernel->entry(record, &worker, block, block + 1);
  }
}

// All blocks, from one barrier of the grid to the next.
static void runTogether(const struct Kernel *kernel, const void *record, uint64_t blocks) {
  struct Worker *workers = allocate(blocks * sizeof(struct Worker), 0);
  const struct Worker **addresses = allocate(blocks * sizeof(void *), 0);
  struct BlockState **states = allocate(blocks * sizeof(void *), 0);
  for (uint64_t i = 0; i < blocks; ++i) {
    equip(&workers[i], kernel->facts);
    addresses[i] = &workers[i];
    states[i] = (struct BlockState *)((char *)workers[i].shared + kernel->facts[1]);
    *states[i] = (struct BlockState){0, 0, 0, 0, NotStarted};
  }
  for (uint64_t waiting, done; !hasFailed();) {
    waiting = done = 0;
    for (uint64_t i = 0; i < blocks; ++i) {
      if (states[i]->progress <= Running)
        kernel->entry(record, addresses, i, i + 1);
      waiting += states[i]->progress == AtGrid;
      done += states[i]->progress == Done;
    }
    if (done == blocks)
      return;
    if (waiting + done == blocks && done)
      launch->reply.outcome = SomeBlocksEnded;
    if (waiting == blocks)
      for (uint64_t i = 0; i < blocks; ++i) {
        ++states[i]->phase;
        states[i]->atGrid = 0;
        states[i]->progress = Running;
      }
  }
}

// The processes of a launch; each one's status is that of exit or a signal.
static void run(const struct Request *request, const void *record) {
  const struct Kernel *kernel = &kernels[request->kernel];
  uint64_t blocks = (uint64_t)request->grid[0] * request->grid[1] * request->grid[2];
  int isCooperative = kernel->facts[3];
  unsigned processes = isCooperative ? 1 : request->workers;
  for (unsigned i = 0; i < processes; ++i) {
    enum { childEnds = 17 };
    long child = call(sysClone, childEnds, 0, 0, 0, 0, 0);
    if (child < 0)
      leave(noMemory);
    if (child)
      continue;
    (isCooperative ? runTogether : runApart)(kernel, record, blocks);
    leave(0);
  }
  for (unsigned i = 0; i < processes; ++i) {
    int status = 0;
    call(sysWait, -1, (long)&status, 0, 0, 0, 0);
    if (status && !hasFailed()) {
      launch->reply.outcome = Died;
      launch->reply.thread = (uint32_t)status;
    }
  }
}

void _start(void) {
  launch = allocate(sizeof(*launch), 1);
  while (1) {
    struct Request request;
    receive(&request, sizeof request);
    struct Argument *arguments = allocate(request.numArguments * sizeof(struct Argument), 0);
    receive(arguments, request.numArguments * sizeof(struct Argument));
    // The launch record: the grid, a pointer to reports, which are not used here, and 32 bytes an argument.
    uint64_t *record = allocate(32 + request.numArguments * 32ul, 0);
    memcpy(record, request.grid, sizeof request.grid);
    char **memory = allocate(request.numArguments * sizeof(char *), 0);
    for (uint32_t i = 0; i < request.numArguments; ++i) {
      struct Argument *argument = &arguments[i];
      if (argument->isBuffer && argument->owner == i) {
        memory[i] = allocate(argument->bytes, 1);
        receive(memory[i], argument->bytes);
      }
      if (argument->isBuffer)
        argument->slots[0] = (uint64_t)(memory[argument->owner] + argument->offset);
      memcpy(&record[4 + 4 * i], argument->slots, sizeof argument->slots);
    }
    memset(launch, 0, sizeof(*launch));
    run(&request, record);

    struct Reply *reply = &launch->reply;
    for (const char *end = launch->message; end && *end; ++end)
      ++reply->messageBytes;
    answer(reply, sizeof(*reply));
    answer(launch->message, reply->messageBytes);
    for (uint32_t i = 0; i < request.numArguments; ++i)
      if (memory[i]) {
        answer(memory[i], arguments[i].bytes);
        call(sysUnmap, (long)memory[i], (long)(arguments[i].bytes ? arguments[i].bytes : 1), 0, 0, 0, 0);
      }
    call(sysUnmap, (long)memory, (long)(request.numArguments * sizeof(char *)), 0, 0, 0, 0);
    call(sysUnmap, (long)record, 32 + request.numArguments * 32l, 0, 0, 0, 0);
    call(sysUnmap, (long)arguments, (long)(request.numArguments * sizeof(struct Argument)), 0, 0, 0, 0);
  }
}

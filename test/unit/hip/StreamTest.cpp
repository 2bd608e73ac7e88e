// Streams, events and graphs on HIP. The stand-in carries a command out when somebody waits for it, and drops those of
// what is destroyed before.
#include "HipMachine.h"

#include <atomic>
#include <numeric>
#include <thread>

using namespace qd::rt;

namespace {

class HipStreamTest : public HipMachine {
protected:
  void start(const std::string &chips = "gfx942", const std::string &name = "hip") {
    module.reset();
    device.reset();
    boot(chips);
    device = open(name);
    module = load(*device, scaleProgram);
  }
  void TearDown() override {
    module.reset();
    device.reset();
    HipMachine::TearDown();
  }
  std::unique_ptr<Launch> prepare(Buffer &from, Buffer &to, float a) {
    auto launch = module->prepare("scale", {count / 64, 1, 1},
                                  {Argument::of(int32_t(count)), Argument::of(a), array(from), array(to)});
    EXPECT_TRUE(launch) << launch.message();
    return std::move(*launch);
  }
  std::unique_ptr<Stream> stream() {
    auto made = device->createStream();
    EXPECT_TRUE(made) << made.message();
    return std::move(*made);
  }
  std::unique_ptr<Event> event() {
    auto made = device->createEvent();
    EXPECT_TRUE(made) << made.message();
    return std::move(*made);
  }
  std::unique_ptr<Graph> graph() {
    auto made = device->createGraph();
    EXPECT_TRUE(made) << made.message();
    return std::move(*made);
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Module> module;
};

TEST_F(HipStreamTest, CommandsWaitForTheirTurn) {
  start();
  auto x = allocate(*device, 1.0f), y = allocate(*device, 2.0f);
  auto twice = prepare(*x, *y, 2), thrice = prepare(*y, *x, 3);
  auto one = stream();
  std::vector<float> ones(count, 5), back(count, -1);
  EXPECT_OK(one->upload(*x, 0, ones.data(), count * 4));
  EXPECT_OK(one->launch(*twice));
  EXPECT_OK(one->launch(*thrice));
  EXPECT_OK(one->copy(*y, 0, *x, 4, 4));
  EXPECT_OK(one->fill(*y, 4, 0, 4));
  EXPECT_OK(one->download(*y, 0, back.data(), count * 4));
  EXPECT_EQ(back[0], -1) << "nobody has waited";
  auto finished = one->isFinished();
  ASSERT_TRUE(finished);
  EXPECT_FALSE(*finished);
  EXPECT_OK(one->synchronize());
  EXPECT_EQ(std::vector<float>(back.begin(), back.begin() + 3), (std::vector<float>{30, 0, 10}));
  EXPECT_TRUE(*one->isFinished());
}

/// Calls without a stream wait for all streams, and streams for them.
TEST_F(HipStreamTest, CallsWithoutAStream) {
  start();
  auto x = allocate(*device, 1.0f), y = allocate(*device, 2.0f), z = allocate(*device, 9.0f);
  auto twice = prepare(*x, *y, 2);
  auto one = stream();
  EXPECT_OK(one->launch(*twice));
  EXPECT_EQ(read(*y)[0], 2.0f);
  EXPECT_OK(x->fill(0, count * 4));
  EXPECT_EQ(control().pending(), 0u) << "a fill has finished on return";
  EXPECT_OK(one->launch(*twice));
  EXPECT_OK(z->copyFrom(*y, count * 4));
  EXPECT_EQ(control().pending(), 0u) << "a copy has finished on return";
  EXPECT_EQ(read(*z)[0], 0.0f);
  std::vector<float> ones(count, 1);
  EXPECT_OK(one->upload(*x, 0, ones.data(), count * 4));
  auto seconds = module->launch("scale", {count / 64, 1, 1},
                                {Argument::of(int32_t(count)), Argument::of(7.0f), array(*x), array(*y)});
  ASSERT_TRUE(seconds) << seconds.message();
  EXPECT_GT(*seconds, 0);
  EXPECT_EQ(control().pending(), 0u);
  EXPECT_EQ(read(*y)[0], 7.0f);
  auto defaultStream = device->createDefaultStream();
  ASSERT_TRUE(defaultStream);
  EXPECT_OK((*defaultStream)->launch(*twice));
  EXPECT_OK((*defaultStream)->synchronize());
  EXPECT_EQ(read(*y)[0], 2.0f);
}

TEST_F(HipStreamTest, EventsOrderStreams) {
  start();
  auto x = allocate(*device, 1.0f), y = allocate(*device, 2.0f), z = allocate(*device, 3.0f);
  auto twice = prepare(*x, *y, 2), thrice = prepare(*y, *z, 3);
  auto one = stream(), two = stream();
  auto start = event(), end = event();
  EXPECT_OK(one->record(*start));
  EXPECT_OK(one->launch(*twice));
  EXPECT_OK(one->record(*end));
  EXPECT_FALSE(*end->hasHappened());
  EXPECT_OK(two->wait(*end));
  EXPECT_OK(two->launch(*thrice));
  EXPECT_OK(two->synchronize());
  EXPECT_TRUE(*end->hasHappened());
  EXPECT_EQ(read(*z)[0], 6.0f);
  auto seconds = end->since(*start);
  ASSERT_TRUE(seconds) << seconds.message();
  EXPECT_GT(*seconds, 0);
  // Asking is enough for it to happen at last.
  EXPECT_OK(one->launch(*twice));
  EXPECT_OK(one->record(*end));
  int questions = 0;
  while (!*end->hasHappened() && questions < 100)
    ++questions;
  EXPECT_TRUE(questions > 0 && questions < 100);
}

TEST_F(HipStreamTest, DestructorsWaitForWork) {
  start();
  auto x = allocate(*device, 1.0f), y = allocate(*device, 2.0f), z = allocate(*device, 3.0f);
  auto twice = prepare(*x, *y, 2), thrice = prepare(*y, *z, 3);
  EXPECT_OK(stream()->launch(*twice));
  EXPECT_EQ(read(*y)[0], 2.0f) << "a stream";
  auto one = stream();
  auto together = graph();
  EXPECT_OK(together->addLaunch(*twice));
  EXPECT_OK(together->addLaunch(*thrice));
  EXPECT_OK(together->launch(*one));
  together.reset();
  EXPECT_EQ(read(*z)[0], 6.0f) << "a graph";
  EXPECT_OK(x->fill(0, count * 4));
  EXPECT_OK(one->launch(*twice));
  twice.reset();
  x.reset();
  EXPECT_EQ(read(*y)[0], 0.0f) << "a launch and memory";
  auto fourfold = prepare(*y, *z, 4);
  EXPECT_OK(one->launch(*fourfold));
  fourfold.reset();
  thrice.reset();
  module.reset();
  EXPECT_EQ(read(*z)[0], 0.0f) << "a module";
}

TEST_F(HipStreamTest, GraphsAreRecordedOnce) {
  start();
  auto x = allocate(*device, 1.0f), y = allocate(*device, 2.0f), z = allocate(*device, 9.0f);
  auto twice = prepare(*x, *y, 2);
  std::vector<float> host(count, 3), back(count, -1);
  auto all = graph();
  EXPECT_OK(all->addUpload(*x, 0, host.data(), count * 4));
  EXPECT_OK(all->addLaunch(*twice));
  EXPECT_OK(all->addCopy(*z, 0, *y, 0, count * 4));
  EXPECT_OK(all->addFill(*z, 4, 0, 4));
  EXPECT_OK(all->addDownload(*z, 0, back.data(), count * 4));
  auto one = stream();
  for (int turn = 0; turn < 3; ++turn) {
    host.assign(count, float(turn));
    EXPECT_OK(all->launch(*one));
    EXPECT_EQ(control().pending(), 1u) << "all in one command";
    EXPECT_OK(one->synchronize());
    EXPECT_EQ(back[0], 2.0f * float(turn));
    EXPECT_EQ(back[1], 0.0f);
  }
  auto calls = control().calls();
  EXPECT_EQ(calls["hipStreamBeginCapture"], 1u);
  EXPECT_EQ(calls["hipGraphLaunch"], 3u);
  EXPECT_EQ(calls["hipModuleLaunchKernel"], 1u);
}

/// Recording would carry a cooperative launch out.
TEST_F(HipStreamTest, CooperativeLaunchesInGraphs) {
  start();
  std::unique_ptr<Module> cooperative = load(*device, cooperativeProgram);
  auto y = allocate(*device);
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  EXPECT_OK(y->upload(values.data(), count * 4));
  auto turn = cooperative->prepare("turn", {count / 64, 1, 1}, {array(*y)});
  ASSERT_TRUE(turn) << turn.message();
  auto all = graph();
  EXPECT_OK(all->addLaunch(**turn));
  auto one = stream();
  EXPECT_OK(all->launch(*one));
  EXPECT_EQ(read(*y)[0], float(count - 1));
  EXPECT_OK(all->launch(*one));
  EXPECT_EQ(read(*y)[0], 0.0f);
}

/// Copies without a stream end all recordings of the process where HIP finds one.
TEST_F(HipStreamTest, GraphsWhileOtherThreadsCopy) {
  start();
  auto x = allocate(*device, 1.0f), y = allocate(*device, 2.0f), z = allocate(*device, 3.0f);
  std::atomic<bool> isDone = false, hasFailed = false;
  std::thread other([&] {
    float host = 0;
    while (!isDone)
      if (z->download(&host, 4) || z->fill(0, 4) || device->synchronize())
        hasFailed = true;
  });
  auto one = stream();
  auto twice = prepare(*x, *y, 2);
  for (int turn = 0; turn < 50; ++turn) {
    auto all = graph();
    for (int i = 0; i < 4; ++i)
      EXPECT_OK(all->addLaunch(*twice));
    EXPECT_OK(all->launch(*one));
  }
  EXPECT_OK(one->synchronize());
  isDone = true;
  other.join();
  EXPECT_FALSE(hasFailed);
  EXPECT_EQ(control().calls()["hipGraphInstantiateWithFlags"], 50u) << "none was ended";
  EXPECT_EQ(read(*y)[0], 2.0f);
}

/// Other code of the process may end a recording: the graph is given piece by piece.
TEST_F(HipStreamTest, RecordingsThatFail) {
  for (const char *function : {"hipStreamEndCapture", "hipGraphInstantiateWithFlags"}) {
    start();
    auto x = allocate(*device, 1.0f), y = allocate(*device, 2.0f);
    auto twice = prepare(*x, *y, 2);
    control().fail(function, 1, 901, false);
    auto all = graph();
    EXPECT_OK(all->addLaunch(*twice));
    auto one = stream();
    EXPECT_OK(all->launch(*one));
    EXPECT_OK(all->launch(*one));
    EXPECT_EQ(control().pending(), 2u);
    EXPECT_EQ(read(*y)[0], 2.0f) << function;
    EXPECT_EQ(control().calls()["hipGraphLaunch"], 0u);
  }
}

/// Other code of the thread may make another device current, for which the default stream would then stand.
TEST_F(HipStreamTest, OtherCodeChangesTheDevice) {
  start("gfx942,gfx942", "hip:1");
  auto x = allocate(*device, 1.0f), y = allocate(*device, 2.0f);
  auto twice = prepare(*x, *y, 2);
  auto defaultStream = device->createDefaultStream();
  ASSERT_TRUE(defaultStream);
  auto own = stream();
  auto happened = event();
  auto elsewhere = [] { EXPECT_EQ(callHip("hipSetDevice", 0), 0); };
  for (Stream *to : {defaultStream->get(), own.get()}) {
    EXPECT_OK(y->fill(0, count * 4));
    elsewhere();
    EXPECT_OK(to->launch(*twice));
    elsewhere();
    EXPECT_OK(to->record(*happened));
    elsewhere();
    EXPECT_OK(to->wait(*happened));
    std::vector<float> back(count);
    elsewhere();
    EXPECT_OK(to->download(*y, 0, back.data(), count * 4));
    elsewhere();
    EXPECT_OK(to->synchronize());
    EXPECT_EQ(back[0], 2.0f);
    elsewhere();
    EXPECT_TRUE(*to->isFinished());
    elsewhere();
    auto all = graph();
    EXPECT_OK(all->addLaunch(*twice));
    elsewhere();
    EXPECT_OK(all->launch(*to));
    elsewhere();
  }
  elsewhere();
  auto seconds = module->launch("scale", {1, 1, 1},
                                {Argument::of(int32_t(1)), Argument::of(2.0f), array(*x), array(*y)});
  EXPECT_TRUE(seconds) << seconds.message();
  elsewhere();
  auto z = allocate(*device, 5.0f);
  elsewhere();
  auto again = load(*device, scaleProgram);
  elsewhere();
}

TEST_F(HipStreamTest, SeveralDevices) {
  boot("gfx942,gfx1100");
  auto first = open("hip:0"), second = open("hip:1");
  auto firstModule = load(*first, scaleProgram), secondModule = load(*second, scaleProgram);
  auto x = allocate(*first, 1.0f), y = allocate(*second, 2.0f), z = allocate(*second, 3.0f);
  auto run = [&](Module &module, Buffer &from, Buffer &to) {
    return module.launch("scale", {count / 64, 1, 1},
                         {Argument::of(int32_t(count)), Argument::of(4.0f), array(from), array(to)});
  };
  EXPECT_OK(y->copyFrom(*x, count * 4));
  EXPECT_TRUE(run(*secondModule, *y, *z));
  EXPECT_EQ(read(*z)[0], 4.0f);
  EXPECT_TRUE(run(*firstModule, *x, *x));
  EXPECT_EQ(read(*x)[0], 4.0f);
  EXPECT_EQ(run(*firstModule, *y, *z).message(),
            "argument 'x' of kernel 'scale' is a buffer of hip:1, expected one of hip:0, the kernel's");
  // Devices cannot wait for each other: the host does.
  auto firstStream = first->createStream(), secondStream = second->createStream();
  auto event = first->createEvent();
  ASSERT_TRUE(firstStream && secondStream && event);
  EXPECT_OK((*firstStream)->fill(*x, 0, 0, 4));
  EXPECT_OK((*firstStream)->record(**event));
  EXPECT_OK((*secondStream)->wait(**event));
  EXPECT_EQ(control().pending(), 0u);
  // Threads of both at once.
  auto work = [&](Device &device, Module &module) {
    auto a = allocate(device, 1.0f), b = allocate(device, 0.0f);
    for (int turn = 0; turn < 20; ++turn)
      EXPECT_TRUE(run(module, *a, *b));
    EXPECT_EQ(read(*b)[0], 4.0f);
  };
  std::thread one([&] { work(*first, *firstModule); }), two([&] { work(*second, *secondModule); });
  one.join();
  two.join();
}

} // namespace

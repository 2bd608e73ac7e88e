// Every call of the driver's that a program of all kinds of work makes fails once, and from then on.
#include "HipMachine.h"

using namespace qd::rt;

namespace {

class FailureTest : public HipMachine {
protected:
  /// The first failure's text; "" where none was noticed. What it has done, it undoes.
  std::string run() {
    auto device = Device::open("hip:1");
    if (!device)
      return device.message();
    auto module = (*device)->load(compile(text(scaleProgram, cooperativeProgram), "amdgcn:gfx942"));
    if (!module)
      return module.message();
    std::vector<float> ones(count, 1), back(count, -1);
    std::unique_ptr<Buffer> buffers[3];
    for (auto &buffer : buffers) {
      auto made = (*device)->allocate(count * 4);
      if (!made)
        return made.message();
      buffer = std::move(*made);
    }
    Buffer &x = *buffers[0], &y = *buffers[1], &z = *buffers[2];
    std::vector<Argument> arguments = {Argument::of(int32_t(count)), Argument::of(2.0f), array(x), array(y)};
    Grid grid{count / 64, 1, 1};
    for (const Error &error : {x.upload(ones.data(), count * 4), y.fill(0, count * 4), z.copyFrom(y, count * 4)})
      if (error)
        return error.message();
    if (auto seconds = (*module)->launch("scale", grid, arguments); !seconds)
      return seconds.message();
    if (auto seconds = (*module)->launch("turn", grid, {array(x)}); !seconds)
      return seconds.message();
    auto launch = (*module)->prepare("scale", grid, arguments);
    auto stream = (*device)->createStream();
    auto start = (*device)->createEvent(), end = (*device)->createEvent();
    auto graph = (*device)->createGraph();
    for (const std::string &message :
         {launch ? "" : launch.message(), stream ? "" : stream.message(), start ? "" : start.message(),
          end ? "" : end.message(), graph ? "" : graph.message()})
      if (!message.empty())
        return message;
    Stream &to = **stream;
    for (auto step : std::initializer_list<std::function<Error()>>{
             [&] { return to.record(**start); }, [&] { return to.upload(x, 0, ones.data(), count * 4); },
             [&] { return to.launch(**launch); }, [&] { return to.copy(z, 0, y, 0, count * 4); },
             [&] { return to.fill(z, 4, 0, 4); }, [&] { return to.download(z, 0, back.data(), count * 4); },
             [&] { return to.record(**end); }, [&] { return to.wait(**start); },
             [&] { return (*graph)->addLaunch(**launch); }, [&] { return (*graph)->addFill(z, 0, 0, 4); },
             [&] { return (*graph)->launch(to); }, [&] { return (*graph)->launch(to); },
             [&] { return (*end)->synchronize(); }, [&] { return to.synchronize(); },
             [&] { return (*device)->synchronize(); }})
      if (Error error = step())
        return error.message();
    if (back[0] != 2 || back[1] != 0)
      return text("the results are ", back[0], " and ", back[1]);
    if (auto finished = to.isFinished(); !finished)
      return finished.message();
    if (auto happened = (*end)->hasHappened(); !happened)
      return happened.message();
    if (auto seconds = (*end)->since(**start); !seconds)
      return seconds.message();
    Error last = z.download(back.data(), count * 4);
    return last ? last.message() : "";
  }
};

TEST_F(FailureTest, EveryCallOnceAndFromThenOn) {
  boot("gfx1100,gfx942");
  EXPECT_EQ(run(), "");
  std::map<std::string, unsigned> calls = control().calls();
  EXPECT_GE(calls.size(), 30u);
  // Destructors have nobody to tell, devices may be silent about themselves and about how many blocks run at once, and
  // what cannot be recorded is given piece by piece.
  auto mayPass = [](const std::string &function, unsigned call, bool laterToo) {
    for (const char *silent :
         {"hipFree", "Destroy", "hipModuleUnload", "hipDeviceGetAttribute", "hipDeviceTotalMem", "hipStreamEndCapture",
          "hipGraphInstantiate", "hipStreamSynchronize", "hipDeviceSynchronize", "hipSetDevice", "hipModuleOccupancy"})
      if (function.find(silent) != std::string::npos)
        return true;
    return !laterToo && ((function == "hipModuleGetFunction" && call == 3) ||
                         ((function == "hipModuleLaunchKernel" || function == "hipMemsetD8Async") && call > 1));
  };
  unsigned tried = 0, passed = 0;
  for (auto &[function, most] : calls)
    for (unsigned call = 1; call <= most; ++call)
      for (bool laterToo : {false, true}) {
        // A status that another try could mend, where the device was another, and one that it could not.
        for (int code : {1, 719}) {
          boot("gfx1100,gfx942");
          control().fail(function, call, code, laterToo);
          std::string said = run();
          std::string where = text(function, ", call ", call, laterToo ? " and later" : "", ": ", code, ": ", said);
          ++tried;
          if (said.empty()) {
            ++passed;
            EXPECT_TRUE(mayPass(function, call, laterToo) || (code == 1 && !laterToo)) << where;
          } else {
            const char *words = code == 1 ? "invalid argument (hipErrorInvalidValue)"
                                          : "unspecified launch failure (hipErrorLaunchFailure)";
            EXPECT_NE(said.find(words), std::string::npos) << where;
            EXPECT_EQ(said.find('\n'), std::string::npos) << where;
          }
          EXPECT_EQ(control().live(), std::vector<std::string>()) << where;
          bool wasWaited =
              function != "hipStreamSynchronize" && function != "hipDeviceSynchronize" && function != "hipSetDevice";
          EXPECT_TRUE(!wasWaited || control().problems().empty()) << where;
        }
      }
  EXPECT_GT(tried, 4 * 60u);
  EXPECT_LT(passed, tried / 2);
  boot("gfx1100,gfx942");
}

} // namespace

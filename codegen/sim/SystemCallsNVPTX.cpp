//===----------------------------------------------------------------------===//
// Functions that NVIDIA's driver has for kernels: vprintf and __assertfail.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Compile.h"
#include "codegen/sim/Wave.h"

using namespace llvm;

namespace qd::sim {

namespace {

/// The characters from an address to the next zero.
bool readText(Wave &w, const Op &op, unsigned lane, uint64_t address, std::string &text) {
  for (Wave::Place place; w.access(op, lane, address, GenericSpace, 1, 1, false, "load", place); ++address) {
    if (!*place.data)
      return true;
    text += char(*place.data);
  }
  return false;
}

/// a: the text, b: its values.
void print(Wave &w, const Op &op) {
  if (!w.needsValue(op, op.a, "an address") || !w.needsValue(op, op.b, "an address"))
    return;
  const auto &id = w.block.id, &grid = w.launch.grid;
  uint64_t number = (uint64_t(id[2]) * grid[1] + id[1]) * grid[0] + id[0];
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) {
    std::string text;
    out[l] = 0;
    if (w.stop || !readText(w, op, l, w.val(op.a)[l], text) || !w.image.options.print)
      return;
    w.image.options.print(number, text, [&](unsigned bytes) -> const uint8_t * {
      Wave::Place place;
      bool isRead = w.access(op, l, w.val(op.b)[l], GenericSpace, bytes, 4, false, "load", place);
      return isRead ? place.data : nullptr;
    });
  });
  w.setPoison(op.dst, 0);
}

/// a: the message, b: the file, c: the line.
void failAssert(Wave &w, const Op &op) {
  unsigned lane = countr_zero(w.mask);
  std::string message, file;
  if (readText(w, op, lane, w.val(op.a)[lane], message) && readText(w, op, lane, w.val(op.b)[lane], file))
    w.fail(lane, "assertion fails: " + message + " (" + file + ":" + Twine(w.val(op.c)[lane]) + ")");
}

} // namespace

bool FunctionCompiler::compileSystemCall(const CallBase &call) {
  StringRef name = call.getCalledFunction()->getName();
  auto operand = [&](unsigned i) { return ref(call.getArgOperand(i)); };
  if (name == "vprintf" && call.arg_size() == 2) {
    emit(print, define(call), operand(0), operand(1));
    return true;
  }
  if (name == "__assertfail" && call.arg_size() == 5) {
    emit(failAssert, 0, operand(0), operand(1), operand(2));
    return true;
  }
  return false;
}

} // namespace qd::sim

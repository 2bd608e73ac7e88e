//===----------------------------------------------------------------------===//
// Gives words that are never needed at the same time one place in the frame.
//
// Input: a compiled function in which every value has words of its own.
// Output: the same function in a smaller frame.
//
// A word is in use from the first to the last operation that mentions it, and
// to the end of every loop that it enters alive. Lanes only write their own
// part of a word, so one lane's path through the code is all that counts: lanes
// that wait elsewhere keep what they hold.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Compile.h"
#include <limits>

using namespace llvm;

namespace qd::sim {

namespace {

struct Interval {
  uint32_t first, words; // as allocated before
  int64_t begin = std::numeric_limits<int64_t>::max(), end = -2;
  uint32_t place = 0;

  void mention(int64_t at) {
    begin = std::min(begin, at);
    end = std::max(end, at);
  }
};

} // namespace

void FunctionCompiler::assignWords() {
  std::vector<Interval> intervals;
  std::vector<uint32_t> intervalOf(code.words);
  for (auto [first, words] : groups) {
    std::fill_n(intervalOf.begin() + first, words, intervals.size());
    intervals.push_back({first, words});
  }
  if (groups.empty())
    return;
  auto mention = [&](Ref word, int64_t at) {
    if (word >= 0)
      intervals[intervalOf[word]].mention(at);
  };
  auto mentionEdge = [&](uint64_t number, int64_t at) {
    const Edge &edge = code.edges[number];
    for (uint32_t i = edge.copies; i < edge.copies + edge.copyCount; ++i) {
      mention(code.copies[i].dst, at);
      mention(code.copies[i].src, at);
    }
  };

  for (const Param &param : code.params)
    for (size_t i = 0; i < param.pieces.size(); ++i)
      mention(param.word + i, -1);
  for (auto [at, op] : enumerate(code.ops)) {
    for (Ref word : {op.dst, op.a, op.b, op.c})
      mention(word, at);
    for (unsigned i = 0; i < op.nargs; ++i)
      mention(code.args[op.args + i], at);
    uint64_t edges = op.run == controlHandlers.jump       ? 1
                     : op.run == controlHandlers.branch   ? 2
                     : op.run == controlHandlers.switchOn ? 1 + op.nargs
                                                          : 0;
    for (uint64_t i = 0; i < edges; ++i)
      mentionEdge(op.imm + i, at);
  }

  std::vector<std::pair<int64_t, int64_t>> loops;
  for (auto [header, latch] : latchStart)
    loops.push_back({blockStart[header], latch});
  // Inner loops before the loops around them.
  llvm::sort(loops, [](const auto &a, const auto &b) { return a.second - a.first < b.second - b.first; });
  for (auto [begin, end] : loops)
    for (Interval &interval : intervals)
      if (interval.begin < begin && interval.end >= begin && interval.end < end)
        interval.end = end;

  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < intervals.size(); ++i)
    if (intervals[i].end >= -1)
      order.push_back(i);
  llvm::sort(order, [&](uint32_t a, uint32_t b) {
    return std::pair(intervals[a].begin, a) < std::pair(intervals[b].begin, b);
  });
  std::vector<int64_t> busyUntil;
  for (uint32_t index : order) {
    Interval &interval = intervals[index];
    uint32_t place = 0, run = 0;
    for (uint32_t word = 0; run < interval.words; ++word) {
      if (word == busyUntil.size())
        busyUntil.push_back(-2);
      run = busyUntil[word] < interval.begin ? run + 1 : 0;
      place = word + 1 - run;
    }
    interval.place = place;
    std::fill_n(busyUntil.begin() + place, interval.words, interval.end);
  }

  auto move = [&](Ref &word) {
    if (word < 0)
      return;
    const Interval &interval = intervals[intervalOf[word]];
    word = Ref(interval.place + (uint32_t(word) - interval.first));
  };
  for (Op &op : code.ops)
    for (Ref *word : {&op.dst, &op.a, &op.b, &op.c})
      move(*word);
  for (Ref &word : code.args)
    move(word);
  for (Copy &copy : code.copies) {
    move(copy.dst);
    move(copy.src);
  }
  code.words = busyUntil.size();
}

} // namespace qd::sim

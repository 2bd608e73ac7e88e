//===- RandomTest.cpp - random structured kernels against the interpreter ------------------------===//

#include "Differential.h"

using namespace qd;
using namespace qd::test;

namespace {
/// Writes a kernel: nested ifs and loops, uniform and divergent, that carry i32 values; loads at any subscript, stores
/// to the thread's own elements; shuffles, votes and barriers where all threads come along, ops with members anywhere.
class Generator {
public:
  Generator(unsigned seed, unsigned block, unsigned lanes)
      : random(seed), block(block), wholeSubgroups(block % lanes == 0) {}

  std::string write() {
    text =
        fill("qd.kernel @k(%x: !qd.buffer<i32> readonly, %y: !qd.buffer<i32>, %o: !qd.buffer<i32>) block({block}) {\n"
             "  %sh = qd.shared.alloc : !qd.shared<{block}xi32>\n"
             "  %c0 = arith.constant 0 : i32\n  %c1 = arith.constant 1 : i32\n  %c3 = arith.constant 3 : i32\n"
             "  %c7 = arith.constant 7 : i32\n  %c63 = arith.constant 63 : i32\n  %cm = arith.constant -5 : i32\n"
             "  %i = qd.thread_index : i32\n  %g = qd.global_thread_id x : i32\n  %b = qd.block_id x : i32\n"
             "  %l = qd.subgroup.lane_id : i32\n",
             {{"block", std::to_string(block)}});
    values = {"%c0", "%c1", "%c3", "%c7", "%cm", "%i", "%g", "%b", "%l"};
    emitBlock(4, true);
    for (unsigned i = 0; i < 4; ++i)
      line("qd.store " + pick() + ", %o[" + slot(i) + "] : !qd.buffer<i32>");
    return text + "  qd.return\n}\n";
  }

private:
  std::mt19937 random;
  unsigned block;
  bool wholeSubgroups;
  std::string text;
  std::vector<std::string> values;
  unsigned next = 0;

  unsigned roll(unsigned n) { return random() % n; }
  std::string pick() {
    // Recent values more often, so that results are used.
    size_t window = roll(2) ? std::min<size_t>(values.size(), 6) : values.size();
    return values[values.size() - 1 - roll(window)];
  }
  std::string name() { return "%v" + std::to_string(next++); }
  void line(const std::string &s) { text += "  " + s + "\n"; }
  std::string op(const std::string &s) {
    std::string result = name();
    line(result + " = " + s);
    return result;
  }
  void value(const std::string &s) { values.push_back(op(s)); }
  std::string condition() {
    static const char *predicates[] = {"slt", "sgt", "eq", "ne", "ult", "sle"};
    if (roll(4) == 0) { // uniform
      std::string low = op("arith.andi %b, %c3 : i32");
      return op(std::string("arith.cmpi ") + predicates[roll(6)] + ", " + low + ", %c1 : i32");
    }
    std::string low = op("arith.andi " + pick() + ", %c7 : i32");
    return op(std::string("arith.cmpi ") + predicates[roll(6)] + ", " + low + ", " + (roll(2) ? "%c3" : pick()) +
              " : i32");
  }
  /// An element of %o or %y that is the thread's own: there are 4 for each thread of a grid of 3 blocks.
  std::string slot(unsigned n) {
    std::string start = op("arith.constant " + std::to_string(n * 3 * block) + " : i32");
    return op("arith.addi %g, " + start + " : i32");
  }

  void emitBlock(unsigned depth, bool together) {
    for (unsigned i = 0, n = 3 + roll(6); i < n; ++i)
      emitOne(depth, together);
  }

  void emitOne(unsigned depth, bool together) {
    static const char *binary[] = {"addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxui"};
    switch (roll(together ? 20 : 16)) {
    case 0: case 1: case 2:
      return value(std::string("arith.") + binary[roll(8)] + " " + pick() + ", " + pick() + " : i32");
    case 3:
      return value(std::string("arith.") + (roll(2) ? "remsi " : "divui ") + pick() + ", " +
                   (roll(2) ? "%c3" : op("arith.ori " + op("arith.andi " + pick() + ", %c7 : i32") + ", %c1 : i32")) +
                   " : i32");
    case 4:
      return value("arith.shli " + pick() + ", " + (roll(2) ? "%c1" : "%c3") + " : i32");
    case 5:
      return value("arith.select " + condition() + ", " + pick() + ", " + pick() + " : i32");
    case 6: {
      std::string at = roll(3)   ? op("arith.andi " + pick() + ", %c63 : i32")
                       : roll(2) ? "%g"
                       : roll(2) ? "%b"
                                 : op("arith.addi %i, %c3 : i32");
      return value("qd.load %x[" + at + "]" + (roll(3) ? "" : " if " + condition() + " else " + pick()) +
                   " : !qd.buffer<i32>");
    }
    case 7: {
      std::string at = slot(roll(4));
      if (roll(2))
        return value("qd.load %y[" + at + "] : !qd.buffer<i32>");
      std::string predicate = roll(2) ? " if " + condition() : "";
      return line("qd.store " + pick() + ", %y[" + at + "]" + predicate + " : !qd.buffer<i32>");
    }
    case 8: case 9:
      return depth ? emitIf(depth, together) : void();
    case 10:
      return depth ? emitFor(depth, together) : void();
    case 11:
      return depth ? emitWhile(depth) : void();
    case 12: {
      std::string set = op("qd.subgroup.ballot " + condition() + " members(" + members() + ") : i64");
      std::string shift = op("arith.constant " + std::to_string(roll(40)) + " : i64");
      return value("arith.trunci " + op("arith.shrui " + set + ", " + shift + " : i64") + " : i64 to i32");
    }
    case 13: {
      // Any member, and the last: the number wraps around to it.
      bool isFirst = roll(2);
      std::string mask = members(), zeros = op((isFirst ? "math.cttz " : "math.ctlz ") + mask + " : i64");
      std::string from = op("arith.trunci " + zeros + " : i64 to i32");
      if (!isFirst)
        from = op("arith.subi %c63, " + from + " : i32");
      return value("qd.subgroup.shuffle " + pick() + ", " + from + " members(" + mask + ") : i32");
    }
    case 14: {
      line("qd.subgroup.mem_fence");
      return value("arith.trunci " + op("qd.subgroup.active_mask : i64") + " : i64 to i32");
    }
    case 15: {
      // The same on all lanes, which no analysis sees.
      std::string any = pick(), zero = op("arith.xori " + any + ", " + any + " : i32");
      return value("qd.assume_uniform " + op("arith.ori " + zero + ", " + (roll(2) ? "%b" : "%c7") + " : i32") +
                   (roll(2) ? ", subgroup" : ", block") + " : i32");
    }
    case 16: {
      line("qd.subgroup.sync");
      if (!wholeSubgroups)
        return;
      static const char *shuffles[] = {"shuffle", "shuffle_up", "shuffle_down", "shuffle_xor", "broadcast"};
      std::string lane = roll(2) ? std::to_string(roll(4)) : op("arith.andi " + pick() + ", %c7 : i32");
      return value(std::string("qd.subgroup.") + shuffles[roll(5)] + " " + pick() + ", " + lane +
                   (roll(2) ? " tile(4)" : "") + " : i32");
    }
    case 17: {
      std::string vote = op(std::string("qd.subgroup.") + (roll(2) ? "any " : "all ") + condition() +
                            (block % 2 == 0 && roll(2) ? " tile(2)" : ""));
      return value("arith.select " + vote + ", " + pick() + ", " + pick() + " : i32");
    }
    case 18: {
      std::string ballot = op("qd.subgroup.ballot " + condition() + " : i64");
      return value("arith.trunci " + ballot + " : i64 to i32");
    }
    default: {
      line("qd.store " + pick() + ", %sh[%i] : !qd.shared<" + std::to_string(block) + "xi32>");
      line("qd.block.sync");
      std::string at =
          op("arith.remui " + pick() + ", " + op("arith.constant " + std::to_string(block) + " : i32") + " : i32");
      value("qd.load %sh[" + at + "] : !qd.shared<" + std::to_string(block) + "xi32>");
      return line("qd.block.sync");
    }
    }
  }

  /// Those of the lanes that are here that hold the same condition as the own lane, or all.
  std::string members() {
    std::string here = op("qd.subgroup.active_mask : i64");
    if (roll(2))
      return here;
    std::string mine = condition(), set = op("qd.subgroup.ballot " + mine + " members(" + here + ") : i64");
    return op("arith.select " + mine + ", " + set + ", " + op("arith.xori " + here + ", " + set + " : i64") + " : i64");
  }

  /// A region's body in its own scope; yields `count` of the values in it.
  std::string body(unsigned depth, bool together, const std::vector<std::string> &arguments, unsigned count) {
    std::vector<std::string> saved = values;
    values.insert(values.end(), arguments.begin(), arguments.end());
    emitBlock(depth - 1, together);
    std::string yields;
    for (unsigned i = 0; i < count; ++i)
      yields += (i ? ", " : "") + pick();
    values = saved;
    return yields;
  }
  static std::string types(unsigned count) { return count == 2 ? "i32, i32" : "i32"; }
  void addResults(const std::string &result, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      values.push_back(count == 1 ? result : result + "#" + std::to_string(i));
  }

  void emitIf(unsigned depth, bool) {
    std::string c = condition(), result = name();
    unsigned count = 1 + roll(2);
    line(result + (count == 2 ? ":2" : "") + " = scf.if " + c + " -> (" + types(count) + ") {");
    line("scf.yield " + body(depth, false, {}, count) + " : " + types(count));
    line("} else {");
    line("scf.yield " + body(depth, false, {}, count) + " : " + types(count));
    line("}");
    addResults(result, count);
  }
  void emitFor(unsigned depth, bool together) {
    bool uniform = roll(2);
    std::string lower = uniform ? "%c0" : roll(2) ? "%c1" : op("arith.andi " + pick() + ", %c3 : i32");
    std::string upper =
        uniform ? (roll(2) ? "%c3" : op("arith.andi %b, %c3 : i32")) : op("arith.andi " + pick() + ", %c7 : i32");
    std::string step = roll(2) ? "%c1" : "%c3", result = name(), iv = name(), a = name(), b = name();
    line(result + ":2 = scf.for " + iv + " = " + lower + " to " + upper + " step " + step + " iter_args(" + a + " = " +
         pick() + ", " + b + " = " + pick() + ") -> (i32, i32) : i32 {");
    line("scf.yield " + body(depth, together && uniform && upper == "%c3", {iv, a, b}, 2) + " : i32, i32");
    line("}");
    addResults(result, 2);
  }
  void emitWhile(unsigned depth) {
    std::string trips = op("arith.andi " + (roll(3) ? pick() : std::string("%b")) + ", %c3 : i32");
    std::string result = name(), n = name(), a = name(), m = name(), e = name();
    line(result + ":2 = scf.while (" + n + " = " + trips + ", " + a + " = " + pick() +
         ") : (i32, i32) -> (i32, i32) {");
    std::string forwarded = op("arith.addi " + a + ", " + pick() + " : i32");
    std::string goes = op("arith.cmpi sgt, " + n + ", %c0 : i32");
    line("scf.condition(" + goes + ") " + n + ", " + forwarded + " : i32, i32");
    line("} do {");
    line("^bb0(" + m + ": i32, " + e + ": i32):");
    std::string yield = body(depth, false, {m, e}, 1);
    std::string less = op("arith.subi " + m + ", %c1 : i32");
    line("scf.yield " + less + ", " + yield + " : i32, i32");
    line("}");
    addResults(result, 2);
  }
};
} // namespace

class Random : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(All, Random, testing::Range(0u, 100u));

TEST_P(Random, AgreesWithInterp) {
  unsigned lanes = allLanes[GetParam() % 5];
  unsigned blocks[] = {lanes, 2 * lanes, 64, 30, lanes + 1, 128};
  unsigned block = blocks[GetParam() / 5 % 6];
  std::string text = Generator(GetParam(), block, lanes).write();
  int64_t n = 4 * 3 * block;
  expectLikeInterp(text, lanes, {3, 1, 1},
                   {makeArray("i32", std::max<int64_t>(n, 64), Values::Any), makeArray("i32", n, Values::Any),
                    makeArray("i32", n, Values::Zero)},
                   /*zerosAreEqual=*/false, /*optLevel=*/(GetParam() + 2) % 4);
}

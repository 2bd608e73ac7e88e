// Random structured programs: branches, loops with break and continue, and
// ballots of the lanes that are together. A direct interpreter of the structure
// says what every lane must compute.
#include "Harness.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include <random>

using namespace qd::test;

namespace {

struct Node {
  enum Kind { Mix, Vote, If, Loop, Break, Continue } kind;
  uint32_t a, b; // Mix: x = x * a + b; Vote: x ^= ballot(bit b) * a; else bit b of x decides
  std::vector<Node> first, second;
};

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  std::vector<Node> list(unsigned depth, bool inLoop) {
    std::vector<Node> nodes;
    for (unsigned i = 0, count = 1 + random() % 4; i < count; ++i) {
      unsigned kind = random() % (depth ? 9 : 4);
      Node node{Node::Mix, uint32_t(random() | 1), uint32_t(random() % 32), {}, {}};
      if (kind < 2)
        node.kind = Node::Mix;
      else if (kind < 4)
        node.kind = Node::Vote;
      else if (kind < 6) {
        node.kind = Node::If;
        node.first = list(depth - 1, inLoop);
        if (random() % 2)
          node.second = list(depth - 1, inLoop);
      } else if (kind < 8) {
        node.kind = Node::Loop;
        node.first = list(depth - 1, true);
      } else if (inLoop)
        node.kind = random() % 2 ? Node::Break : Node::Continue;
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

private:
  std::mt19937 random;
};

/// What the structure means, a set of lanes at a time.
class Oracle {
public:
  std::vector<uint32_t> x;
  uint64_t broke = 0, continued = 0;

  uint64_t run(const std::vector<Node> &nodes, uint64_t mask) {
    for (const Node &node : nodes) {
      if (!mask)
        return 0;
      mask = step(node, mask);
    }
    return mask;
  }

private:
  uint64_t withBit(uint64_t mask, unsigned bit) const {
    uint64_t result = 0;
    for (unsigned l = 0; l < x.size(); ++l)
      if (mask >> l & 1 && x[l] >> bit & 1)
        result |= uint64_t(1) << l;
    return result;
  }

  template <typename F> void each(uint64_t mask, F f) {
    for (unsigned l = 0; l < x.size(); ++l)
      if (mask >> l & 1)
        f(l);
  }

  uint64_t step(const Node &node, uint64_t mask) {
    switch (node.kind) {
    case Node::Mix:
      each(mask, [&](unsigned l) { x[l] = x[l] * node.a + node.b; });
      return mask;
    case Node::Vote: {
      uint64_t ballot = withBit(mask, node.b);
      each(mask, [&](unsigned l) { x[l] ^= uint32_t(ballot) * node.a; });
      return mask;
    }
    case Node::If: {
      uint64_t yes = withBit(mask, node.b);
      uint64_t left = run(node.first, yes);
      return left | run(node.second, mask & ~yes);
    }
    case Node::Break: {
      uint64_t yes = withBit(mask, node.b);
      broke |= yes;
      return mask & ~yes;
    }
    case Node::Continue: {
      uint64_t yes = withBit(mask, node.b);
      continued |= yes;
      return mask & ~yes;
    }
    case Node::Loop:
      break;
    }
    std::vector<uint32_t> turns(x.size());
    each(mask, [&](unsigned l) { turns[l] = (x[l] >> node.b) & 3; });
    uint64_t outerBroke = broke, outerContinued = continued, active = mask;
    for (unsigned i = 0; active; ++i) {
      uint64_t stay = 0;
      each(active, [&](unsigned l) { stay |= uint64_t(i < turns[l]) << l; });
      active = stay;
      broke = continued = 0;
      active = run(node.first, active) | continued;
    }
    broke = outerBroke;
    continued = outerContinued;
    return mask;
  }
};

/// The same as IR on variables in memory.
class Emitter {
public:
  explicit Emitter(bool nvptx) : nvptx(nvptx) {}

  std::string kernel(const std::vector<Node> &nodes) {
    std::string slot = nvptx ? "alloca i32" : "alloca i32, addrspace(5)";
    list(nodes, "", "");
    return "%x = " + slot + "\n" + slots + "%tid = call i32 " +
           (nvptx ? "@llvm.nvvm.read.ptx.sreg.tid.x()" : "@llvm.amdgcn.workitem.id.x()") +
           "\n%t = zext i32 %tid to i64\n%pi = getelementptr i32, ptr addrspace(1) %in, i64 %t\n"
           "%po = getelementptr i32, ptr addrspace(1) %out, i64 %t\n%i = load i32, ptr addrspace(1) %pi\n"
           "store i32 %i, " +
           pointer() + " %x\n" + body + "%end = load i32, " + pointer() +
           " %x\nstore i32 %end, ptr addrspace(1) %po\nret void";
  }

private:
  bool nvptx;
  std::string body, slots;
  unsigned names = 0;

  std::string pointer() const { return nvptx ? "ptr" : "ptr addrspace(5)"; }
  std::string name(const char *stem) { return stem + std::to_string(names++); }
  void line(const std::string &text) { body += text + "\n"; }
  std::string let(const std::string &text) {
    std::string value = "%" + name("v");
    line(value + " = " + text);
    return value;
  }
  std::string load(const std::string &variable) { return let("load i32, " + pointer() + " " + variable); }
  void store(const std::string &value, const std::string &variable) {
    line("store i32 " + value + ", " + pointer() + " " + variable);
  }
  std::string bit(unsigned index) {
    std::string shifted = let("lshr i32 " + load("%x") + ", " + std::to_string(index));
    return let("trunc i32 " + shifted + " to i1");
  }

  void list(const std::vector<Node> &nodes, const std::string &exit, const std::string &latch) {
    for (const Node &node : nodes)
      step(node, exit, latch);
  }

  void step(const Node &node, const std::string &exit, const std::string &latch) {
    std::string a = std::to_string(int32_t(node.a)), b = std::to_string(node.b);
    switch (node.kind) {
    case Node::Mix:
      store(let("add i32 " + let("mul i32 " + load("%x") + ", " + a) + ", " + b), "%x");
      return;
    case Node::Vote: {
      std::string p = bit(node.b), ballot;
      if (nvptx)
        ballot = let("call i32 @llvm.nvvm.vote.ballot.sync(i32 " + let("call i32 @llvm.nvvm.activemask()") +
                     ", i1 " + p + ")");
      else
        ballot = let("call i32 @llvm.amdgcn.ballot.i32(i1 " + p + ")");
      store(let("xor i32 " + load("%x") + ", " + let("mul i32 " + ballot + ", " + a)), "%x");
      return;
    }
    case Node::If: {
      std::string yes = name("yes"), no = name("no"), join = name("join");
      line("br i1 " + bit(node.b) + ", label %" + yes + ", label %" + no);
      line(yes + ":");
      list(node.first, exit, latch);
      line("br label %" + join);
      line(no + ":");
      list(node.second, exit, latch);
      line("br label %" + join);
      line(join + ":");
      return;
    }
    case Node::Break:
    case Node::Continue: {
      std::string on = name("on");
      std::string to = node.kind == Node::Break ? exit : latch;
      line("br i1 " + bit(node.b) + ", label %" + to + ", label %" + on);
      line(on + ":");
      return;
    }
    case Node::Loop:
      break;
    }
    std::string head = name("head"), enter = name("enter"), turn = name("turn"), leave = name("leave");
    std::string count = "%" + name("n"), index = "%" + name("i");
    for (const std::string &variable : {count, index})
      slots += variable + (nvptx ? " = alloca i32\n" : " = alloca i32, addrspace(5)\n");
    store(let("and i32 " + let("lshr i32 " + load("%x") + ", " + b) + ", 3"), count);
    store("0", index);
    line("br label %" + head);
    line(head + ":");
    line("br i1 " + let("icmp ult i32 " + load(index) + ", " + load(count)) + ", label %" + enter +
         ", label %" + leave);
    line(enter + ":");
    list(node.first, leave, turn);
    line("br label %" + turn);
    line(turn + ":");
    store(let("add i32 " + load(index) + ", 1"), index);
    line("br label %" + head);
    line(leave + ":");
  }
};

std::string runPromoted(const qd::SimOptions &options, const std::string &text, std::vector<uint32_t> &out,
                        std::vector<uint32_t> &in, bool promote) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(moduleText(options.chip, text), diagnostic, context);
  if (!module)
    return diagnostic.getMessage().str();
  if (promote) {
    llvm::Function &function = *module->getFunction("k");
    llvm::DominatorTree dominators(function);
    std::vector<llvm::AllocaInst *> slots;
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *slot = llvm::dyn_cast<llvm::AllocaInst>(&instruction))
        slots.push_back(slot);
    llvm::PromoteMemToReg(slots, dominators);
  }
  auto program = qd::SimProgram::create(*module, options);
  if (!program)
    return llvm::toString(program.takeError());
  llvm::Error error = (*program)->run(
      "k", {1, 1, 1}, {uint32_t(out.size()), 1, 1},
      {qd::SimArg::buffer(out.data(), out.size() * 4), qd::SimArg::buffer(in.data(), in.size() * 4)});
  return error ? llvm::toString(std::move(error)) : "";
}

TEST(Convergence, RandomStructuredPrograms) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::vector<Node> program = Generator(seed).list(4, false);
    std::vector<uint32_t> in(32);
    std::mt19937 random(seed + 1000);
    for (uint32_t &value : in)
      value = random();
    Oracle oracle;
    oracle.x = in;
    oracle.run(program, 0xffffffff);
    for (const char *chip : {"sm_80", "gfx1100"}) {
      std::string text = Emitter(isNVPTX(chip)).kernel(program);
      for (bool promote : {false, true}) {
        std::vector<uint32_t> out(32);
        ASSERT_EQ(runPromoted(onChip(chip), text, out, in, promote), "") << "seed " << seed << "\n" << text;
        ASSERT_EQ(out, oracle.x) << "seed " << seed << " on " << chip << (promote ? ", promoted" : "") << "\n"
                                 << text;
      }
    }
  }
}

} // namespace

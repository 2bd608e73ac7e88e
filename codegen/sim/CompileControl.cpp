//===----------------------------------------------------------------------===//
// Compiles the control flow of a function: the order of its blocks, edges with
// their phi copies, terminators and calls; and the handlers of all these.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Compile.h"
#include "codegen/sim/Wave.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InlineAsm.h"

using namespace llvm;

namespace qd::sim {

namespace {

constexpr unsigned mostArgs = 65535; // what Op::nargs counts

//===----------------------------------------------------------------------===//
// Handlers
//===----------------------------------------------------------------------===//

void jump(Wave &w, const Op &op) { w.jump(w.fn->edges[op.imm]); }

void branch(Wave &w, const Op &op) {
  if (!w.needsValue(op, op.a, "a branch condition"))
    return;
  const uint64_t *condition = w.val(op.a);
  uint64_t taken = 0;
  w.each([&](unsigned l) { taken |= (condition[l] & 1) << l; });
  const Edge &yes = w.fn->edges[op.imm], &no = w.fn->edges[op.imm + 1];
  if (taken == w.mask)
    w.jump(yes);
  else if (!taken)
    w.jump(no);
  else
    w.split(yes, taken, no, w.mask & ~taken);
}

/// imm: the first edge, the default's; args: the cases' values (low and, where
/// bits is above 64, high words).
void switchOn(Wave &w, const Op &op) {
  if (!w.needsValue(op, op.a, "a switch value"))
    return;
  const uint64_t *value = w.val(op.a);
  uint64_t rest = w.mask;
  SmallVector<std::pair<unsigned, uint64_t>> parts;
  for (unsigned i = 0; i < op.nargs && rest; ++i) {
    uint64_t expected = w.val(w.arg(op, i))[0], here = 0;
    for (uint64_t lanes = rest; lanes; lanes &= lanes - 1) {
      unsigned l = countr_zero(lanes);
      here |= uint64_t(value[l] == expected) << l;
    }
    if (here)
      parts.push_back({i + 1, here});
    rest &= ~here;
  }
  if (rest)
    parts.push_back({0, rest});
  if (parts.size() == 1)
    return w.jump(w.fn->edges[op.imm + parts[0].first]);
  for (auto [edge, lanes] : parts) {
    w.takeEdge(w.fn->edges[op.imm + edge], lanes);
    w.addReady(w.fn->edges[op.imm + edge].pc, lanes);
  }
  w.resumeNext();
}

void turnLoop(Wave &w, const Op &op) { w.turnLoop(uint32_t(op.imm)); }
void call(Wave &w, const Op &op) { w.call(op); }
void ret(Wave &w, const Op &op) { w.ret(op); }

void unreachable(Wave &w, const Op &op) { w.fail(op, countr_zero(w.mask), "unreachable code executed"); }
void trap(Wave &w, const Op &op) { w.fail(op, countr_zero(w.mask), "trap executed"); }

} // namespace

const ControlHandlers controlHandlers = {jump, branch, switchOn, turnLoop, call, ret, unreachable, trap};

//===----------------------------------------------------------------------===//
// The order of blocks
//===----------------------------------------------------------------------===//

// Topological, with each strongly connected part contiguous: its header first,
// its latch last, and the same again inside it without the edges to the header.
void FunctionCompiler::orderRegion(ArrayRef<const BasicBlock *> region, const BasicBlock *entry,
                                   const BasicBlock *cut) {
  struct State {
    unsigned index = 0, low = 0;
    bool onStack = false;
  };
  SmallPtrSet<const BasicBlock *, 16> inside(region.begin(), region.end());
  DenseMap<const BasicBlock *, State> states;
  std::vector<std::vector<const BasicBlock *>> components;
  std::vector<const BasicBlock *> stack;
  unsigned next = 0;
  struct Visit {
    const BasicBlock *block;
    unsigned successor;
  };
  auto search = [&](const BasicBlock *root) {
    std::vector<Visit> path;
    auto open = [&](const BasicBlock *block) {
      State &state = states[block];
      state.index = state.low = ++next;
      state.onStack = true;
      stack.push_back(block);
      path.push_back({block, 0});
    };
    open(root);
    while (!path.empty()) {
      const BasicBlock *block = path.back().block;
      const Instruction *end = block->getTerminator();
      if (path.back().successor < end->getNumSuccessors()) {
        const BasicBlock *to = end->getSuccessor(path.back().successor++);
        if (to == cut || !inside.contains(to))
          continue;
        if (!states[to].index)
          open(to);
        else if (states[to].onStack)
          states[block].low = std::min(states[block].low, states[to].index);
        continue;
      }
      path.pop_back();
      unsigned low = states[block].low;
      if (!path.empty()) {
        State &parent = states[path.back().block];
        parent.low = std::min(parent.low, low);
      }
      if (low != states[block].index)
        continue;
      components.emplace_back();
      const BasicBlock *member;
      do {
        member = stack.back();
        stack.pop_back();
        states[member].onStack = false;
        components.back().push_back(member);
      } while (member != block);
    }
  };
  search(entry);
  for (const BasicBlock *block : region)
    if (!states[block].index)
      search(block);

  for (auto &component : llvm::reverse(components)) {
    const BasicBlock *header = component.back(); // where the search entered it
    bool loops = component.size() > 1 || (header != cut && is_contained(successors(header), header));
    if (!loops) {
      position[header] = order.size();
      order.push_back({header, nullptr});
      continue;
    }
    if (component.size() == 1) {
      position[header] = order.size();
      order.push_back({header, nullptr});
    } else {
      orderRegion(component, header, header);
    }
    order.push_back({nullptr, header});
  }
}

void FunctionCompiler::orderBlocks() {
  ReversePostOrderTraversal<const Function *> reachable(&function);
  std::vector<const BasicBlock *> blocks(reachable.begin(), reachable.end());
  orderRegion(blocks, blocks.front(), nullptr);
}

uint32_t FunctionCompiler::edgeTo(const BasicBlock *from, const BasicBlock *to) {
  uint32_t number = code.edges.size();
  code.edges.push_back({0, 0, 0});
  patches.push_back({number, from, to});
  return number;
}

void FunctionCompiler::definePhis() {
  for (const Item &item : order) {
    if (!item.block)
      continue;
    for (const PHINode &phi : item.block->phis()) {
      Refs words;
      for (unsigned i = 0, count = wordsOf(phi.getType()); i < count; ++i)
        words.push_back(temp());
      values[&phi] = words;
    }
  }
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

Error FunctionCompiler::compileParameters() {
  for (const Argument &argument : function.args()) {
    SmallVector<Leaf> leaves;
    if (Error error = parent.leaves(argument.getType(), leaves))
      return error;
    Param param;
    param.word = code.words;
    param.bytes = layout.getTypeStoreSize(argument.getType()).getFixedValue();
    Refs words;
    for (const Leaf &leaf : leaves)
      for (unsigned i = 0; i < leaf.words; ++i) {
        words.push_back(temp());
        param.pieces.push_back({leaf.offset + 8 * i, uint8_t(std::min(64u, leaf.bits - 64 * i))});
      }
    if (argument.getType()->isPointerTy()) {
      param.pointer = true;
      param.space = argument.getType()->getPointerAddressSpace();
      if (Type *type =
              argument.getParamByValType() ? argument.getParamByValType() : argument.getParamByRefType())
        param.byValBytes = layout.getTypeAllocSize(type).getFixedValue();
    }
    code.params.push_back(std::move(param));
    values[&argument] = std::move(words);
  }
  return Error::success();
}

void FunctionCompiler::readBlockAttributes() {
  auto numbers = [&](StringRef attribute, MutableArrayRef<uint32_t *> into) {
    SmallVector<StringRef> parts;
    function.getFnAttribute(attribute).getValueAsString().split(parts, ',', -1, false);
    for (auto [part, number] : zip(parts, into))
      if (part.trim().getAsInteger(10, *number))
        *number = 0;
  };
  uint32_t *block[] = {&code.requiredBlock[0], &code.requiredBlock[1], &code.requiredBlock[2]};
  uint32_t *threads[] = {&code.leastThreads, &code.mostThreads};
  if (chip.nvptx)
    numbers("nvvm.reqntid", block);
  else
    numbers("amdgpu-flat-work-group-size", threads);
}

Error FunctionCompiler::checkOperands(const Instruction &instruction) {
  SmallVector<Leaf> leaves;
  if (Error error = parent.leaves(instruction.getType(), leaves))
    return unsupported(instruction, toString(std::move(error)));
  auto *call = dyn_cast<CallBase>(&instruction);
  for (const Use &use : instruction.operands()) {
    const Value *operand = use;
    if (isa<BasicBlock, MetadataAsValue>(operand) || (call && call->isCallee(&use)))
      continue;
    auto *constant = dyn_cast<Constant>(operand);
    if (!constant || values.contains(operand))
      continue;
    auto words = parent.constant(*constant);
    if (!words)
      return unsupported(instruction, toString(words.takeError()));
    values[operand] = std::move(*words);
  }
  return Error::success();
}

Error FunctionCompiler::run() {
  orderBlocks();
  if (Error error = compileParameters())
    return createStringError("function '" + code.name + "': " + toString(std::move(error)));
  for (const Item &item : order)
    if (item.block)
      for (const Instruction &instruction : *item.block)
        if (Error error = checkOperands(instruction))
          return error;
  readBlockAttributes();
  definePhis();
  for (const Item &item : order) {
    if (item.latchOf) {
      latchStart[item.latchOf] = code.ops.size();
      currentText = parent.text(*item.latchOf->getTerminator());
      emit(turnLoop, 0).imm = blockStart[item.latchOf];
      continue;
    }
    blockStart[item.block] = code.ops.size();
    for (const Instruction &instruction : *item.block) {
      if (isa<PHINode>(instruction))
        continue;
      currentText = parent.text(instruction);
      Error error = instruction.isTerminator()   ? compileTerminator(instruction)
                    : isa<CallBase>(instruction) ? compileCall(cast<CallBase>(instruction))
                    : instruction.mayReadOrWriteMemory() ||
                            isa<GetElementPtrInst, AllocaInst, AddrSpaceCastInst>(instruction)
                        ? compileMemory(instruction)
                        : compileValue(instruction);
      if (error)
        return error;
    }
  }
  for (const Patch &patch : patches) {
    Edge &edge = code.edges[patch.edge];
    // An edge that closes a loop goes through the loop's latch.
    bool closes = position[patch.to] <= position[patch.from];
    auto latch = latchStart.find(patch.to);
    edge.pc = closes && latch != latchStart.end() ? latch->second : blockStart[patch.to];
    edge.copies = code.copies.size();
    std::vector<Copy> copies;
    SmallDenseMap<Ref, bool> targets;
    for (const PHINode &phi : patch.to->phis()) {
      ArrayRef<Ref> to = refs(&phi), from = refs(phi.getIncomingValueForBlock(patch.from));
      for (auto [target, source] : zip(to, from))
        if (target != source) {
          copies.push_back({target, source});
          targets[target] = true;
        }
    }
    // All copies happen at once: sources that are targets too move first.
    for (Copy &copy : copies)
      if (targets.contains(copy.src)) {
        Ref saved = temp();
        code.copies.push_back({saved, copy.src});
        copy.src = saved;
      }
    code.copies.insert(code.copies.end(), copies.begin(), copies.end());
    edge.copyCount = code.copies.size() - edge.copies;
  }
  assignWords();
  return Error::success();
}

Error FunctionCompiler::compileTerminator(const Instruction &instruction) {
  const BasicBlock *block = instruction.getParent();
  if (auto *br = dyn_cast<BranchInst>(&instruction)) {
    uint32_t first = edgeTo(block, br->getSuccessor(0));
    if (br->isConditional()) {
      edgeTo(block, br->getSuccessor(1));
      emit(branch, 0, ref(br->getCondition())).imm = first;
    } else {
      emit(jump, 0).imm = first;
    }
    return Error::success();
  }
  if (auto *sw = dyn_cast<SwitchInst>(&instruction)) {
    if (scalarBits(sw->getCondition()->getType()) > 64)
      return unsupported(instruction, "the value is wider than 64 bits");
    if (sw->getNumCases() > mostArgs)
      return unsupported(instruction, "more than " + Twine(mostArgs) + " cases are not supported");
    uint32_t first = edgeTo(block, sw->getDefaultDest());
    Refs cases;
    for (const auto &branch : sw->cases()) {
      edgeTo(block, branch.getCaseSuccessor());
      cases.push_back(word(branch.getCaseValue()->getZExtValue()));
    }
    Op &op = emit(switchOn, 0, ref(sw->getCondition()));
    op.imm = first;
    setArgs(op, cases);
    return Error::success();
  }
  if (auto *end = dyn_cast<ReturnInst>(&instruction)) {
    Op &op = emit(ret, 0);
    if (const Value *value = end->getReturnValue())
      setArgs(op, refs(value));
    return Error::success();
  }
  if (isa<UnreachableInst>(instruction)) {
    emit(unreachable, 0);
    return Error::success();
  }
  return unsupported(instruction, "the terminator is not supported");
}

Error FunctionCompiler::compileCall(const CallBase &callBase) {
  if (auto *assembly = dyn_cast<InlineAsm>(callBase.getCalledOperand())) {
    // An empty text that ties its result to its operand only hides the value.
    if (assembly->getAsmString().empty() && callBase.arg_size() == 1 &&
        callBase.getType() == callBase.getArgOperand(0)->getType() &&
        StringRef(assembly->getConstraintString()).starts_with("=") &&
        StringRef(assembly->getConstraintString()).contains(",0")) {
      ArrayRef<Ref> words = refs(callBase.getArgOperand(0));
      alias(callBase, Refs(words.begin(), words.end()));
      return Error::success();
    }
    if (assembly->getAsmString().empty() && callBase.getType()->isVoidTy() && callBase.arg_empty())
      return Error::success();
    return unsupported(callBase, "inline assembly other than an empty fence is not supported");
  }
  const Function *callee = callBase.getCalledFunction();
  if (!callee)
    return unsupported(callBase, "indirect calls are not supported");
  if (callee->isIntrinsic()) {
    auto done = compileGeneric(callBase);
    if (done && !*done)
      done = chip.nvptx ? compileNVPTX(callBase) : compileAMDGCN(callBase);
    if (!done)
      return done.takeError();
    return *done ? Error::success()
                 : unsupported(callBase,
                               "intrinsic '" + callee->getName() + "' is not supported on " + chip.name);
  }
  if (chip.nvptx && compileSystemCall(callBase))
    return Error::success();
  auto found = parent.functionNumbers.find(callee);
  if (found == parent.functionNumbers.end())
    return unsupported(callBase, "function '" + callee->getName() + "' is not defined in the module");
  if (callee->isVarArg())
    return unsupported(callBase, "variable arguments are not supported");
  Refs args;
  for (unsigned i = 0; i < callBase.arg_size(); ++i) {
    if (callBase.isByValArgument(i))
      return unsupported(callBase, "arguments by value in memory are not supported");
    append_range(args, refs(callBase.getArgOperand(i)));
  }
  if (args.size() > mostArgs)
    return unsupported(callBase, "more than " + Twine(mostArgs) + " words of arguments are not supported");
  Ref result = callBase.getType()->isVoidTy() ? 0 : define(callBase);
  Op &op = emit(call, result);
  op.imm = found->second;
  setArgs(op, args);
  return Error::success();
}

} // namespace qd::sim

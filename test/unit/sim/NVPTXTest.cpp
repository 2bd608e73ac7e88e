// Warp collectives against the PTX ISA's pseudo-code.
#include "Harness.h"

using namespace qd::test;

namespace {

const char *sm = "sm_80";

std::string shfl(const char *mode, unsigned b, unsigned c) {
  return ("%r = call i32 @llvm.nvvm.shfl.sync." + llvm::Twine(mode) + ".i32(i32 -1, i32 %v, i32 " +
          llvm::Twine(b) + ", i32 " + llvm::Twine(c) + ")")
      .str();
}

TEST(Shuffle, WholeWarp) {
  EXPECT_EQ(sources(onChip(sm), 32, shfl("idx", 5, 31)), map(32, [](int) { return 5; }));
  EXPECT_EQ(sources(onChip(sm), 32, shfl("up", 3, 0)), map(32, [](int l) { return l < 3 ? l : l - 3; }));
  EXPECT_EQ(sources(onChip(sm), 32, shfl("down", 3, 31)),
            map(32, [](int l) { return l + 3 > 31 ? l : l + 3; }));
  EXPECT_EQ(sources(onChip(sm), 32, shfl("bfly", 16, 31)), map(32, [](int l) { return l ^ 16; }));
}

TEST(Shuffle, Segments) {
  // Width 8: segment mask 0x18, in bits 8 to 12 of c.
  EXPECT_EQ(sources(onChip(sm), 32, shfl("idx", 2, 0x181f)), map(32, [](int l) { return (l & ~7) | 2; }));
  EXPECT_EQ(sources(onChip(sm), 32, shfl("up", 1, 0x1800)), map(32, [](int l) { return l & 7 ? l - 1 : l; }));
  EXPECT_EQ(sources(onChip(sm), 32, shfl("down", 2, 0x181f)),
            map(32, [](int l) { return (l & 7) < 6 ? l + 2 : l; }));
  EXPECT_EQ(sources(onChip(sm), 32, shfl("bfly", 4, 0x181f)), map(32, [](int l) { return l ^ 4; }));
  // A butterfly may reach back into an earlier segment, not forward.
  EXPECT_EQ(sources(onChip(sm), 32, shfl("bfly", 8, 0x181f)),
            map(32, [](int l) { return l & 8 ? l ^ 8 : l; }));
}

TEST(Shuffle, ClampBelowTheWarp) {
  EXPECT_EQ(sources(onChip(sm), 32, shfl("down", 1, 15)),
            map(32, [](int l) { return l + 1 <= 15 ? l + 1 : l; }));
  EXPECT_EQ(sources(onChip(sm), 32, shfl("up", 1, 4)), map(32, [](int l) { return l - 1 >= 4 ? l - 1 : l; }));
}

TEST(Shuffle, PredicateTellsRange) {
  std::string text = "%s = call { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32 -1, i32 %v, i32 4, i32 31)\n"
                     "%p = extractvalue { i32, i1 } %s, 1\n%z = zext i1 %p to i32\n%r = add i32 %z, 1000";
  EXPECT_EQ(sources(onChip(sm), 32, text), map(32, [](int l) { return l + 4 <= 31; }));
}

TEST(Shuffle, FloatMovesBits) {
  std::string text = "%f = bitcast i32 %v to float\n"
                     "%s = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %f, i32 1, i32 31)\n"
                     "%r = bitcast float %s to i32";
  EXPECT_EQ(sources(onChip(sm), 32, text), map(32, [](int l) { return l ^ 1; }));
}

TEST(Shuffle, LaneOutsideItsMaskIsAnError) {
  std::vector<uint32_t> out(32), in = iota(32);
  std::string text =
      laneBody(sm, "%r = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 65535, i32 %v, i32 0, i32 31)");
  std::string error = run(onChip(sm), text, {}, out, in);
  EXPECT_NE(
      error.find(
          "lane 16 is not in its own member mask 0xffff in kernel 'k', block (0, 0, 0), thread (16, 0, 0)"),
      std::string::npos)
      << error;
  EXPECT_NE(error.find("@llvm.nvvm.shfl.sync.idx.i32"), std::string::npos) << error;
}

TEST(Shuffle, NamedLaneThatNeverArrivesIsAnError) {
  std::vector<uint32_t> out(32), in = iota(32);
  std::string text = R"(
    %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
    %low = icmp ult i32 %tid, 16
    br i1 %low, label %a, label %b
  a:
    %x = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %tid, i32 0, i32 31)
    br label %end
  b:
    %y = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %tid, i32 1, i32 31)
    br label %end
  end:
    ret void)";
  std::string error = run(onChip(sm), text, {}, out, in);
  EXPECT_NE(error.find("lanes of one wave wait for each other at different operations"), std::string::npos)
      << error;
}

TEST(Shuffle, ExitedLanesAreNotAwaitedButDeliverNothing) {
  std::vector<uint32_t> out(32), in = iota(32, 1000);
  const char *text = R"(
    %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
    %t64 = zext i32 %tid to i64
    %pout = getelementptr i32, ptr addrspace(1) %out, i64 %t64
    %high = icmp uge i32 %tid, 16
    br i1 %high, label %end, label %a
  a:
    %x = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %tid, i32 DISTANCE, i32 31)
    store i32 %x, ptr addrspace(1) %pout
    br label %end
  end:
    ret void)";
  auto with = [&](const char *distance) {
    std::string body = text;
    body.replace(body.find("DISTANCE"), 8, distance);
    // The lanes that skip leave the kernel at once: no block follows for them.
    size_t skip = body.find("label %end, label %a");
    body.replace(skip, 10, "label %gone");
    return run(onChip(sm), body + "\n  gone:\n    ret void", {}, out, in);
  };
  EXPECT_EQ(with("8"), "");
  EXPECT_EQ(out[3], 11u);
  EXPECT_NE(with("16").find("poison stored"), std::string::npos);
}

TEST(Vote, AllForms) {
  auto form = [](const char *kind, const char *predicate) {
    return std::string("%p = icmp ") + predicate + "\n%b = call i1 @llvm.nvvm.vote." + kind +
           ".sync(i32 -1, i1 %p)\n%z = zext i1 %b to i32\n%r = add i32 %z, 1000";
  };
  auto all = [](int value) { return map(32, [=](int) { return value; }); };
  EXPECT_EQ(sources(onChip(sm), 32, form("all", "uge i32 %tid, 0")), all(1));
  EXPECT_EQ(sources(onChip(sm), 32, form("all", "uge i32 %tid, 1")), all(0));
  EXPECT_EQ(sources(onChip(sm), 32, form("any", "eq i32 %tid, 31")), all(1));
  EXPECT_EQ(sources(onChip(sm), 32, form("any", "eq i32 %tid, 32")), all(0));
  EXPECT_EQ(sources(onChip(sm), 32, form("uni", "eq i32 %tid, 32")), all(1));
  EXPECT_EQ(sources(onChip(sm), 32, form("uni", "eq i32 %tid, 3")), all(0));
  std::vector<uint32_t> out(20), in = iota(20);
  std::string text = laneBody(sm, "%o = and i32 %tid, 1\n%p = trunc i32 %o to i1\n"
                                  "%r = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %p)");
  // A last warp of 20 lanes.
  EXPECT_EQ(run(onChip(sm), text, {{1, 1, 1}, {20, 1, 1}}, out, in), "");
  EXPECT_EQ(out, std::vector<uint32_t>(20, 0xaaaaa));
}

TEST(Match, AnyAndAll) {
  std::vector<uint32_t> out(32), in(32);
  for (unsigned l = 0; l < 32; ++l)
    in[l] = l % 3;
  EXPECT_EQ(run(onChip(sm), laneBody(sm, "%r = call i32 @llvm.nvvm.match.any.sync.i32(i32 -1, i32 %v)"), {},
                out, in),
            "");
  EXPECT_EQ(out[4], 0x92492492u);
  std::string all = "%s = call {i32, i1} @llvm.nvvm.match.all.sync.i32p(i32 -1, i32 %v)\n%m = extractvalue "
                    "{i32, i1} %s, 0\n"
                    "%p = extractvalue {i32, i1} %s, 1\n%z = zext i1 %p to i32\n%r = add i32 %m, %z";
  EXPECT_EQ(run(onChip(sm), laneBody(sm, all), {}, out, in), "");
  EXPECT_EQ(out[4], 0u);
  EXPECT_EQ(run(onChip(sm), laneBody(sm, all), {}, out, std::vector<uint32_t>(32, 9)), "");
  EXPECT_EQ(out[4], 0u); // all ones plus 1
}

TEST(Redux, Integers) {
  std::vector<uint32_t> in = iota(32, 5), out(32);
  auto apply = [&](const char *kind) {
    std::string text =
        laneBody(sm, (llvm::Twine("%r = call i32 @llvm.nvvm.redux.sync.") + kind + "(i32 %v, i32 -1)").str());
    EXPECT_EQ(run(onChip(sm), text, {}, out, in), "");
    EXPECT_EQ(out, std::vector<uint32_t>(32, out[0]));
    return out[0];
  };
  EXPECT_EQ(apply("add"), 656u);
  EXPECT_EQ(apply("umin"), 5u);
  EXPECT_EQ(apply("umax"), 36u);
  EXPECT_EQ(apply("or"), 63u);
  EXPECT_EQ(apply("and"), 0u);
  in[7] = 0x80000000;
  EXPECT_EQ(apply("min"), 0x80000000u);
  EXPECT_EQ(apply("max"), 36u);
}

TEST(Chips, MissingInstructionsAreFoundAtLoad) {
  std::string redux = laneBody(sm, "%r = call i32 @llvm.nvvm.redux.sync.add(i32 %v, i32 -1)");
  EXPECT_NE(loadError(onChip("sm_75"), redux).find("redux.sync does not exist on sm_75"), std::string::npos);
  std::string copy = laneBody(sm, "call void @llvm.nvvm.cp.async.commit.group()\n%r = add i32 %v, 0");
  EXPECT_NE(loadError(onChip("sm_75"), copy).find("cp.async does not exist on sm_75"), std::string::npos);
  EXPECT_EQ(loadError(onChip("sm_80"), copy), "");
  std::string elect =
      laneBody(sm, "%s = call {i32, i1} @llvm.nvvm.elect.sync(i32 -1)\n%r = extractvalue {i32, i1} %s, 0");
  EXPECT_NE(loadError(onChip("sm_80"), elect).find("elect.sync does not exist on sm_80"), std::string::npos);
  EXPECT_EQ(loadError(onChip("sm_90"), elect), "");
  EXPECT_NE(loadError(onChip("sm_99"), elect).find("unknown chip 'sm_99'"), std::string::npos);
  EXPECT_NE(loadError(onChip("sm_80", 64), redux).find("waves of 64 lanes do not exist on sm_80"),
            std::string::npos);
}

TEST(Registers, LaneMasksAndIndices) {
  auto reg = [](const char *name) {
    return std::string("%m = call i32 @llvm.nvvm.read.ptx.sreg.") + name + "()\n%r = add i32 %m, 1000";
  };
  EXPECT_EQ(sources(onChip(sm), 32, reg("lanemask.lt")), map(32, [](int l) { return int((1u << l) - 1); }));
  EXPECT_EQ(sources(onChip(sm), 32, reg("lanemask.eq")), map(32, [](int l) { return int(1u << l); }));
  EXPECT_EQ(sources(onChip(sm), 64, reg("laneid")), map(64, [](int l) { return l & 31; }));
  EXPECT_EQ(sources(onChip(sm), 64, reg("warpid")), map(64, [](int l) { return l >> 5; }));
  EXPECT_EQ(sources(onChip(sm), 48, reg("ntid.x")), map(48, [](int) { return 48; }));
}

//===----------------------------------------------------------------------===//
// Lanes that are not there: whoever uses what one delivers is told; past a segment's end a lane has its own value.
//===----------------------------------------------------------------------===//

/// Runs `text` on the lanes of `active` in a block of `threads`; only `user` stores what it got.
std::string runOnSome(std::string text, uint32_t active, unsigned threads, unsigned user, uint32_t &result,
                      bool mustArrive = false) {
  for (size_t at; (at = text.find("MASK")) != std::string::npos;)
    text.replace(at, 4, std::to_string(int32_t(active)));
  std::string body = "%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%t64 = zext i32 %tid to i64\n"
                     "%pin = getelementptr i32, ptr addrspace(1) %in, i64 %t64\n"
                     "%v = load i32, ptr addrspace(1) %pin\n%bits = lshr i32 " +
                     std::to_string(int32_t(active)) +
                     ", %tid\n%here = trunc i32 %bits to i1\nbr i1 %here, label %do, label %end\ndo:\n" + text +
                     "\n%uses = icmp eq i32 %tid, " + std::to_string(user) +
                     "\nbr i1 %uses, label %use, label %end\nuse:\nstore i32 %r, ptr addrspace(1) %out\n"
                     "br label %end\nend:\nret void";
  std::vector<uint32_t> out(1), in = iota(threads, 1000);
  qd::SimOptions options = onChip(sm);
  options.membersMustArrive = mustArrive;
  std::string error = run(options, body, {{1, 1, 1}, {threads, 1, 1}}, out, in);
  result = out[0];
  return error;
}

TEST(AbsentLanes, ShufflesByLane) {
  struct Move {
    const char *mode;
    unsigned b, c;
    std::function<int(int)> source;
  };
  const Move moves[] = {
      {"idx", 22, 31, [](int) { return 22; }},
      {"idx", 6, 0x181f, [](int l) { return (l & ~7) | 6; }},
      {"up", 3, 0, [](int l) { return l >= 3 ? l - 3 : l; }},
      {"up", 3, 0x1800, [](int l) { return (l & 7) >= 3 ? l - 3 : l; }},
      {"down", 1, 31, [](int l) { return l < 31 ? l + 1 : l; }},
      {"down", 3, 0x181f, [](int l) { return (l & 7) < 5 ? l + 3 : l; }},
      {"bfly", 16, 31, [](int l) { return l ^ 16; }},
      {"bfly", 3, 0x1c1f, [](int l) { return l ^ 3; }},
  };
  struct Case {
    uint32_t active;
    unsigned threads;
  };
  for (const Move &move : moves)
    for (Case lanes : {Case{0xffffffff, 5}, Case{0xffffffff, 20}, Case{0x2ca571d9, 32}})
      for (unsigned lane = 0; lane < lanes.threads; ++lane) {
        if (!(lanes.active >> lane & 1))
          continue;
        std::string text = shfl(move.mode, move.b, move.c);
        text.replace(text.find("i32 -1"), 6, "i32 MASK");
        uint32_t result = 0;
        std::string error = runOnSome(text, lanes.active, lanes.threads, lane, result);
        unsigned source = unsigned(move.source(int(lane)));
        std::string what = text + " on lane " + std::to_string(lane);
        if (source < lanes.threads && (lanes.active >> source & 1)) {
          EXPECT_EQ(error, "") << what;
          EXPECT_EQ(result, 1000 + source) << what;
        } else {
          EXPECT_NE(error.find("poison stored in kernel 'k', block (0, 0, 0), thread (" + std::to_string(lane)),
                    std::string::npos)
              << what << ": " << error;
        }
      }
}

/// Lanes 24 to 31 do not exist, and lanes 0 to 7 are elsewhere.
TEST(AbsentLanes, ContributeNothing) {
  struct Case {
    const char *text;
    uint32_t result; ///< on lane 9
  };
  const Case cases[] = {
      {"%p = icmp uge i32 %tid, 8\n%b = call i1 @llvm.nvvm.vote.all.sync(i32 MASK, i1 %p)\n%r = zext i1 %b to i32", 1},
      {"%p = icmp ult i32 %tid, 8\n%b = call i1 @llvm.nvvm.vote.any.sync(i32 MASK, i1 %p)\n%r = zext i1 %b to i32", 0},
      {"%p = icmp uge i32 %tid, 8\n%b = call i1 @llvm.nvvm.vote.uni.sync(i32 MASK, i1 %p)\n%r = zext i1 %b to i32", 1},
      {"%r = call i32 @llvm.nvvm.vote.ballot.sync(i32 MASK, i1 true)", 0x00ffff00},
      {"%q = and i32 %tid, 7\n%r = call i32 @llvm.nvvm.match.any.sync.i32(i32 MASK, i32 %q)", 0x00020200},
      {"%s = call { i32, i1 } @llvm.nvvm.match.all.sync.i32p(i32 MASK, i32 5)\n"
       "%r = extractvalue { i32, i1 } %s, 0",
       0x00ffff00},
      {"%r = call i32 @llvm.nvvm.redux.sync.add(i32 %tid, i32 MASK)", 248},
      {"%r = call i32 @llvm.nvvm.redux.sync.umin(i32 %tid, i32 MASK)", 8},
  };
  for (const Case &c : cases) {
    uint32_t result = 77;
    EXPECT_EQ(runOnSome(c.text, 0x00ffff00, 24, 9, result, /*mustArrive=*/true), "") << c.text;
    EXPECT_EQ(result, c.result) << c.text;
    // Naming one that does not exist is the program's fault; the hardware goes on.
    std::string error = runOnSome(c.text, 0x01ffff00, 24, 9, result, /*mustArrive=*/true);
    EXPECT_NE(error.find("lane 24 of member mask 0x1ffff00 does not exist"), std::string::npos) << error;
    EXPECT_EQ(runOnSome(c.text, 0x01ffff00, 24, 9, result), "") << c.text;
  }
}

} // namespace

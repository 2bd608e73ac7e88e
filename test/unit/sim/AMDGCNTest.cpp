// Lane moves of AMDGCN against the ISA manuals.
#include "Harness.h"

using namespace qd::test;

namespace {

std::string dpp(unsigned control, unsigned rows = 15, unsigned banks = 15, bool bound = true,
                const char *old = "1000") {
  return ("%r = call i32 @llvm.amdgcn.update.dpp.i32(i32 " + llvm::Twine(old) + ", i32 %v, i32 " +
          llvm::Twine(control) + ", i32 " + llvm::Twine(rows) + ", i32 " + llvm::Twine(banks) + ", i1 " +
          (bound ? "true" : "false") + ")")
      .str();
}

constexpr int zero = -1000; // what sources() shows for the value 0

TEST(DPP, QuadPermAndMirrors) {
  auto gfx9 = onChip("gfx942");
  EXPECT_EQ(sources(gfx9, 64, dpp(0xb1)), map(64, [](int l) { return l ^ 1; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x4e)), map(64, [](int l) { return l ^ 2; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x1b)), map(64, [](int l) { return l ^ 3; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x00)), map(64, [](int l) { return l & ~3; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x140)), map(64, [](int l) { return l ^ 15; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x141)), map(64, [](int l) { return l ^ 7; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x128)), map(64, [](int l) { return l ^ 8; }));
}

TEST(DPP, RowShifts) {
  auto gfx9 = onChip("gfx942");
  EXPECT_EQ(sources(gfx9, 64, dpp(0x101)), map(64, [](int l) { return (l & 15) < 15 ? l + 1 : zero; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x113)), map(64, [](int l) { return (l & 15) >= 3 ? l - 3 : zero; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x123)), map(64, [](int l) { return (l & ~15) | ((l - 3) & 15); }));
  // Without bound_ctrl the old value stays.
  EXPECT_EQ(sources(gfx9, 64, dpp(0x111, 15, 15, false, "993")),
            map(64, [](int l) { return l & 15 ? l - 1 : -7; }));
}

TEST(DPP, WaveShiftsAndBroadcasts) {
  auto gfx9 = onChip("gfx906");
  EXPECT_EQ(sources(gfx9, 64, dpp(0x130)), map(64, [](int l) { return l < 63 ? l + 1 : zero; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x138)), map(64, [](int l) { return l ? l - 1 : zero; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x134)), map(64, [](int l) { return (l + 1) & 63; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x13c)), map(64, [](int l) { return (l + 63) & 63; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x142, 0xa, 15, false)),
            map(64, [](int l) { return l >> 4 & 1 ? (l & ~15) - 1 : 0; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0x143, 0xc, 15, false)), map(64, [](int l) { return l >= 32 ? 31 : 0; }));
}

TEST(DPP, Masks) {
  auto gfx9 = onChip("gfx942");
  EXPECT_EQ(sources(gfx9, 64, dpp(0xb1, 0x5)), map(64, [](int l) { return l >> 4 & 1 ? 0 : l ^ 1; }));
  EXPECT_EQ(sources(gfx9, 64, dpp(0xb1, 15, 0x2)),
            map(64, [](int l) { return (l >> 2 & 3) == 1 ? l ^ 1 : 0; }));
}

TEST(DPP, RowShareAndXmask) {
  EXPECT_EQ(sources(onChip("gfx90a"), 64, dpp(0x153)), map(64, [](int l) { return (l & ~15) | 3; }));
  EXPECT_EQ(sources(onChip("gfx1100"), 32, dpp(0x153)), map(32, [](int l) { return (l & ~15) | 3; }));
  EXPECT_EQ(sources(onChip("gfx1100", 64), 64, dpp(0x165)), map(64, [](int l) { return l ^ 5; }));
}

TEST(DPP, ControlsThatAChipLacks) {
  auto error = [](const char *chip, unsigned control) {
    return loadError(onChip(chip), laneBody(chip, dpp(control)));
  };
  EXPECT_NE(error("gfx1100", 0x138).find("DPP control 0x138 (a shift of the wave) does not exist on gfx1100"),
            std::string::npos);
  EXPECT_NE(error("gfx1030", 0x142).find("(row_bcast) does not exist"), std::string::npos);
  EXPECT_NE(error("gfx906", 0x150).find("(row_share) does not exist"), std::string::npos);
  EXPECT_NE(error("gfx942", 0x161).find("(row_xmask) does not exist"), std::string::npos);
  EXPECT_NE(error("gfx942", 0x100).find("is not encoded"), std::string::npos);
}

TEST(DPP, InactiveSourceCountsAsOutOfRange) {
  // 20 lanes of 64: lane 19 reads lane 20, which does not exist.
  auto from = sources(onChip("gfx942"), 20, dpp(0x130));
  EXPECT_EQ(from, map(20, [](int l) { return l < 19 ? l + 1 : zero; }));
  from = sources(onChip("gfx942"), 20, dpp(0x130, 15, 15, false, "1007"));
  EXPECT_EQ(from, map(20, [](int l) { return l < 19 ? l + 1 : 7; }));
}

TEST(DPP, SixtyFourBits) {
  std::string text =
      "%w = zext i32 %v to i64\n%h = shl i64 %w, 32\n"
      "%m = call i64 @llvm.amdgcn.update.dpp.i64(i64 0, i64 %h, i32 177, i32 15, i32 15, i1 true)\n"
      "%s = lshr i64 %m, 32\n%r = trunc i64 %s to i32";
  EXPECT_EQ(sources(onChip("gfx942"), 64, text), map(64, [](int l) { return l ^ 1; }));
}

TEST(Dpp8, EightLanes) {
  // Lane i of eight takes 7 - i.
  unsigned select = 0;
  for (unsigned i = 0; i < 8; ++i)
    select |= (7 - i) << (3 * i);
  std::string text =
      ("%r = call i32 @llvm.amdgcn.mov.dpp8.i32(i32 %v, i32 " + llvm::Twine(select) + ")").str();
  EXPECT_EQ(sources(onChip("gfx1100"), 32, text), map(32, [](int l) { return l ^ 7; }));
  EXPECT_NE(loadError(onChip("gfx942"), laneBody("gfx942", text)).find("mov.dpp8 does not exist on gfx942"),
            std::string::npos);
}

std::string permlane(const char *name, unsigned low, unsigned high, bool bound = true) {
  return ("%r = call i32 @llvm.amdgcn." + llvm::Twine(name) + ".i32(i32 1000, i32 %v, i32 " +
          llvm::Twine(int(low)) + ", i32 " + llvm::Twine(int(high)) + ", i1 false, i1 " +
          (bound ? "true" : "false") + ")")
      .str();
}

TEST(Permlane, SixteenAndAcross) {
  EXPECT_EQ(sources(onChip("gfx1030"), 32, permlane("permlane16", 0x76543210, 0xfedcba98)),
            map(32, [](int l) { return l; }));
  EXPECT_EQ(sources(onChip("gfx1030"), 32, permlane("permlane16", 0x01234567, 0x89abcdef)),
            map(32, [](int l) { return l ^ 7; }));
  EXPECT_EQ(sources(onChip("gfx1030"), 32, permlane("permlanex16", 0x76543210, 0xfedcba98)),
            map(32, [](int l) { return l ^ 16; }));
  EXPECT_EQ(sources(onChip("gfx1100", 64), 64, permlane("permlanex16", 0x89abcdef, 0x01234567)),
            map(64, [](int l) { return l ^ 31; }));
  EXPECT_NE(loadError(onChip("gfx90a"), laneBody("gfx90a", permlane("permlane16", 0, 0)))
                .find("permlane16 does not exist on gfx90a"),
            std::string::npos);
}

TEST(Permlane, SixtyFour) {
  std::string text = "%r = call i32 @llvm.amdgcn.permlane64.i32(i32 %v)";
  EXPECT_EQ(sources(onChip("gfx1100", 64), 64, text), map(64, [](int l) { return l ^ 32; }));
  EXPECT_NE(loadError(onChip("gfx1030", 64), laneBody("gfx1030", text))
                .find("permlane64 does not exist on gfx1030"),
            std::string::npos);
}

TEST(Permlane, Swaps) {
  auto swap = [](int step, int result) {
    return ("%b = add i32 %v, 64\n%s = call {i32, i32} @llvm.amdgcn.permlane" + llvm::Twine(step) +
            ".swap(i32 %v, i32 %b, i1 false, i1 true)\n%r = extractvalue {i32, i32} %s, " +
            llvm::Twine(result))
        .str();
  };
  auto gfx = onChip("gfx950");
  // Odd rows of the first become even rows of the second, and back.
  EXPECT_EQ(sources(gfx, 64, swap(16, 0)), map(64, [](int l) { return l & 16 ? l - 16 + 64 : l; }));
  EXPECT_EQ(sources(gfx, 64, swap(16, 1)), map(64, [](int l) { return l & 16 ? l + 64 : l + 16; }));
  EXPECT_EQ(sources(gfx, 64, swap(32, 0)), map(64, [](int l) { return l & 32 ? l - 32 + 64 : l; }));
  EXPECT_EQ(sources(gfx, 64, swap(32, 1)), map(64, [](int l) { return l & 32 ? l + 64 : l + 32; }));
  EXPECT_NE(loadError(onChip("gfx942"), laneBody("gfx942", swap(16, 0))).find("permlane swap does not exist"),
            std::string::npos);
}

TEST(Permlane, VariableOnGfx12) {
  std::string text =
      "%sel = xor i32 %tid, 5\n"
      "%r = call i32 @llvm.amdgcn.permlane16.var(i32 poison, i32 %v, i32 %sel, i1 false, i1 true)";
  EXPECT_EQ(sources(onChip("gfx1200"), 32, text), map(32, [](int l) { return l ^ 5; }));
  EXPECT_NE(loadError(onChip("gfx1100"), laneBody("gfx1100", text)).find("permlane16.var does not exist"),
            std::string::npos);
}

const char *bpermute =
    "%t = xor i32 %tid, 33\n%a = shl i32 %t, 2\n%r = call i32 @llvm.amdgcn.ds.bpermute(i32 %a, i32 %v)";

TEST(Bpermute, Reach) {
  EXPECT_EQ(sources(onChip("gfx942"), 64, bpermute), map(64, [](int l) { return l ^ 33; }));
  EXPECT_EQ(sources(onChip("gfx1200", 64), 64, bpermute), map(64, [](int l) { return l ^ 33; }));
  // gfx10 and gfx11 stay in their half of the wave.
  EXPECT_EQ(sources(onChip("gfx1030", 64), 64, bpermute), map(64, [](int l) { return l ^ 1; }));
  EXPECT_EQ(sources(onChip("gfx1100", 64), 64, bpermute), map(64, [](int l) { return l ^ 1; }));
  EXPECT_EQ(sources(onChip("gfx1100", 32), 32, bpermute), map(32, [](int l) { return l ^ 1; }));
}

TEST(Bpermute, InactiveLaneIsReportedWhereItIsUsed) {
  std::vector<uint32_t> out(40), in = iota(40);
  std::string error = run(onChip("gfx942"), laneBody("gfx942", bpermute), {{1, 1, 1}, {40, 1, 1}}, out, in);
  EXPECT_NE(error.find("poison stored in kernel 'k', block (0, 0, 0), thread (8, 0, 0)"), std::string::npos)
      << error;
}

TEST(Permute, Pushes) {
  std::string text =
      "%t = add i32 %tid, 3\n%a = shl i32 %t, 2\n%r = call i32 @llvm.amdgcn.ds.permute(i32 %a, i32 %v)";
  EXPECT_EQ(sources(onChip("gfx942"), 64, text), map(64, [](int l) { return (l + 61) & 63; }));
}

TEST(Swizzle, Modes) {
  auto swizzle = [](unsigned offset) {
    return ("%r = call i32 @llvm.amdgcn.ds.swizzle(i32 %v, i32 " + llvm::Twine(offset) + ")").str();
  };
  auto gfx = onChip("gfx942");
  EXPECT_EQ(sources(gfx, 64, swizzle(0x401f)), map(64, [](int l) { return l ^ 16; }));
  EXPECT_EQ(sources(gfx, 64, swizzle(0x101f)), map(64, [](int l) { return l ^ 4; }));
  EXPECT_EQ(sources(gfx, 64, swizzle(0x10 | 5 << 5)), map(64, [](int l) { return (l & 48) | 5; }));
  EXPECT_EQ(sources(gfx, 64, swizzle(0x80b1)), map(64, [](int l) { return l ^ 1; }));
  EXPECT_EQ(sources(gfx, 64, swizzle(0xc000 | 1 << 5)),
            map(64, [](int l) { return (l & 32) | ((l + 1) & 31); }));
  EXPECT_EQ(sources(gfx, 64, swizzle(0xc400 | 1 << 5)),
            map(64, [](int l) { return (l & 32) | ((l - 1) & 31); }));
  // The manual's example: mask 1, rotated left by 1.
  EXPECT_EQ(sources(gfx, 64, swizzle(0xc001 | 1 << 5)),
            map(64, [](int l) { return (l & 32) | (l & 1) | ((l + 1) & 30); }));
  EXPECT_EQ(sources(gfx, 64, swizzle(0xe01f)), map(64, [](int l) { return l; }));
  auto fft = sources(gfx, 64, swizzle(0xe000));
  EXPECT_EQ(std::vector<int>(fft.begin(), fft.begin() + 8), (std::vector<int>{0, 16, 8, 24, 4, 20, 12, 28}));
  fft = sources(gfx, 64, swizzle(0xe010));
  EXPECT_EQ(std::vector<int>(fft.begin() + 14, fft.begin() + 20), (std::vector<int>{7, 15, 16, 24, 20, 28}));
}

TEST(Lanes, ReadAndWrite) {
  auto gfx = onChip("gfx1100", 64);
  EXPECT_EQ(sources(gfx, 64, "%r = call i32 @llvm.amdgcn.readlane.i32(i32 %v, i32 41)"),
            map(64, [](int) { return 41; }));
  EXPECT_EQ(sources(gfx, 64, "%r = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %v)"),
            map(64, [](int) { return 0; }));
  EXPECT_EQ(sources(gfx, 64, "%r = call i32 @llvm.amdgcn.writelane.i32(i32 1500, i32 7, i32 %v)"),
            map(64, [](int l) { return l == 7 ? 500 : l; }));
  std::vector<uint32_t> out(64), in = iota(64);
  std::string error =
      run(gfx, laneBody("gfx1100", "%r = call i32 @llvm.amdgcn.readlane.i32(i32 %v, i32 %tid)"),
          {{1, 1, 1}, {64, 1, 1}}, out, in);
  EXPECT_NE(error.find("the lane index differs between lanes of one wave"), std::string::npos) << error;
}

TEST(Ballot, AndItsInverse) {
  std::string text =
      "%o = and i32 %tid, 1\n%p = trunc i32 %o to i1\n%b = call i64 @llvm.amdgcn.ballot.i64(i1 %p)\n"
      "%h = lshr i64 %b, 32\n%r = trunc i64 %h to i32";
  std::vector<uint32_t> out(64), in = iota(64);
  EXPECT_EQ(run(onChip("gfx942"), laneBody("gfx942", text), {{1, 1, 1}, {64, 1, 1}}, out, in), "");
  EXPECT_EQ(out, std::vector<uint32_t>(64, 0xaaaaaaaa));
  std::string inverse = "%p = call i1 @llvm.amdgcn.inverse.ballot.i64(i64 -4294967296)\n%z = zext i1 %p to "
                        "i32\n%r = add i32 %z, 1000";
  EXPECT_EQ(sources(onChip("gfx1100", 64), 64, inverse), map(64, [](int l) { return l >= 32; }));
  std::string narrow = "%p = icmp eq i32 %tid, 0\n%r = call i32 @llvm.amdgcn.ballot.i32(i1 %p)";
  EXPECT_NE(
      loadError(onChip("gfx942"), laneBody("gfx942", narrow)).find("cannot be selected in a wave of 64"),
      std::string::npos);
  EXPECT_EQ(loadError(onChip("gfx1100"), laneBody("gfx1100", narrow)), "");
}

TEST(Mbcnt, CountsLanesBelow) {
  std::string text = "%lo = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 1000)\n%r = call i32 "
                     "@llvm.amdgcn.mbcnt.hi(i32 -1, i32 %lo)";
  EXPECT_EQ(sources(onChip("gfx942"), 64, text), map(64, [](int l) { return l; }));
}

TEST(Fence, EmptyAssemblyIsIdentity) {
  EXPECT_EQ(sources(onChip("gfx1100"), 32, "%r = call i32 asm \"\", \"=v,0\"(i32 %v)"),
            map(32, [](int l) { return l; }));
  EXPECT_NE(loadError(onChip("gfx1100"),
                      laneBody("gfx1100", "%r = call i32 asm \"v_mov_b32 $0, $1\", \"=v,v\"(i32 %v)"))
                .find("inline assembly other than an empty fence"),
            std::string::npos);
}

} // namespace

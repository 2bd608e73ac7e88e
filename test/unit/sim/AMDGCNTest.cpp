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

//===----------------------------------------------------------------------===//
// Lanes that are not there: whoever uses what one delivers is told, whatever the instruction puts there.
//===----------------------------------------------------------------------===//

/// Where an instruction has no source: the value is the instruction's own rule, and no fault.
constexpr int none = -1;

struct Move {
  const char *name, *chip;
  unsigned wave;
  std::string text;
  std::function<int(int)> source; ///< by the ISA manual
  int fill = none;                ///< the lane that sources() shows where there is none
};

std::vector<Move> getMoves() {
  auto var = [](const char *name) {
    return ("%sel = xor i32 %tid, 5\n%r = call i32 @llvm.amdgcn." + llvm::Twine(name) +
            ".var(i32 %v, i32 %v, i32 %sel, i1 false, i1 false)")
        .str();
  };
  auto swap = [](int step, int result) {
    return ("%s = call {i32, i32} @llvm.amdgcn.permlane" + llvm::Twine(step) +
            ".swap(i32 %v, i32 %v, i1 false, i1 false)\n%r = extractvalue {i32, i32} %s, " + llvm::Twine(result))
        .str();
  };
  auto dpp8 = "%r = call i32 @llvm.amdgcn.mov.dpp8.i32(i32 %v, i32 342391)"; // lane i of eight takes 7 - i
  auto xor16 = "%r = call i32 @llvm.amdgcn.ds.swizzle(i32 %v, i32 16415)";
  auto read = "%r = call i32 @llvm.amdgcn.readlane.i32(i32 %v, i32 20)";
  auto shuffle = "%n = xor i32 %tid, 33\n%r = call i32 @llvm.amdgcn.wave.shuffle.i32(i32 %v, i32 %n)";
  auto bpermuteBy = [](int n) {
    return ("%t = xor i32 %tid, " + llvm::Twine(n) +
            "\n%a = shl i32 %t, 2\n%r = call i32 @llvm.amdgcn.ds.bpermute(i32 %a, i32 %v)")
        .str();
  };
  auto xorBy = [](int n) { return [n](int l) { return l ^ n; }; };
  auto keep = [](unsigned control) { return dpp(control, 15, 15, false, "1500"); };
  auto wave = [](int by) { return [by](int l) { return l + by >= 0 && l + by < 64 ? l + by : none; }; };
  auto around = [](int by) { return [by](int l) { return (l + by) & 63; }; };
  auto share = [](int n) { return [n](int l) { return (l & ~15) | n; }; };
  auto rowDown = [](int l) { return (l & 15) < 13 ? l + 3 : none; };
  auto rowUp = [](int l) { return (l & 15) > 2 ? l - 3 : none; };
  return {
      {"quad_perm", "gfx942", 64, dpp(0x1b), xorBy(3)},
      {"quad_perm, old", "gfx942", 64, keep(0x1b), xorBy(3)},
      {"row_shl", "gfx942", 64, dpp(0x103), rowDown, zero},
      {"row_shl, old", "gfx1100", 32, keep(0x103), rowDown, 500},
      {"row_shr", "gfx942", 64, dpp(0x113), rowUp, zero},
      {"row_shr, old", "gfx1100", 32, keep(0x113), rowUp, 500},
      {"row_ror", "gfx942", 64, keep(0x123), [](int l) { return (l & ~15) | ((l - 3) & 15); }},
      {"wave_shl", "gfx906", 64, dpp(0x130), wave(1), zero},
      {"wave_shl, old", "gfx942", 64, keep(0x130), wave(1), 500},
      {"wave_rol", "gfx906", 64, keep(0x134), around(1)},
      {"wave_shr, old", "gfx942", 64, keep(0x138), wave(-1), 500},
      {"wave_ror", "gfx906", 64, keep(0x13c), around(-1)},
      {"row_mirror", "gfx942", 64, keep(0x140), xorBy(15)},
      {"row_half_mirror", "gfx942", 64, keep(0x141), xorBy(7)},
      {"row_bcast:15", "gfx942", 64, keep(0x142), [](int l) { return l & 48 ? (l & 48) - 1 : none; }, 500},
      {"row_bcast:31", "gfx942", 64, keep(0x143), [](int l) { return l & 32 ? 31 : none; }, 500},
      {"row_newbcast", "gfx90a", 64, keep(0x155), share(5)},
      {"row_share", "gfx1030", 32, dpp(0x155), share(5)},
      {"row_xmask", "gfx1200", 32, keep(0x16b), xorBy(11)},
      {"dpp8", "gfx1100", 32, dpp8, xorBy(7)},
      {"permlane16", "gfx1030", 32, permlane("permlane16", 0x89abcdef, 0x01234567), xorBy(15)},
      {"permlane16, old", "gfx1100", 64, permlane("permlane16", 0x89abcdef, 0x01234567, false), xorBy(15)},
      {"permlanex16", "gfx1030", 32, permlane("permlanex16", 0x76543210, 0xfedcba98), xorBy(16)},
      {"permlanex16, old", "gfx1100", 64, permlane("permlanex16", 0x76543210, 0xfedcba98, false), xorBy(16)},
      {"permlane16.var", "gfx1200", 32, var("permlane16"), xorBy(5)},
      {"permlanex16.var", "gfx1200", 32, var("permlanex16"), xorBy(16 ^ 5)},
      {"permlane64", "gfx1100", 64, "%r = call i32 @llvm.amdgcn.permlane64.i32(i32 %v)", xorBy(32)},
      {"permlane16.swap, first", "gfx950", 64, swap(16, 0), [](int l) { return l & ~16; }},
      {"permlane16.swap, second", "gfx950", 64, swap(16, 1), [](int l) { return l | 16; }},
      {"permlane32.swap, first", "gfx950", 64, swap(32, 0), [](int l) { return l & ~32; }},
      {"permlane32.swap, second", "gfx950", 64, swap(32, 1), [](int l) { return l | 32; }},
      {"ds_bpermute", "gfx942", 64, bpermuteBy(33), xorBy(33)},
      {"ds_bpermute in halves", "gfx1100", 64, bpermuteBy(33), xorBy(1)},
      {"ds_bpermute of 32", "gfx1200", 32, bpermuteBy(9), xorBy(9)},
      {"ds_swizzle", "gfx906", 64, xor16, xorBy(16)},
      {"readlane", "gfx942", 64, read, [](int) { return 20; }},
      {"wave.shuffle", "gfx942", 64, shuffle, xorBy(33)},
  };
}

/// Runs the move on the lanes of `active` in a block of `threads`; only `user` stores what it got.
std::string runMove(const Move &move, uint64_t active, unsigned threads, unsigned user, uint32_t &result) {
  std::string text = "%tid = call i32 @llvm.amdgcn.workitem.id.x()\n%t64 = zext i32 %tid to i64\n"
                     "%pin = getelementptr i32, ptr addrspace(1) %in, i64 %t64\n"
                     "%v = load i32, ptr addrspace(1) %pin\n%bits = lshr i64 " +
                     std::to_string(int64_t(active)) +
                     ", %t64\n%here = trunc i64 %bits to i1\nbr i1 %here, label %do, label %end\ndo:\n" + move.text +
                     "\n%uses = icmp eq i32 %tid, " + std::to_string(user) +
                     "\nbr i1 %uses, label %use, label %end\nuse:\nstore i32 %r, ptr addrspace(1) %out\n"
                     "br label %end\nend:\nret void";
  std::vector<uint32_t> out(1), in = iota(threads, 1000);
  std::string error = run(onChip(move.chip, move.wave), text, {{1, 1, 1}, {threads, 1, 1}}, out, in);
  result = out[0];
  return error;
}

void expectMove(const Move &move, uint64_t active, unsigned threads) {
  for (unsigned lane = 0; lane < threads; ++lane) {
    if (!(active >> lane & 1))
      continue;
    uint32_t result = 0;
    std::string error = runMove(move, active, threads, lane, result);
    int source = move.source(int(lane));
    std::string what = std::string(move.name) + " on lane " + std::to_string(lane);
    if (source == none || (source < int(threads) && (active >> source & 1))) {
      EXPECT_EQ(error, "") << what;
      EXPECT_EQ(int(result) - 1000, source == none ? move.fill : source) << what;
    } else {
      std::string fault = "poison stored in kernel 'k', block (0, 0, 0), thread (" + std::to_string(lane) + ", 0, 0)";
      EXPECT_NE(error.find(fault), std::string::npos) << what << ": " << error;
    }
  }
}

TEST(AbsentLanes, MissingInAPartialWave) {
  for (const Move &move : getMoves())
    for (unsigned threads : {5u, 20u, 40u})
      expectMove(move, ~uint64_t(0), std::min(threads, move.wave));
}

TEST(AbsentLanes, InactiveInABranch) {
  for (const Move &move : getMoves())
    expectMove(move, 0x00f3'9d6b'2ca5'71d9, move.wave);
}

/// Those that read no fixed lane.
TEST(AbsentLanes, TakeNoPart) {
  uint64_t active = 0xfff0'0000'ffff'ff00;
  uint32_t result = 0;
  Move first = {"", "gfx942", 64, "%r = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %v)", nullptr};
  EXPECT_EQ(runMove(first, active, 64, 60, result), "");
  EXPECT_EQ(result, 1008u);
  // A push: lane 12 gets what lane 8 has, and nobody hits lane 9.
  Move push = {"", "gfx942", 64,
               "%t = add i32 %tid, 4\n%a = shl i32 %t, 2\n%r = call i32 @llvm.amdgcn.ds.permute(i32 %a, i32 %v)",
               nullptr};
  EXPECT_EQ(runMove(push, active, 64, 12, result), "");
  EXPECT_EQ(result, 1008u);
  EXPECT_EQ(runMove(push, active, 64, 9, result), "");
  EXPECT_EQ(result, 0u);
  Move ballot = {"", "gfx942", 64,
                 "%b = call i64 @llvm.amdgcn.ballot.i64(i1 true)\n%h = lshr i64 %b, 32\n%r = trunc i64 %h to i32",
                 nullptr};
  EXPECT_EQ(runMove(ballot, active, 64, 8, result), "");
  EXPECT_EQ(result, 0xfff00000u);
  Move write = {"", "gfx942", 64, "%r = call i32 @llvm.amdgcn.writelane.i32(i32 1500, i32 9, i32 %v)", nullptr};
  EXPECT_EQ(runMove(write, active, 64, 9, result), "");
  EXPECT_EQ(result, 1500u);
  EXPECT_EQ(runMove(write, active, 64, 10, result), "");
  EXPECT_EQ(result, 1010u);
}

} // namespace

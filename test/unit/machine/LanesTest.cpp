// Which lane each instruction reads: maps from the ISA manuals, written out.
#include "OneWave.h"

namespace {

/// Lanes of v0, which holds 100 and the lane; -1 for 0, -2 for what v1 held before, 7.
void expectMap(const char *chip, unsigned lanes, uint64_t exec, const char *line, unsigned first,
               std::vector<int> map) {
  OneWave wave(chip, lanes, ~uint64_t(0));
  ASSERT_EQ(wave.run({"v_mov_b32_e32 v1, 7"}), "");
  wave.wave.scalars[amdgcn::execPlace] = {uint32_t(exec), 0};
  wave.wave.scalars[amdgcn::execPlace + 1] = {uint32_t(exec >> 32), 0};
  ASSERT_EQ(wave.run({line}), "") << line;
  for (unsigned i = 0; i < map.size(); ++i)
    EXPECT_EQ(wave.vector(1, first + i), map[i] == -1 ? 0u : map[i] == -2 ? 7u : 100u + unsigned(map[i]))
        << line << " on " << chip << ", lane " << first + i;
}
constexpr uint64_t all = ~uint64_t(0);

TEST(Lanes, QuadsAndRows) {
  expectMap("gfx90a", 64, all, "v_mov_b32_dpp v1, v0 quad_perm:[3,0,2,2] row_mask:0xf bank_mask:0xf", 60,
            {63, 60, 62, 62});
  expectMap("gfx90a", 64, all, "v_mov_b32_dpp v1, v0 row_shl:3 row_mask:0xf bank_mask:0xf bound_ctrl:1", 16,
            {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, -1, -1, -1});
  expectMap("gfx90a", 64, all, "v_mov_b32_dpp v1, v0 row_shr:2 row_mask:0xf bank_mask:0xf", 16,
            {-2, -2, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29});
  expectMap("gfx1100", 32, all, "v_mov_b32_dpp v1, v0 row_ror:4 row_mask:0xf bank_mask:0xf", 16,
            {28, 29, 30, 31, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27});
  expectMap("gfx906", 64, all, "v_mov_b32_dpp v1, v0 row_mirror row_mask:0xf bank_mask:0xf", 32,
            {47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32});
  expectMap("gfx906", 64, all, "v_mov_b32_dpp v1, v0 row_half_mirror row_mask:0xf bank_mask:0xf", 8,
            {15, 14, 13, 12, 11, 10, 9, 8, 23, 22});
  expectMap("gfx1030", 32, all, "v_mov_b32_dpp v1, v0 row_xmask:5 row_mask:0xf bank_mask:0xf", 16,
            {21, 20, 23, 22, 17, 16, 19, 18, 29, 28});
  expectMap("gfx90a", 64, all, "v_mov_b32_dpp v1, v0 row_newbcast:9 row_mask:0xf bank_mask:0xf", 14, {9, 9, 25, 25});
  expectMap("gfx1200", 64, all, "v_mov_b32_dpp v1, v0 row_share:15 row_mask:0xf bank_mask:0xf", 47, {47, 63, 63});
  expectMap("gfx1100", 32, all, "v_mov_b32_dpp v1, v0 dpp8:[7,6,5,4,3,2,1,0]", 8, {15, 14, 13, 12, 11, 10, 9, 8});
}

TEST(Lanes, WholeWave) {
  expectMap("gfx90a", 64, all, "v_mov_b32_dpp v1, v0 wave_shl:1 row_mask:0xf bank_mask:0xf", 30, {31, 32, 33});
  expectMap("gfx90a", 64, all, "v_mov_b32_dpp v1, v0 wave_shl:1 row_mask:0xf bank_mask:0xf", 62, {63, -2});
  expectMap("gfx90a", 64, all, "v_mov_b32_dpp v1, v0 wave_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1", 0,
            {-1, 0, 1});
  expectMap("gfx90a", 64, all, "v_mov_b32_dpp v1, v0 wave_rol:1 row_mask:0xf bank_mask:0xf", 62, {63, 0});
  expectMap("gfx90a", 64, all, "v_mov_b32_dpp v1, v0 wave_ror:1 row_mask:0xf bank_mask:0xf", 0, {63, 0});
  expectMap("gfx90a", 64, all, "v_mov_b32_dpp v1, v0 row_bcast:15 row_mask:0xf bank_mask:0xf", 14,
            {-2, -2, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 31, 31});
  expectMap("gfx90a", 64, all, "v_mov_b32_dpp v1, v0 row_bcast:31 row_mask:0xc bank_mask:0xf", 30, {-2, -2, 31, 31});
}

TEST(Lanes, MasksOfRowsAndBanks) {
  expectMap("gfx90a", 64, all, "v_mov_b32_dpp v1, v0 row_bcast:15 row_mask:0xa bank_mask:0xf", 30, {15, 15, -2, -2});
  expectMap("gfx1100", 32, all, "v_mov_b32_dpp v1, v0 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xa", 2,
            {-2, -2, 4, 5, 6, 7, -2});
  // A lane that a mask leaves out is not written, with bound_ctrl too.
  expectMap("gfx1100", 32, all, "v_mov_b32_dpp v1, v0 row_shr:1 row_mask:0x2 bank_mask:0xf bound_ctrl:1", 14,
            {-2, -2, -1, 16});
}

TEST(Lanes, SourcesThatTakeNoPart) {
  uint64_t odd = 0xAAAAAAAAAAAAAAAA;
  expectMap("gfx90a", 64, odd, "v_mov_b32_dpp v1, v0 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", 0,
            {-2, -2, -2, -2});
  expectMap("gfx90a", 64, odd, "v_mov_b32_dpp v1, v0 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf bound_ctrl:1", 0,
            {-2, -1, -2, -1});
  expectMap("gfx1100", 32, 0xAAAAAAAA, "v_mov_b32_dpp v1, v0 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf fi:1", 0,
            {-2, 0, -2, 2});
  expectMap("gfx1100", 64, ~uint64_t(0) << 32, "v_permlane64_b32 v1, v0", 30, {-2, -2, 0, 1});
  expectMap("gfx90a", 64, odd, "ds_bpermute_b32 v1, v1, v0", 0, {-2, 101 - 100, -2, 101 - 100});
  expectMap("gfx1030", 32, 0xFFFF0000, "v_permlanex16_b32 v1, v0, 0, 0", 16, {-2, -2});
  expectMap("gfx1030", 32, 0xFFFF0000, "v_permlanex16_b32 v1, v0, 0, 0 op_sel:[1,0]", 16, {0, 0});
  expectMap("gfx1030", 32, 0xFFFF0000, "v_permlanex16_b32 v1, v0, 0, 0 op_sel:[0,1]", 16, {-1, -1});
}

/// The second source is moved: chips exchange the two before they move the first.
TEST(Lanes, ReversedOperands) {
  const char *swapped = "quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf";
  auto run = [&](const char *chip, unsigned lanes, std::string operation) {
    OneWave wave(chip, lanes);
    for (unsigned lane = 0; lane < lanes; ++lane) {
      wave.set(2, lane, 1000 * lane);
      wave.set(3, lane, lane);
    }
    EXPECT_EQ(wave.run({(operation + swapped).c_str()}), "");
    return wave.vector(1, 2);
  };
  EXPECT_EQ(run("gfx90a", 64, "v_sub_u32_dpp v1, v2, v0 "), 3000u - 102);
  EXPECT_EQ(run("gfx90a", 64, "v_subrev_u32_dpp v1, v0, v2 "), 3000u - 102);
  EXPECT_EQ(run("gfx90a", 64, "v_subrev_u16_dpp v1, v0, v2 "), 3000u - 102);
  EXPECT_EQ(run("gfx90a", 64, "v_subrev_co_u32_dpp v1, vcc, v0, v2 "), 3000u - 102);
  EXPECT_EQ(run("gfx1030", 32, "v_subrev_nc_u32_dpp v1, v0, v2 "), 3000u - 102);
  EXPECT_EQ(run("gfx1200", 32, "v_subrev_co_u32_e64_dpp v1, s4, v0, v2 "), 3000u - 102);
  EXPECT_EQ(run("gfx90a", 64, "v_lshlrev_b32_dpp v1, v3, v2 "), 3000u << 2);
  EXPECT_EQ(run("gfx1030", 32, "v_lshrrev_b32_dpp v1, v3, v2 "), 3000u >> 2);
  EXPECT_EQ(run("gfx1030", 32, "v_ashrrev_i32_dpp v1, v3, v2 "), 3000u >> 2);
  EXPECT_EQ(run("gfx1100", 32, "v_lshlrev_b32_dpp v1, v3, v2 "), 2000u << 3);
}

TEST(Lanes, Permlanes) {
  expectMap("gfx1100", 32, all, "v_permlanex16_b32 v1, v0, 0x76543210, 0xfedcba98", 14, {30, 31, 0, 1});
  expectMap("gfx1100", 32, all, "v_permlanex16_b32 v1, v0, -1, -1", 0, {31, 31});
  expectMap("gfx1100", 64, all, "v_permlanex16_b32 v1, v0, 0, 0", 31, {0, 48, 48});
  expectMap("gfx1100", 64, all, "v_permlane16_b32 v1, v0, 0x01234567, 0x89abcdef", 48,
            {55, 54, 53, 52, 51, 50, 49, 48, 63});
  expectMap("gfx1100", 64, all, "v_permlane64_b32 v1, v0", 30, {62, 63, 0, 1});
  expectMap("gfx1100", 32, all, "v_permlane64_b32 v1, v0", 0, {-2, -2});
}

TEST(Lanes, Swaps) {
  OneWave wave("gfx950", 64);
  ASSERT_EQ(wave.run({"v_add_u32_e32 v1, 0x64, v0", "v_mov_b32_e32 v2, v0", "v_mov_b32_e32 v3, v1",
                      "v_permlane16_swap_b32_e32 v0, v1", "v_permlane32_swap_b32_e32 v2, v3"}),
            "");
  // Odd rows of the first are even rows of the second.
  for (unsigned lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(wave.vector(0, lane), lane & 16 ? 200 + lane - 16 : 100 + lane);
    EXPECT_EQ(wave.vector(1, lane), lane & 16 ? 200 + lane : 100 + lane + 16);
    EXPECT_EQ(wave.vector(2, lane), lane & 32 ? 200 + lane - 32 : 100 + lane);
    EXPECT_EQ(wave.vector(3, lane), lane & 32 ? 200 + lane : 100 + lane + 32);
  }
}

TEST(Lanes, BySharedMemory) {
  for (auto [chip, lanes, reads] :
       {std::tuple("gfx90a", 64u, 3u), {"gfx1200", 64u, 3u}, {"gfx1030", 64u, 35u}, {"gfx1100", 64u, 35u}}) {
    OneWave wave(chip, lanes);
    ASSERT_EQ(wave.run({"v_mov_b32_e32 v2, 12", "ds_bpermute_b32 v1, v2, v0"}), "");
    EXPECT_EQ(wave.vector(1, 0), 103u) << chip;
    EXPECT_EQ(wave.vector(1, 40), 100 + reads) << chip;
  }
  OneWave wave("gfx90a", 64);
  ASSERT_EQ(wave.run({"v_mov_b32_e32 v2, 0x104", "ds_bpermute_b32 v1, v2, v0 offset:4", "ds_permute_b32 v3, v2, v0"}),
            "");
  EXPECT_EQ(wave.vector(1, 9), 102u);
  EXPECT_EQ(wave.vector(3, 1), 163u); // of the lanes that write to one, the last
  EXPECT_EQ(wave.vector(3, 2), 0u);
  expectMap("gfx90a", 64, all, "ds_swizzle_b32 v1, v0 offset:swizzle(SWAP,16)", 31, {15, 48});
  expectMap("gfx90a", 64, all, "ds_swizzle_b32 v1, v0 offset:swizzle(REVERSE,8)", 32,
            {39, 38, 37, 36, 35, 34, 33, 32, 47});
  expectMap("gfx90a", 64, all, "ds_swizzle_b32 v1, v0 offset:swizzle(BROADCAST,8,3)", 39, {35, 43});
  expectMap("gfx90a", 64, all, "ds_swizzle_b32 v1, v0 offset:swizzle(QUAD_PERM,1,1,3,3)", 60, {61, 61, 63, 63});
  expectMap("gfx90a", 64, all, "ds_swizzle_b32 v1, v0 offset:swizzle(BITMASK_PERM,\"01pip\")", 32, {42, 43, 40, 41});
}

TEST(Lanes, OneLane) {
  OneWave wave("gfx90a", 64, 0xF0);
  ASSERT_EQ(wave.run({"v_readfirstlane_b32 s4, v0", "v_readlane_b32 s5, v0, 63", "v_writelane_b32 v0, 9, 2"}), "");
  EXPECT_EQ(wave.scalar(4), 104u);
  EXPECT_EQ(wave.scalar(5), 163u); // whether the lane takes part or not
  EXPECT_EQ(wave.vector(0, 2), 9u);
  EXPECT_EQ(wave.vector(0, 1), 101u);
}

} // namespace

// What operations compute, written from the ISA manuals: carries, parts of words, halves, comparisons, floats, unknown
// bits.
#include "OneWave.h"

#include "llvm/ADT/bit.h"

namespace {

TEST(Ops, CarriesGoThroughMasks) {
  OneWave wave("gfx90a", 64, 0xFF);
  for (unsigned lane = 0; lane < 8; ++lane)
    wave.set(2, lane, lane & 1 ? 0xFFFFFFFF : 5);
  ASSERT_EQ(wave.run({"v_mov_b32_e32 v3, 0", "v_add_co_u32_e32 v1, vcc, 1, v2",
                      "v_addc_co_u32_e64 v4, s[6:7], v3, 2, vcc", "v_subrev_co_u32_e32 v5, vcc, 6, v2"}),
            "");
  EXPECT_EQ(wave.vector(1, 1), 0u);
  EXPECT_EQ(wave.vector(1, 2), 6u);
  EXPECT_EQ(wave.vector(4, 1), 3u);
  EXPECT_EQ(wave.vector(4, 2), 2u);
  EXPECT_EQ(wave.scalar(6), 0u);
  EXPECT_EQ(wave.scalar(amdgcn::vccPlace), 0x55u); // 5 - 6 borrows, in lanes that take part
}

TEST(Ops, WhatACarryHoldsInRowsThatAreMaskedIsUnknown) {
  OneWave wave("gfx1100", 32);
  ASSERT_EQ(
      wave.run({"v_mov_b32_e32 v1, 0", "v_add_co_u32_e64_dpp v1, s4, v0, v0 row_shr:1 row_mask:0x1 bank_mask:0xf"}),
      "");
  EXPECT_EQ(wave.wave.scalars[4].unknown, 0xFFFF0001u);
}

TEST(Ops, PartsOfWords) {
  OneWave wave("gfx90a", 64);
  ASSERT_EQ(
      wave.run({"v_mov_b32_e32 v1, 0x8182f384", "v_mov_b32_e32 v2, 0x11223344", "v_mov_b32_e32 v3, v2",
                "v_mov_b32_e32 v4, v2",
                "v_add_u32_sdwa v2, v1, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_3 src1_sel:BYTE_2",
                "v_add_u32_sdwa v3, sext(v1), v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:WORD_1",
                "v_or_b32_sdwa v4, v1, v1 dst_sel:BYTE_1 dst_unused:UNUSED_SEXT src0_sel:WORD_0 src1_sel:WORD_0"}),
      "");
  EXPECT_EQ(wave.vector(2, 5), 0x01033344u);
  EXPECT_EQ(wave.vector(3, 5), 0x8182u + 0xFFFFFF84u);
  EXPECT_EQ(wave.vector(4, 5), 0xFFFF8400u);
}

TEST(Ops, HalvesOfRegisters) {
  OneWave old("gfx90a", 64), newer("gfx1030", 32), named("gfx1100", 32);
  ASSERT_EQ(old.run({"v_mov_b32_e32 v1, 0xffff0001", "v_add_u16_e32 v1, v1, v1"}), "");
  EXPECT_EQ(old.vector(1, 0), 2u); // gfx9 clears the other half
  ASSERT_EQ(newer.run({"v_mov_b32_e32 v1, 0xffff0001", "v_add_nc_u16 v1, v1, v1"}), "");
  EXPECT_EQ(newer.vector(1, 0), 0xFFFF0002u);
  ASSERT_EQ(named.run({"v_mov_b32_e32 v1, 0x00050001", "v_add_nc_u16 v1.l, v1.h, v1.l"}), "");
  EXPECT_EQ(named.vector(1, 0), 0x00050006u);
}

TEST(Ops, ExtremesOfThreeHalves) {
  OneWave wave("gfx1200", 32);
  // 1, 3 and 2, and a NaN.
  ASSERT_EQ(wave.run({"v_mov_b32_e32 v1, 0x3c00", "v_mov_b32_e32 v2, 0x4200", "v_mov_b32_e32 v3, 0x4000",
                      "v_mov_b32_e32 v4, 0x7e00", "v_mov_b32_e32 v5, 0", "v_mov_b32_e32 v6, 0", "v_mov_b32_e32 v7, 0",
                      "v_mov_b32_e32 v8, 0", "v_mov_b32_e32 v9, 0", "v_mov_b32_e32 v10, 0",
                      "v_med3_num_f16 v5, v1, v2, v3", "v_maxmin_num_f16 v6, v1, v2, v3",
                      "v_minmax_num_f16 v7, v4, v1, v3", "v_maximumminimum_f16 v8, v1, v2, v3",
                      "v_minimummaximum_f16 v9, v4, v1, v3", "v_med3_num_f16 v10, v4, v2, v3"}),
            "");
  EXPECT_EQ(wave.vector(5, 0), 0x4000u);
  EXPECT_EQ(wave.vector(6, 0), 0x4000u);
  EXPECT_EQ(wave.vector(7, 0), 0x4000u);
  EXPECT_EQ(wave.vector(8, 0), 0x4000u);
  EXPECT_EQ(wave.vector(9, 0) & 0x7FFF, 0x7E00u);
  EXPECT_EQ(wave.vector(10, 0), 0x4000u);
  OneWave older("gfx1100", 32);
  ASSERT_EQ(older.run({"v_mov_b32_e32 v1, 0x42003c00", "v_mov_b32_e32 v2, 0x4000", "v_mov_b32_e32 v3, 0",
                       "v_maxmin_f16 v3.l, v1.l, v1.h, v2.l", "v_minmax_f16 v3.h, v1.l, v1.h, v2.l"}),
            "");
  EXPECT_EQ(older.vector(3, 0), 0x40004000u);
}

TEST(Ops, PairsOfHalves) {
  OneWave wave("gfx950", 64);
  ASSERT_EQ(wave.run({"v_mov_b32_e32 v1, 0x3f801000", "v_mov_b32_e32 v2, 0xc7000000", "v_cvt_pk_f16_f32 v3, v1, v2",
                      "v_cvt_pk_f16_f32 v4, v2, -v1"}),
            "");
  EXPECT_EQ(wave.vector(3, 0), 0xF8003C00u); // a tie goes to the even one
  EXPECT_EQ(wave.vector(4, 0), 0xBC00F800u);
}

/// As the disassembler leaves them: by their numbers in the encoding.
TEST(Ops, ConstantsBesideAMove) {
  OneWave wave("gfx1200", 32);
  ASSERT_EQ(wave.run({"v_mov_b32_e32 v1, 1.0", "v_mov_b32_e32 v2, 3.0", "v_mov_b32_e32 v3, 1.0",
                      "v_mov_b32_e32 v4, 1.0", "v_mov_b32_e32 v5, 0x3c00", "v_mov_b32_e32 v6, 0x4200",
                      "v_fmac_f32_e64_dpp v1, v2, 0xf4 row_xmask:4 row_mask:0xf bank_mask:0xf",
                      "v_fmac_f32_e64_dpp v3, v2, 0xf1 row_xmask:4 row_mask:0xf bank_mask:0xf",
                      "v_fmac_f32_e64_dpp v4, v2, 0x80 row_xmask:4 row_mask:0xf bank_mask:0xf",
                      "v_fmac_f16_e64_dpp v5, v6, 0xf4 row_xmask:4 row_mask:0xf bank_mask:0xf"}),
            "");
  EXPECT_EQ(wave.vector(1, 3), 0x40E00000u); // 7
  EXPECT_EQ(wave.vector(3, 3), 0xBF000000u); // -0.5
  EXPECT_EQ(wave.vector(4, 3), 0x3F800000u);
  EXPECT_EQ(wave.vector(5, 3), 0x4700u);
}

TEST(Ops, ComparisonsClearLanesThatTakeNoPart) {
  OneWave wave("gfx90a", 64, 0xF);
  ASSERT_EQ(wave.run({"v_cmp_gt_u32_e64 s[4:5], v0, 0x65"}), "");
  EXPECT_EQ(wave.scalar(4), 0xCu);
  EXPECT_EQ(wave.scalar(5), 0u);
  OneWave newer("gfx1100", 32);
  ASSERT_EQ(newer.run({"v_cmpx_ne_u32_e32 0x65, v0"}), "");
  EXPECT_EQ(newer.scalar(amdgcn::execPlace), 0xFFFFFFFDu);
}

TEST(Ops, PairsReadBeforeTheyWrite) {
  OneWave wave("gfx1100", 32);
  ASSERT_EQ(wave.run({"v_mov_b32_e32 v1, 5", "v_mov_b32_e32 v2, 6", "v_dual_mov_b32 v1, v2 :: v_dual_mov_b32 v2, v1"}),
            "");
  EXPECT_EQ(wave.vector(1, 3), 6u);
  EXPECT_EQ(wave.vector(2, 3), 5u);
}

TEST(Ops, FloatsOfEachMode) {
  OneWave wave("gfx90a", 64);
  wave.wave.mode.flush32 = true;
  ASSERT_EQ(wave.run({"v_mov_b32_e32 v1, 0x400000", "v_add_f32_e32 v2, v1, v1",
                      "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3", "v_add_f32_e32 v3, v1, v1",
                      "v_max_f32_e32 v4, 0x80000000, v1", "v_mov_b32_e32 v5, 0x7fc00000", "v_min_f32_e32 v6, v5, v3",
                      "v_fma_f32 v7, -v1, 2.0, |v3|"}),
            "");
  EXPECT_EQ(wave.vector(2, 0), 0u);
  EXPECT_EQ(wave.vector(3, 0), 0x800000u);
  EXPECT_EQ(wave.vector(4, 0), 0x400000u);
  EXPECT_EQ(wave.vector(6, 0), 0x800000u);
  EXPECT_EQ(wave.vector(7, 0), 0u);
}

TEST(Ops, DivisionsAreRightInTheEnd) {
  // The steps that LLVM writes a division of f32 as.
  auto divide = [](float a, float b) {
    OneWave wave("gfx90a", 64);
    wave.set(1, 0, llvm::bit_cast<uint32_t>(a));
    wave.set(2, 0, llvm::bit_cast<uint32_t>(b));
    wave.wave.scalars[amdgcn::execPlace] = {1, 0};
    wave.wave.scalars[amdgcn::execPlace + 1] = {0, 0};
    EXPECT_EQ(
        wave.run({"v_div_scale_f32 v3, s[0:1], v2, v2, v1", "v_rcp_f32_e32 v4, v3",
                  "v_div_scale_f32 v5, vcc, v1, v2, v1", "v_fma_f32 v6, -v3, v4, 1.0", "v_fmac_f32_e32 v4, v6, v4",
                  "v_mul_f32_e32 v7, v5, v4", "v_fma_f32 v8, -v3, v7, v5", "v_fmac_f32_e32 v7, v8, v4",
                  "v_fma_f32 v5, -v3, v7, v5", "v_div_fmas_f32 v5, v5, v4, v7", "v_div_fixup_f32 v5, v5, v2, v1"}),
        "");
    return llvm::bit_cast<float>(wave.vector(5, 0));
  };
  for (float a : {1.0f, 3.0f, 1e-38f, 3e38f, 1.7e-42f, -5.5f})
    for (float b : {3.0f, 7e-39f, 2.5e38f, -1.1f, 1e-44f})
      EXPECT_EQ(divide(a, b), a / b) << a << " / " << b;
}

TEST(Ops, UnknownBits) {
  OneWave wave("gfx90a", 64);
  // v9 was never written: what does not depend on it is known.
  ASSERT_EQ(wave.run({"v_and_b32_e32 v1, 0, v9", "v_bfi_b32 v2, -1, v0, v9", "v_cndmask_b32_e64 v3, v0, v9, 0",
                      "v_add_u32_e32 v4, v9, v0", "v_lshlrev_b32_e32 v5, 16, v9", "v_and_b32_e32 v5, 0xffff, v5"}),
            "");
  EXPECT_EQ(wave.vector(1, 3), 0u);
  EXPECT_EQ(wave.vector(2, 3), 103u);
  EXPECT_EQ(wave.vector(3, 3), 103u);
  EXPECT_FALSE(wave.isKnown(4, 3));
  EXPECT_EQ(wave.vector(5, 3), 0u);
  ASSERT_EQ(wave.run({"v_cmp_eq_u32_e64 s[4:5], v9, v0", "s_cmp_eq_u32 s4, 0"}), "");
  EXPECT_NE(wave.run({"s_cbranch_scc1 4"}), "");
}

TEST(Ops, UnknownInstructionsAreFaults) {
  OneWave wave("gfx90a", 64);
  EXPECT_NE(wave.run({"v_invented_b32 v1, v0"}), "");
  OneWave other("gfx90a", 64);
  EXPECT_NE(other.run({"v_mov_b32_e32 v1, v0 invented:1"}), "");
}

TEST(Ops, SharedMemory) {
  OneWave wave("gfx1100", 32);
  ASSERT_EQ(wave.run({"v_and_b32_e32 v1, 3, v0", "v_lshlrev_b32_e32 v1, 2, v1", "ds_store_b32 v1, v0 offset:16",
                      "ds_load_b32 v2, v1 offset:16", "v_mov_b32_e32 v3, 0", "ds_load_u8 v4, v3 offset:17",
                      "ds_add_rtn_u32 v5, v3, v3 offset:16", "ds_load_b32 v6, v3"}),
            "");
  EXPECT_EQ(wave.vector(2, 1), 129u); // the last lane's, of those that write to one place
  EXPECT_EQ(wave.vector(4, 0), 0u);
  EXPECT_EQ(wave.vector(5, 0), 128u);
  EXPECT_FALSE(wave.isKnown(6, 0));
  EXPECT_NE(wave.run({"ds_load_b32 v6, v3 offset:256"}), "");
}

/// A loop that changes one byte of a word compares the others with themselves.
TEST(Ops, BytesBesideTheOnesThatCount) {
  OneWave wave("gfx942", 64, /*exec=*/1);
  ASSERT_EQ(wave.run({"v_mov_b32_e32 v1, 0", "ds_write_b8 v1, v0", "ds_read_b32 v2, v1", "v_mov_b32_e32 v3, v2",
                      "v_and_b32_e32 v4, 0xffffff00, v2", "v_or_b32_e32 v4, 7, v4", "ds_cmpst_rtn_b32 v5, v1, v3, v4",
                      "v_cmp_eq_u32_e64 s[4:5], v5, v3", "s_cmp_eq_u32 s4, 1", "s_cbranch_scc1 4",
                      "ds_read_u8 v6, v1", "ds_read_u8 v7, v1 offset:1"}),
            "");
  EXPECT_EQ(wave.scalar(4), 1u);
  EXPECT_EQ(wave.vector(6, 0), 7u);
  EXPECT_FALSE(wave.isKnown(7, 0));
  // Another word's bytes are others.
  ASSERT_EQ(wave.run({"ds_read_b32 v8, v1 offset:8", "ds_read_b32 v9, v1 offset:12",
                      "v_cmp_eq_u32_e64 s[4:5], v8, v9", "s_cmp_eq_u32 s4, 1"}),
            "");
  EXPECT_NE(wave.run({"s_cbranch_scc1 4"}), "");
}

} // namespace

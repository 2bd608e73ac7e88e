//===----------------------------------------------------------------------===//
// What each chip has, and how far its lane operations reach: one row a chip.
//===----------------------------------------------------------------------===//
#ifndef QD_CODEGEN_SIM_CHIPS_H
#define QD_CODEGEN_SIM_CHIPS_H

#include "llvm/Support/Error.h"
#include <string>

namespace qd::sim {

struct ChipRules {
  const char *name;
  bool nvptx;
  bool wave32, wave64;
  unsigned defaultWave;

  // nvptx
  bool redux;      // redux.sync on integers, and cp.async
  bool reduxFloat; // redux.sync on f32
  bool elect;      // elect.sync

  // amdgcn
  bool permlane64;
  bool permlane16; // permlane16, permlanex16, mov.dpp8, row_xmask
  bool permlaneSwap;
  bool rowShare;          // row_share, row_newbcast
  bool waveShift;         // wave_shl/shr/rol/ror, row_bcast15/31
  bool gfx12;             // permlane16.var, ds.bpermute.fi, split barriers
  unsigned bpermuteReach; // lanes ds_bpermute reaches in a wave64
};

llvm::Expected<const ChipRules *> chipByName(llvm::StringRef name);

} // namespace qd::sim

#endif

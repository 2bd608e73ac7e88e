//===- BuildId.h - which build of the compiler this is ------------------------------------------===//
//
// Purpose: tells builds apart whose output may differ. The definition is written by BuildId.cmake.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_BUILDID_H
#define QD_COMPILER_BUILDID_H

namespace qd {

/// Hexadecimal; the same in all programs and libraries that one build of the compiler is linked into.
extern const char *const buildId;

} // namespace qd

#endif

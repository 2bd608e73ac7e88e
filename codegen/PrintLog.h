//===- PrintLog.h - the lines that a launch prints ----------------------------------------===//
//
// Purpose: carries out the printf of PrintText.h on this machine.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_PRINTLOG_H
#define QD_CODEGEN_PRINTLOG_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace qd {

/// What printf makes of a text by getPrintfText. NaNs have no sign.
std::string formatPrintf(llvm::StringRef text, const uint8_t *values);
/// The bytes of the values that such a text takes.
unsigned countPrintfBytes(llvm::StringRef text);

/// The lines that a launch prints, kept until it ends and then printed in the order of blocks.
class PrintLog {
public:
  void add(uint64_t block, llvm::StringRef lines);
  void flush();

private:
  std::mutex mutex;
  std::map<uint64_t, std::string> byBlock;
};

} // namespace qd

#endif

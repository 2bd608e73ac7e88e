//===- Bytes.h - results and options as bytes --------------------------------------------------===//
//
// Purpose: what a cache keeps of a compile and what a worker process is sent.
// Reading takes any bytes: those that no writer made give nothing.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_BYTES_H
#define QD_COMPILER_BYTES_H

#include "compiler/Compiler.h"

#include "llvm/ADT/StringRef.h"
#include <optional>

namespace qd {

class ByteWriter {
public:
  void number(uint64_t value) { bytes.append(reinterpret_cast<const char *>(&value), sizeof value); }
  void text(llvm::StringRef value) {
    number(value.size());
    bytes.append(value.data(), value.size());
  }
  std::string take() { return std::move(bytes); }

private:
  std::string bytes;
};

/// Past the end, or where a length is too large, numbers are 0, texts empty and `isGood` false.
class ByteReader {
public:
  explicit ByteReader(llvm::StringRef bytes) : rest(bytes) {}
  uint64_t number();
  std::string text();
  /// A number of things that take at least a byte each.
  size_t count();
  bool isGood() const { return good; }
  bool isAtEnd() const { return rest.empty(); }

private:
  llvm::StringRef rest;
  bool good = true;
};

void writeResult(const CompileResult &result, ByteWriter &writer);
std::optional<CompileResult> readResult(ByteReader &reader);

/// The options that an artifact depends on; `readOptions` leaves the others alone.
void writeOptions(const CompileOptions &options, ByteWriter &writer);
void readOptions(ByteReader &reader, CompileOptions &options);

} // namespace qd

#endif

//===- PrintLog.cpp - the lines that a launch prints ----------------------------------------===//

#include "codegen/PrintLog.h"

#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <cstdio>
#include <cstring>

namespace qd {

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

/// Takes the conversion at the start of `text`: its size in bytes and its digits; 0 bytes for a percent sign.
static std::pair<unsigned, unsigned> takeConversion(llvm::StringRef &text) {
  unsigned digits = 0;
  if (text.consume_front("%d"))
    return {4, 0};
  if (text.consume_front("%lld"))
    return {8, 0};
  if (text.consume_front("%.") && !text.consumeInteger(10, digits) && text.consume_front("g"))
    return {8, digits};
  text = text.drop_front(std::min<size_t>(2, text.size()));
  return {0, 0};
}

unsigned countPrintfBytes(llvm::StringRef text) {
  uint64_t bytes = 0;
  while (text.contains('%')) {
    text = text.drop_front(text.find('%'));
    if (auto [size, digits] = takeConversion(text); size)
      bytes = llvm::alignTo(bytes, size) + size;
  }
  return bytes;
}

static std::string printFloat(double value, unsigned digits) {
  if (std::isnan(value))
    return "nan";
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*g", int(digits), value);
  return buffer;
}

std::string formatPrintf(llvm::StringRef text, const uint8_t *values) {
  std::string line;
  uint64_t offset = 0;
  auto take = [&](auto value) {
    offset = llvm::alignTo(offset, sizeof(value));
    std::memcpy(&value, values + offset, sizeof(value));
    offset += sizeof(value);
    return value;
  };
  while (!text.empty()) {
    if (!text.starts_with("%")) {
      line += text.front();
      text = text.drop_front();
      continue;
    }
    auto [bytes, digits] = takeConversion(text);
    if (!bytes)
      line += '%';
    else if (digits)
      line += printFloat(take(double()), digits);
    else
      line += bytes == 8 ? std::to_string(take(int64_t())) : std::to_string(take(int32_t()));
  }
  return line;
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

void PrintLog::add(uint64_t block, llvm::StringRef lines) {
  std::lock_guard<std::mutex> lock(mutex);
  byBlock[block] += lines;
}

void PrintLog::flush() {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto &[block, lines] : byBlock)
    std::fwrite(lines.data(), 1, lines.size(), stdout);
  if (!byBlock.empty())
    std::fflush(stdout);
  byBlock.clear();
}

} // namespace qd

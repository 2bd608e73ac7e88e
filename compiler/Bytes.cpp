//===- Bytes.cpp - results and options as bytes ----------------------------------------------------===//

#include "compiler/Bytes.h"

#include <cstring>

using llvm::StringRef;

namespace qd {

uint64_t ByteReader::number() {
  uint64_t value = 0;
  if (rest.size() < sizeof value) {
    good = false;
    rest = {};
    return 0;
  }
  memcpy(&value, rest.data(), sizeof value);
  rest = rest.drop_front(sizeof value);
  return value;
}

std::string ByteReader::text() {
  size_t size = count();
  std::string value = rest.take_front(size).str();
  rest = rest.drop_front(size);
  return value;
}

size_t ByteReader::count() {
  uint64_t value = number();
  if (value <= rest.size())
    return value;
  good = false;
  rest = {};
  return 0;
}

static void writeMessage(const Message &message, ByteWriter &writer) {
  writer.number(uint64_t(message.severity));
  writer.number(message.line);
  writer.number(message.column);
  writer.text(message.file);
  writer.text(message.text);
  writer.text(message.excerpt);
}

static Message readMessage(ByteReader &reader) {
  Message message;
  message.severity = Severity(reader.number());
  message.line = reader.number();
  message.column = reader.number();
  message.file = reader.text();
  message.text = reader.text();
  message.excerpt = reader.text();
  return message;
}

void writeResult(const CompileResult &result, ByteWriter &writer) {
  writer.number(result.ok);
  writer.text(result.data);
  writer.text(result.diagnostics);
  writer.number(result.messages.size());
  for (const Message &message : result.messages) {
    writeMessage(message, writer);
    writer.number(message.notes.size());
    for (const Message &note : message.notes)
      writeMessage(note, writer);
  }
  writer.number(result.variants.size());
  for (const Variant &variant : result.variants) {
    writer.text(variant.target);
    writer.text(variant.kind);
    writer.number(variant.offset);
    writer.number(variant.size);
    writer.text(variant.interface);
    writer.text(variant.statistics);
  }
}

std::optional<CompileResult> readResult(ByteReader &reader) {
  CompileResult result;
  result.ok = reader.number();
  result.data = reader.text();
  result.diagnostics = reader.text();
  for (size_t left = reader.count(); left && reader.isGood(); --left) {
    result.messages.push_back(readMessage(reader));
    for (size_t notes = reader.count(); notes && reader.isGood(); --notes)
      result.messages.back().notes.push_back(readMessage(reader));
  }
  for (size_t left = reader.count(); left && reader.isGood(); --left) {
    Variant variant;
    variant.target = reader.text();
    variant.kind = reader.text();
    variant.offset = reader.number();
    variant.size = reader.number();
    variant.interface = reader.text();
    variant.statistics = reader.text();
    if (variant.offset > result.data.size() || variant.size > result.data.size() - variant.offset)
      return std::nullopt;
    result.variants.push_back(std::move(variant));
  }
  if (!reader.isGood() || !reader.isAtEnd())
    return std::nullopt;
  return result;
}

void writeOptions(const CompileOptions &options, ByteWriter &writer) {
  writer.number(options.targets.size());
  for (const std::string &target : options.targets)
    writer.text(target);
  writer.text(options.emit);
  writer.number(options.subgroupSize);
  writer.number(options.optLevel);
  writer.number(options.debug);
  writer.number(options.stripQir);
  writer.text(options.divergent);
  writer.text(options.blocks);
  writer.text(options.bind);
  writer.text(options.remarks);
  writer.number(options.statistics);
}

void readOptions(ByteReader &reader, CompileOptions &options) {
  options.targets.resize(reader.count());
  for (std::string &target : options.targets)
    target = reader.text();
  options.emit = reader.text();
  options.subgroupSize = reader.number();
  options.optLevel = reader.number();
  options.debug = reader.number();
  options.stripQir = reader.number();
  options.divergent = reader.text();
  options.blocks = reader.text();
  options.bind = reader.text();
  options.remarks = reader.text();
  options.statistics = reader.number();
}

} // namespace qd

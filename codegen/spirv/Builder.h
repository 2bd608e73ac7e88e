//===- Builder.h - puts a SPIR-V module together ------------------------------------===//
//
// Purpose: ids, the cache of types and constants, decorations, capabilities, and the sections of a module in the
// order that SPIR-V demands. Knows nothing of QIR.
// Output: the same words for the same sequence of calls.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_SPIRV_BUILDER_H
#define QD_CODEGEN_SPIRV_BUILDER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <spirv/unified1/GLSL.std.450.h>
#include <spirv/unified1/spirv.hpp11>
#include <set>
#include <string>
#include <vector>

namespace qd::spirv {

using Id = uint32_t;
using spv::Capability; // not qd::Capability
using spv::Op;         // not mlir::Op

/// A phi of a loop's header: its value from the loop's continue block is set once that is known.
struct LoopPhi {
  Id id = 0;
  size_t backValue = 0; ///< position of that operand in the function's code
};

/// A place in a file, by Builder::getFile's number; none by default.
struct Line {
  uint32_t file = 0, line = 0, column = 0;

  bool operator!=(const Line &other) const {
    return file != other.file || line != other.line || column != other.column;
  }
};

class Builder {
public:
  /// `minorVersion`: 3 for SPIR-V 1.3.
  explicit Builder(unsigned minorVersion) : minorVersion(minorVersion) {}

  unsigned getMinorVersion() const { return minorVersion; }
  Id createId() { return nextId++; }

  //===--------------------------------------------------------------------===//
  // The module's head
  //===--------------------------------------------------------------------===//

  void require(spv::Capability capability) { capabilities.insert(unsigned(capability)); }
  /// Names an extension that core SPIR-V 1.`coreSince` made superfluous.
  void requireExtension(llvm::StringRef extension, unsigned coreSince);
  void setName(Id id, llvm::StringRef name);
  void decorate(Id id, spv::Decoration decoration, llvm::ArrayRef<uint32_t> literals = {});
  void addExecutionMode(Id function, spv::ExecutionMode mode, llvm::ArrayRef<uint32_t> literals = {});
  /// The file's number, from 1. Without files a module is the same but for its lines.
  uint32_t getFile(llvm::StringRef name);
  /// Names a file as the module's source.
  void setSource(llvm::StringRef file) { source = getFile(file); }
  void addEntryPoint(Id function, llvm::StringRef name, llvm::ArrayRef<Id> interface);

  //===--------------------------------------------------------------------===//
  // Types, constants, variables: one id each for equal ones
  //===--------------------------------------------------------------------===//

  Id getVoidType();
  Id getBoolType();
  Id getIntType(unsigned width);
  Id getFloatType(unsigned width);
  Id getVectorType(Id element, unsigned size);
  Id getArrayType(Id element, uint32_t size);
  Id getPairType(Id element);
  /// A block of one member, an array of unknown length with elements `stride` bytes apart. A type of its own each time:
  /// where a variable of a block is NonWritable, NVIDIA's driver (580) moves loads of others of that type past stores.
  Id createBufferType(Id element, unsigned stride);
  /// Blocks of other variants are other types.
  Id getBlockType(llvm::ArrayRef<Id> members, llvm::ArrayRef<uint32_t> offsets, uint32_t variant = 0);
  Id getPointerType(spv::StorageClass storage, Id pointee);

  Id getBool(bool value);
  /// A truth value that whoever loads the module may set; false otherwise.
  Id getSpecBool(uint32_t number);
  /// `value` modulo 2^width.
  Id getInt(unsigned width, uint64_t value);
  Id getFloat(unsigned width, uint64_t bits);
  Id getNull(Id type);
  /// A constant of parts that are constants.
  Id getComposite(Id type, llvm::ArrayRef<Id> parts);
  Id createVariable(spv::StorageClass storage, Id pointee, Id initializer = 0);

  //===--------------------------------------------------------------------===//
  // A function's code
  //===--------------------------------------------------------------------===//

  /// A kernel's.
  Id beginFunction();
  /// Of parameters, whose ids it appends, under an id that calls may have used before.
  void beginFunction(Id id, Id result, llvm::ArrayRef<Id> types, llvm::SmallVectorImpl<Id> &parameters);
  /// A variable of the function, or in it of each invocation.
  Id createLocalVariable(Id pointee);
  void endFunction();

  Id emit(spv::Op op, Id type, llvm::ArrayRef<uint32_t> operands);
  void emitVoid(spv::Op op, llvm::ArrayRef<uint32_t> operands = {});
  Id emitExt(GLSLstd450 function, Id type, llvm::ArrayRef<Id> operands);
  /// `value` of `type` where the current block was entered from `block`, one pair each.
  Id emitPhi(Id type, llvm::ArrayRef<std::pair<Id, Id>> valuesAndBlocks);
  LoopPhi emitLoopPhi(Id type, Id init, Id initBlock, Id continueBlock);
  void setBackValue(const LoopPhi &phi, Id value) { body[phi.backValue] = value; }

  /// The function that is called by a name of ours; `isNew` tells whether this call made its id.
  Id getHelper(llvm::StringRef name, bool &isNew);

  void startBlock(Id label);
  Id getBlock() const { return block; }

  /// Where the instructions that follow in the body come from.
  void setLine(Line from) { line = from; }
  Line getLine() const { return line; }

  /// Emits what `generate` emits at the function's start, so that it dominates all other code.
  Id emitInPrologue(llvm::function_ref<Id()> generate);

  /// The module's words, little-endian.
  std::string finish() const;

private:
  using Words = llvm::SmallVector<uint32_t, 0>;

  static void append(Words &section, spv::Op op, llvm::ArrayRef<uint32_t> operands);
  static void appendString(llvm::SmallVectorImpl<uint32_t> &words, llvm::StringRef text);
  /// The id of the type (`type` is 0) or constant; `isNew` tells whether this call made it. Types that differ by
  /// their decorations only differ in `variant`.
  Id getUnique(spv::Op op, Id type, llvm::ArrayRef<uint32_t> operands, uint32_t variant = 0, bool *isNew = nullptr);

  void placeLine();
  void appendFiles(Words &words) const;

  unsigned minorVersion;
  Id nextId = 1;
  uint32_t numBufferTypes = 0;
  Id glslId = 0;
  std::set<unsigned> capabilities;
  std::set<std::string> extensions;
  Words entryPoints, executionModes, names, decorations, globals, functions;
  llvm::StringMap<Id> uniqued, helpers;

  std::vector<std::string> files;
  uint32_t source = 0;
  Line line, placed; ///< wanted, and in force where the body ends
  Words header, prologue, body;
  Words *code = &body;
  Id block = 0;
};

} // namespace qd::spirv

#endif

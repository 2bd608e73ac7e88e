//===- Builder.cpp - puts a SPIR-V module together -----------------------------------===//

#include "codegen/spirv/Builder.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace spv;

namespace qd::spirv {

void Builder::append(Words &section, Op op, ArrayRef<uint32_t> operands) {
  section.push_back(uint32_t(operands.size() + 1) << WordCountShift | uint32_t(op));
  section.append(operands.begin(), operands.end());
}

/// A literal string: four bytes a word, ended by a zero byte.
void Builder::appendString(SmallVectorImpl<uint32_t> &words, StringRef text) {
  for (size_t i = 0; i <= text.size(); i += 4) {
    uint32_t word = 0;
    for (size_t k = 0; k < 4 && i + k < text.size(); ++k)
      word |= uint32_t(uint8_t(text[i + k])) << (8 * k);
    words.push_back(word);
  }
}

//===----------------------------------------------------------------------===//
// The module's head
//===----------------------------------------------------------------------===//

void Builder::requireExtension(StringRef extension, unsigned coreSince) {
  if (minorVersion < coreSince)
    extensions.insert(extension.str());
}

void Builder::setName(Id id, StringRef name) {
  SmallVector<uint32_t> operands{id};
  appendString(operands, name);
  append(names, Op::OpName, operands);
}

void Builder::decorate(Id id, Decoration decoration, ArrayRef<uint32_t> literals) {
  SmallVector<uint32_t> operands{id, uint32_t(decoration)};
  operands.append(literals.begin(), literals.end());
  append(decorations, Op::OpDecorate, operands);
}

void Builder::addExecutionMode(Id function, ExecutionMode mode, ArrayRef<uint32_t> literals) {
  SmallVector<uint32_t> operands{function, uint32_t(mode)};
  operands.append(literals.begin(), literals.end());
  append(executionModes, Op::OpExecutionMode, operands);
}

uint32_t Builder::getFile(StringRef name) {
  auto found = find(files, name);
  if (found == files.end())
    found = files.insert(found, name.str());
  return found - files.begin() + 1;
}

void Builder::addEntryPoint(Id function, StringRef name, ArrayRef<Id> interface) {
  SmallVector<uint32_t> operands{uint32_t(ExecutionModel::GLCompute), function};
  appendString(operands, name);
  operands.append(interface.begin(), interface.end());
  append(entryPoints, Op::OpEntryPoint, operands);
}

//===----------------------------------------------------------------------===//
// Types, constants, variables
//===----------------------------------------------------------------------===//

Id Builder::getUnique(Op op, Id type, ArrayRef<uint32_t> operands, uint32_t variant, bool *isNew) {
  SmallVector<uint32_t> key{uint32_t(op), variant, type};
  key.append(operands.begin(), operands.end());
  StringRef keyBytes(reinterpret_cast<const char *>(key.data()), key.size() * sizeof(uint32_t));
  auto [entry, inserted] = uniqued.try_emplace(keyBytes, 0);
  if (isNew)
    *isNew = inserted;
  if (!inserted)
    return entry->second;

  Id id = createId();
  SmallVector<uint32_t> words;
  if (type)
    words.push_back(type);
  words.push_back(id);
  words.append(operands.begin(), operands.end());
  append(globals, op, words);
  return entry->second = id;
}

Id Builder::getVoidType() { return getUnique(Op::OpTypeVoid, 0, {}); }
Id Builder::getBoolType() { return getUnique(Op::OpTypeBool, 0, {}); }
Id Builder::getIntType(unsigned width) { return getUnique(Op::OpTypeInt, 0, {width, /*signedness=*/0}); }
Id Builder::getFloatType(unsigned width) { return getUnique(Op::OpTypeFloat, 0, {width}); }
Id Builder::getVectorType(Id element, unsigned size) { return getUnique(Op::OpTypeVector, 0, {element, size}); }
Id Builder::getArrayType(Id element, uint32_t size) {
  return getUnique(Op::OpTypeArray, 0, {element, getInt(32, size)});
}
Id Builder::getPairType(Id element) { return getUnique(Op::OpTypeStruct, 0, {element, element}); }
Id Builder::getPointerType(StorageClass storage, Id pointee) {
  return getUnique(Op::OpTypePointer, 0, {uint32_t(storage), pointee});
}

Id Builder::createBufferType(Id element, unsigned stride) {
  bool isNew;
  Id array = getUnique(Op::OpTypeRuntimeArray, 0, {element}, /*variant=*/0, &isNew);
  if (isNew)
    decorate(array, Decoration::ArrayStride, stride);
  return getBlockType(array, 0u, ++numBufferTypes);
}

Id Builder::getBlockType(ArrayRef<Id> members, ArrayRef<uint32_t> offsets, uint32_t variant) {
  bool isNew;
  // The pair that has no layout is variant 0.
  Id block = getUnique(Op::OpTypeStruct, 0, members, variant + 1, &isNew);
  if (!isNew)
    return block;
  decorate(block, Decoration::Block);
  for (uint32_t member = 0; member < offsets.size(); ++member)
    append(decorations, Op::OpMemberDecorate, {block, member, uint32_t(Decoration::Offset), offsets[member]});
  return block;
}

Id Builder::getBool(bool value) {
  return getUnique(value ? Op::OpConstantTrue : Op::OpConstantFalse, getBoolType(), {});
}

Id Builder::getSpecBool(uint32_t number) {
  bool isNew;
  Id id = getUnique(Op::OpSpecConstantFalse, getBoolType(), {}, /*variant=*/number, &isNew);
  if (isNew)
    decorate(id, Decoration::SpecId, number);
  return id;
}

static SmallVector<uint32_t, 2> splitBits(unsigned width, uint64_t bits) {
  bits &= maskTrailingOnes<uint64_t>(width);
  if (width == 64)
    return {uint32_t(bits), uint32_t(bits >> 32)};
  return {uint32_t(bits)};
}

Id Builder::getInt(unsigned width, uint64_t value) {
  return getUnique(Op::OpConstant, getIntType(width), splitBits(width, value));
}

Id Builder::getFloat(unsigned width, uint64_t bits) {
  return getUnique(Op::OpConstant, getFloatType(width), splitBits(width, bits));
}

Id Builder::getNull(Id type) { return getUnique(Op::OpConstantNull, type, {}); }

Id Builder::getComposite(Id type, ArrayRef<Id> parts) { return getUnique(Op::OpConstantComposite, type, parts); }

Id Builder::createVariable(StorageClass storage, Id pointee, Id initializer) {
  Id type = getPointerType(storage, pointee), id = createId();
  SmallVector<uint32_t, 4> operands = {type, id, uint32_t(storage)};
  if (initializer)
    operands.push_back(initializer);
  append(globals, Op::OpVariable, operands);
  return id;
}

//===----------------------------------------------------------------------===//
// A function's code
//===----------------------------------------------------------------------===//

Id Builder::beginFunction() {
  Id id = createId();
  SmallVector<Id> none;
  beginFunction(id, getVoidType(), {}, none);
  return id;
}

void Builder::beginFunction(Id id, Id result, ArrayRef<Id> types, SmallVectorImpl<Id> &parameters) {
  SmallVector<uint32_t> signature{result};
  signature.append(types.begin(), types.end());
  Id type = getUnique(Op::OpTypeFunction, 0, signature);
  header.clear();
  prologue.clear();
  body.clear();
  line = placed = {};
  append(header, Op::OpFunction, {result, id, uint32_t(FunctionControlMask::MaskNone), type});
  for (Id parameterType : types) {
    parameters.push_back(createId());
    append(header, Op::OpFunctionParameter, {parameterType, parameters.back()});
  }
  block = createId();
  append(header, Op::OpLabel, block);
}

Id Builder::getHelper(StringRef name, bool &isNew) {
  auto [entry, inserted] = helpers.try_emplace(name, 0);
  isNew = inserted;
  if (inserted) {
    entry->second = createId();
    setName(entry->second, name);
  }
  return entry->second;
}

Id Builder::createLocalVariable(Id pointee) {
  Id type = getPointerType(StorageClass::Function, pointee), id = createId();
  append(header, Op::OpVariable, {type, id, uint32_t(StorageClass::Function)});
  return id;
}

void Builder::endFunction() {
  for (const Words *part : {&header, &prologue, &body})
    functions.append(part->begin(), part->end());
  append(functions, Op::OpFunctionEnd, {});
}

/// A line is in force until the next one, or the block's end.
void Builder::placeLine() {
  if (code != &body || !(line != placed))
    return;
  if (line.file)
    append(body, Op::OpLine, {line.file, line.line, line.column});
  else
    append(body, Op::OpNoLine, {});
  placed = line;
}

Id Builder::emit(Op op, Id type, ArrayRef<uint32_t> operands) {
  placeLine();
  Id id = createId();
  SmallVector<uint32_t> words{type, id};
  words.append(operands.begin(), operands.end());
  append(*code, op, words);
  return id;
}

void Builder::emitVoid(Op op, ArrayRef<uint32_t> operands) {
  placeLine();
  append(*code, op, operands);
}

Id Builder::emitExt(GLSLstd450 function, Id type, ArrayRef<Id> operands) {
  if (!glslId)
    glslId = createId();
  SmallVector<uint32_t> words{glslId, uint32_t(function)};
  words.append(operands.begin(), operands.end());
  return emit(Op::OpExtInst, type, words);
}

Id Builder::emitPhi(Id type, ArrayRef<std::pair<Id, Id>> valuesAndBlocks) {
  SmallVector<uint32_t> words;
  for (auto [value, from] : valuesAndBlocks)
    words.append({value, from});
  return emit(Op::OpPhi, type, words);
}

LoopPhi Builder::emitLoopPhi(Id type, Id init, Id initBlock, Id continueBlock) {
  Id id = emit(Op::OpPhi, type, {init, initBlock, 0, continueBlock});
  return {id, body.size() - 2};
}

void Builder::startBlock(Id label) {
  append(*code, Op::OpLabel, label);
  placed = {};
  block = label;
}

Id Builder::emitInPrologue(function_ref<Id()> generate) {
  Words *previous = std::exchange(code, &prologue);
  Id id = generate();
  code = previous;
  return id;
}

/// The names of files have the ids behind all others.
void Builder::appendFiles(Words &words) const {
  for (auto [number, name] : enumerate(files)) {
    SmallVector<uint32_t> operands{nextId + uint32_t(number)};
    appendString(operands, name);
    append(words, Op::OpString, operands);
  }
  if (source)
    append(words, Op::OpSource, {uint32_t(SourceLanguage::Unknown), /*version=*/0, nextId + source - 1});
}

std::string Builder::finish() const {
  Id bound = nextId + files.size();
  Words words{MagicNumber, 1u << 16 | minorVersion << 8, /*generator=*/0, bound, /*schema=*/0};
  for (unsigned capability : capabilities)
    append(words, Op::OpCapability, capability);
  for (const std::string &extension : extensions) {
    SmallVector<uint32_t> operands;
    appendString(operands, extension);
    append(words, Op::OpExtension, operands);
  }
  if (glslId) {
    SmallVector<uint32_t> operands{glslId};
    appendString(operands, "GLSL.std.450");
    append(words, Op::OpExtInstImport, operands);
  }
  append(words, Op::OpMemoryModel, {uint32_t(AddressingModel::Logical), uint32_t(MemoryModel::GLSL450)});
  for (const Words *section : {&entryPoints, &executionModes})
    words.append(section->begin(), section->end());
  appendFiles(words);
  for (const Words *section : {&names, &decorations, &globals})
    words.append(section->begin(), section->end());
  size_t at = words.size();
  words.append(functions.begin(), functions.end());
  for (; at < words.size(); at += words[at] >> WordCountShift)
    if (Op(words[at] & OpCodeMask) == Op::OpLine)
      words[at + 1] += nextId - 1;

  std::string bytes(words.size() * sizeof(uint32_t), '\0');
  for (size_t i = 0; i < words.size(); ++i)
    support::endian::write32le(&bytes[i * sizeof(uint32_t)], words[i]);
  return bytes;
}

} // namespace qd::spirv

//===- DebugInfo.cpp - the source's lines in LLVM IR ----------------------------------------===//

#include "codegen/DebugInfo.h"

#include "ir/Place.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace qd {

DebugInfo::DebugInfo(ModuleOp source, llvm::Module &module, bool isOptimised)
    : builder(module), isOptimised(isOptimised) {
  constexpr unsigned dwarfVersion = 5;
  bool isPTX = module.getTargetTriple().isNVPTX();
  // PTX has no folders, and assemblers take the one that they run in where the text names none.
  folder = isPTX ? "" : ".";
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  module.addModuleFlag(llvm::Module::Max, "Dwarf Version", dwarfVersion);
  // PTX has lines, which ptxas makes tables of; with more than these it would not optimise.
  auto kind = isPTX ? llvm::DICompileUnit::DebugDirectivesOnly : llvm::DICompileUnit::FullDebug;
  FileLineColRange place = findPlace(source.getLoc());
  // Debuggers know no QIR; of what they know C says the least.
  unit = builder.createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C11),
                                   getFile(place ? place.getFilename().strref() : StringRef("qd")), "qdc", isOptimised,
                                   /*Flags=*/"", /*RV=*/0, /*SplitName=*/"", kind);
}

llvm::DIFile *DebugInfo::getFile(StringRef name) { return builder.createFile(name, folder); }

llvm::DISubprogram *DebugInfo::create(StringRef name, llvm::DIFile *file, unsigned line) {
  auto flags = llvm::DISubprogram::SPFlagDefinition;
  if (isOptimised)
    flags |= llvm::DISubprogram::SPFlagOptimized;
  llvm::DISubroutineType *type = builder.createSubroutineType(builder.getOrCreateTypeArray({}));
  return builder.createFunction(file, name, /*LinkageName=*/"", file, line, type, line, llvm::DINode::FlagZero, flags);
}

void DebugInfo::begin(StringRef name, Location location, llvm::Function &function) {
  FileLineColRange place = findPlace(location);
  function.setSubprogram(
      create(name, place ? getFile(place.getFilename()) : unit->getFile(), place ? place.getStartLine() : 0));
  resume(function);
}

void DebugInfo::resume(llvm::Function &function) {
  kernel = function.getSubprogram();
  places.clear();
}

/// A function that is inlined wherever it is called. One without a name is what a frontend inlined.
llvm::DISubprogram *DebugInfo::getCallee(StringRef name, StringRef file) {
  llvm::DISubprogram *&callee = callees[{name, file}];
  if (!callee)
    callee = create(name, getFile(file), /*line=*/0);
  return callee;
}

/// The place of `location` in the function `within`, null for the callee of a call that the place of names; which was
/// inlined at `call`, null for none. Null for no place.
llvm::DILocation *DebugInfo::locate(Location location, llvm::DISubprogram *within, llvm::DILocation *call) {
  if (auto stack = dyn_cast<CallSiteLoc>(location)) {
    llvm::DILocation *caller = locate(stack.getCaller(), within, call);
    return caller ? locate(stack.getCallee(), /*within=*/nullptr, caller) : locate(stack.getCallee(), within, call);
  }
  if (auto named = dyn_cast<NameLoc>(location))
    return locate(named.getChildLoc(), within, call);
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    auto name = dyn_cast_or_null<StringAttr>(fused.getMetadata());
    for (Location part : fused.getLocations()) {
      FileLineColRange place = findPlace(part);
      if (!place)
        continue;
      if (!within && name)
        within = getCallee(name, place.getFilename());
      return locate(part, within, call);
    }
    return nullptr;
  }
  auto place = dyn_cast<FileLineColRange>(location);
  if (!place)
    return nullptr;
  if (!within)
    within = getCallee("", place.getFilename());
  llvm::DILocalScope *scope = within;
  if (place.getFilename() != within->getFilename())
    scope = builder.createLexicalBlockFile(scope, getFile(place.getFilename()));
  return llvm::DILocation::get(scope->getContext(), place.getStartLine(), place.getStartColumn(), scope, call);
}

llvm::DebugLoc DebugInfo::get(Location location) {
  auto [found, isNew] = places.try_emplace(location, nullptr);
  if (isNew) {
    llvm::DILocation *place = locate(location, kernel, /*call=*/nullptr);
    found->second = place ? place : llvm::DILocation::get(kernel->getContext(), 0, 0, kernel);
  }
  return found->second;
}

} // namespace qd

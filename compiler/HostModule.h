//===- HostModule.h - modules for the devices of this machine -----------------------------------------------------===//
//
// Purpose: what qdcHostCompile makes: a module that cpu, interp or sim runs. Another process can make it first, which
// shows whether making it ends a process, and hand over the cpu device's machine code.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_HOSTMODULE_H
#define QD_COMPILER_HOSTMODULE_H

#include "compiler/Session.h"

#include "codegen/HostProgram.h"

namespace qd {

struct HostRequest {
  /// "cpu", "interp", "sim:CHIP".
  std::string device;
  /// The interpreter's, as in HostOptions.
  std::string checks;
  /// Subgroup size, level, blocks, bind, caching and limits; no targets and no output.
  CompileOptions options;
};

struct HostModule {
  Session session; ///< keeps the module alive that the interpreter runs
  std::string interface;
  std::unique_ptr<HostProgram> program;
};

/// Makes a module in this process; false where the session has errors. The request fills in level and checks of
/// `options`.
bool loadHostModule(HostModule &host, llvm::StringRef qir, llvm::StringRef name, const HostRequest &request,
                    HostOptions options);

/// The same and all machine code, which is the data of the result.
CompileResult prepareHostModule(llvm::StringRef qir, llvm::StringRef name, const HostRequest &request);

/// Where the request's caching keeps machine code; null for nowhere, as for devices without any.
std::shared_ptr<CodeStore> getHostStore(const HostRequest &request);
/// The machine code in the data of such a result, for HostOptions.
std::shared_ptr<CodeStore> readHostCode(llvm::StringRef data);

} // namespace qd

#endif

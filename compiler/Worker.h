//===- Worker.h - compiles in a child process --------------------------------------------------===//
//
// Purpose: contains what a compile can do to its process: aborts, crashes, exits, too much time and too much memory end
// as errors. Workers are `qdc --worker`, started by posix_spawn, which is safe where the host has threads. They are
// used for one compile after the other and go when the host goes, however it does.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_WORKER_H
#define QD_COMPILER_WORKER_H

#include "compiler/Compiler.h"
#include "compiler/HostModule.h"

namespace qd {

/// The host's half. Thread-safe: as many workers run as threads call.
CompileResult compileInWorker(std::string_view qir, std::string_view name, const CompileOptions &options);
/// prepareHostModule there.
CompileResult prepareInWorker(llvm::StringRef qir, llvm::StringRef name, const HostRequest &request);

/// The worker's half: serves requests that come by the socket at descriptor 0 until the host closes it. The exit
/// status.
int runWorker();

} // namespace qd

#endif

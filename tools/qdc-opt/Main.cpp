//===- Main.cpp - qdc-opt: runs single passes on textual QIR -------------------------===//
//
// Purpose: the developer's driver for passes and their tests; users compile with qdc.
//
//===----------------------------------------------------------------------===//

#include "ir/Dialect.h"
#include "passes/Passes.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  qd::registerPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::DialectRegistry registry;
  qd::registerDialects(registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "qdc-opt: runs passes on QIR\n", registry));
}

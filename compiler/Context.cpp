//===- Context.cpp - the interface's version ------------------------------------------===//

#include "compiler/qdc.h"

uint32_t qdcApiVersion(void) { return QDC_API_VERSION; }

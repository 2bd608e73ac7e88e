//===- CApiBuilder.cpp - the C interface of the builder ----------------------------------------------===//

#include "compiler/Builder.h"
#include "compiler/qdc.h"

struct qdcBuilder_ {
  qd::Builder builder;
  std::string text;
};

/// What is null is empty, which the builder refuses where it needs a text.
static std::string_view read(const char *text) { return text ? text : ""; }

static std::vector<qd::Value> readValues(const qdcValue *values, size_t count) {
  std::vector<qd::Value> converted;
  for (size_t i = 0; values && i < count; ++i)
    converted.push_back({values[i]});
  return converted;
}

static std::vector<std::string> readTypes(const char *const *types, size_t count) {
  std::vector<std::string> converted;
  for (size_t i = 0; i < count; ++i)
    converted.emplace_back(read(types ? types[i] : nullptr));
  return converted;
}

static void write(const std::vector<qd::Value> &values, qdcValue *into) {
  for (size_t i = 0; into && i < values.size(); ++i)
    into[i] = values[i].number;
}

qdcBuilder qdcBuilderCreate(void) { return new qdcBuilder_; }

void qdcBuilderFree(qdcBuilder builder) { delete builder; }

void qdcBuilderSetLocation(qdcBuilder builder, const char *file, uint32_t line, uint32_t column) {
  builder->builder.setLocation(read(file), line, column);
}

void qdcBuilderBeginKernel(qdcBuilder builder, const char *name, const char *const *names, const char *const *types,
                           const uint32_t *access, size_t numArgs, const uint32_t *block, size_t numDims,
                           const char *attributes, qdcValue *values) {
  std::vector<qd::KernelArgument> arguments;
  for (size_t i = 0; i < numArgs; ++i)
    arguments.push_back({std::string(read(names ? names[i] : nullptr)), std::string(read(types ? types[i] : nullptr)),
                         access ? int32_t(access[i]) : 0, 1});
  std::vector<int32_t> extents;
  if (block)
    extents.assign(block, block + numDims);
  write(builder->builder.beginKernel(read(name), arguments, extents, read(attributes)), values);
}

void qdcBuilderEndKernel(qdcBuilder builder) { builder->builder.endKernel(); }

void qdcBuilderOp(qdcBuilder builder, const char *name, const qdcValue *operands, size_t numOperands,
                  const char *attributes, const char *const *resultTypes, size_t numResults, qdcValue *results) {
  write(builder->builder.op(read(name), readValues(operands, numOperands), readTypes(resultTypes, numResults),
                            read(attributes)),
        results);
}

void qdcBuilderBeginOp(qdcBuilder builder, const char *name, const qdcValue *operands, size_t numOperands,
                       const char *attributes, const char *const *resultTypes, size_t numResults, qdcValue *results) {
  write(builder->builder.beginOp(read(name), readValues(operands, numOperands), readTypes(resultTypes, numResults),
                                 read(attributes)),
        results);
}

void qdcBuilderBeginRegion(qdcBuilder builder, const char *const *types, size_t numArgs, qdcValue *arguments) {
  write(builder->builder.beginRegion(readTypes(types, numArgs)), arguments);
}

void qdcBuilderEndRegion(qdcBuilder builder) { builder->builder.endRegion(); }

void qdcBuilderEndOp(qdcBuilder builder) { builder->builder.endOp(); }

qdcValue qdcBuilderInteger(qdcBuilder builder, const char *type, int64_t value) {
  return builder->builder.integer(read(type), value).number;
}

qdcValue qdcBuilderFloat(qdcBuilder builder, const char *type, double value) {
  return builder->builder.floating(read(type), value).number;
}

const char *qdcBuilderFinish(qdcBuilder builder, size_t *size) {
  builder->text = builder->builder.finish();
  *size = builder->text.size();
  return builder->text.c_str();
}

const char *qdcBuilderError(qdcBuilder builder) { return builder->builder.getError().c_str(); }

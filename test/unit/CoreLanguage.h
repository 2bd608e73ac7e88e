//===- CoreLanguage.h - every op with every type, as text ---------------------------===//
//
// Kernels that together hold the core language: what a backend has to compile or to refuse with a diagnostic.
//
//===----------------------------------------------------------------------===//

#ifndef QD_TEST_UNIT_CORELANGUAGE_H
#define QD_TEST_UNIT_CORELANGUAGE_H

#include "ir/Kind.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace qd::test {

using llvm::ArrayRef, llvm::StringRef, llvm::enumerate, llvm::formatv;

inline constexpr const char *integers[] = {"i1", "i8", "i16", "i32", "i64"};
inline constexpr const char *floats[] = {"f16", "bf16", "f32", "f64"};

/// Text of kernels, each with a number for a name.
class Kernels {
public:
  /// A kernel that stores %r, of type `result`, computed from %a and %b of type `type`.
  void add(StringRef type, StringRef result, StringRef body, StringRef block = "256") {
    std::string kernel = formatv(R"(
qd.kernel @k{0}(%x: !qd.buffer<{1}>, %y: !qd.buffer<{2}>, %b: {1}) block({4}) {{
  %i = qd.global_thread_id x : i32
  %a = qd.load %x[%i] : !qd.buffer<{1}>
  {3}
  qd.store %r, %y[%i] : !qd.buffer<{2}>
  qd.return
}
)",
                                 number++, type, result, body, block);
    text += kernel;
    all.push_back(std::move(kernel));
  }

  std::string text;             ///< of all kernels
  std::vector<std::string> all; ///< each by itself
  unsigned number = 0;
};

/// Appends a comparison whose result joins those before it.
inline void addCompare(std::string &text, const char *op, const char *predicate, const char *type, unsigned i) {
  text += formatv("%c{0} = arith.{1} {2}, %a, %b : {3}\n%p{4} = arith.xori %p{0}, %c{0} : i1\n",
                  i, op, predicate, type, i + 1);
}

inline void addElementwise(Kernels &kernels) {
  for (const char *type : integers) {
    for (const char *op : {"addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi",
                           "ceildivui", "andi", "ori", "xori", "shli", "shrsi", "shrui", "minsi", "minui", "maxsi",
                           "maxui"})
      kernels.add(type, type, formatv("%r = arith.{0} %a, %b : {1}", op, type).str());
    std::string compare = "%p0 = arith.constant false\n";
    for (auto [i, predicate] : enumerate(ArrayRef{"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"}))
      addCompare(compare, "cmpi", predicate, type, i);
    kernels.add(type, "i1", compare + "%r = arith.ori %p10, %p10 : i1");
    for (const char *op : {"ctpop", "ctlz", "cttz", "absi"})
      kernels.add(type, type, formatv("%r = math.{0} %a : {1}", op, type).str());
    for (const char *op : {"mulsi_extended", "mului_extended"})
      kernels.add(type, type, formatv("%l, %r = arith.{0} %a, %b : {1}", op, type).str());
    kernels.add(type, "i1", formatv("%l, %r = arith.addui_extended %a, %b : {0}, i1", type).str());
    for (const char *to : floats)
      for (const char *op : {"sitofp", "uitofp"})
        kernels.add(type, to, formatv("%r = arith.{0} %a : {1} to {2}", op, type, to).str());
  }
  for (unsigned from = 0; from < std::size(integers); ++from)
    for (unsigned to = from + 1; to < std::size(integers); ++to) {
      for (const char *op : {"extsi", "extui"})
        kernels.add(integers[from], integers[to],
                    formatv("%r = arith.{0} %a : {1} to {2}", op, integers[from], integers[to]).str());
      kernels.add(integers[to], integers[from],
                  formatv("%r = arith.trunci %a : {0} to {1}", integers[to], integers[from]).str());
    }
  for (const char *type : floats) {
    for (const char *op : {"addf", "subf", "mulf", "divf", "minnumf", "maxnumf", "minimumf", "maximumf"})
      kernels.add(type, type, formatv("%r = arith.{0} %a, %b : {1}", op, type).str());
    kernels.add(type, type, formatv("%r = arith.negf %a : {0}", type).str());
    kernels.add(type, type, formatv("%r = math.copysign %a, %b : {0}", type).str());
    kernels.add(type, type, formatv("%r = math.fma %a, %b, %a : {0}", type).str());
    for (const char *op : {"absf", "sqrt", "floor", "ceil", "trunc", "round", "roundeven"})
      kernels.add(type, type, formatv("%r = math.{0} %a : {1}", op, type).str());
    for (const char *op : {"isnan", "isinf", "isfinite", "isnormal"})
      kernels.add(type, "i1", formatv("%r = math.{0} %a : {1}", op, type).str());
    std::string compare = "%p0 = arith.constant false\n";
    for (auto [i, predicate] : enumerate(ArrayRef{"oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge",
                                                  "ult", "ule", "une", "uno"}))
      addCompare(compare, "cmpf", predicate, type, i);
    kernels.add(type, "i1", compare + "%r = arith.andi %p14, %p14 : i1");
    for (const char *to : integers)
      for (const char *op : {"fptosi", "fptoui"})
        kernels.add(type, to, formatv("%r = arith.{0} %a : {1} to {2}", op, type, to).str());
  }
  for (auto [narrow, wide] :
       {std::pair("f16", "f32"), {"f16", "f64"}, {"bf16", "f32"}, {"bf16", "f64"}, {"f32", "f64"}}) {
    kernels.add(narrow, wide, formatv("%r = arith.extf %a : {0} to {1}", narrow, wide).str());
    kernels.add(wide, narrow, formatv("%r = arith.truncf %a : {0} to {1}", wide, narrow).str());
  }
  for (auto [from, to] : {std::pair("i16", "f16"), {"i16", "bf16"}, {"i32", "f32"}, {"i64", "f64"}}) {
    kernels.add(from, to, formatv("%r = arith.bitcast %a : {0} to {1}", from, to).str());
    kernels.add(to, from, formatv("%r = arith.bitcast %a : {0} to {1}", to, from).str());
  }
}

inline void addMemoryAndControl(Kernels &kernels) {
  for (ArrayRef<const char *> types : {ArrayRef(integers), ArrayRef(floats)})
    for (StringRef type : types) {
      kernels.add(type, type, formatv(R"(
  %n = qd.size %x : !qd.buffer<{0}> -> i32
  %in = arith.cmpi slt, %i, %n : i32
  %r = qd.load %x[%i] if %in else %b : !qd.buffer<{0}>
  qd.store %r, %y[%i] if %in : !qd.buffer<{0}>)", type).str());
      kernels.add(type, type, formatv(R"(
  %s = qd.shared.alloc : !qd.shared<4x64x{0}>
  %t = qd.thread_id x : i32
  %c64 = arith.constant 64 : i32
  %row = arith.divui %t, %c64 : i32
  %column = arith.remui %t, %c64 : i32
  qd.store %a, %s[%row, %column] : !qd.shared<4x64x{0}>
  qd.block.sync
  %r = qd.load %s[0, %column] : !qd.shared<4x64x{0}>)", type).str());
      kernels.add(type, type, formatv(R"(
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %block = qd.block_id x : i32
  %p = arith.cmpi sgt, %i, %block : i32
  %v = scf.if %p -> {0} {{
    scf.yield %a : {0}
  } else {{
    scf.yield %b : {0}
  }
  %l = scf.for %j = %c0 to %block step %c1 iter_args(%acc = %v) -> ({0}) : i32 {{
    %w = qd.subgroup.shuffle_xor %acc, 1 : {0}
    scf.yield %w : {0}
  }
  %r = scf.while (%w = %l) : ({0}) -> {0} {{
    %all = qd.subgroup.all %p
    scf.condition(%all) %w : {0}
  } do {{
  ^bb0(%w: {0}):
    %z = qd.subgroup.shuffle_up %w, 3 : {0}
    scf.yield %z : {0}
  })", type).str());
    }
}

inline void addVotes(Kernels &kernels, unsigned size) {
  for (unsigned tile = 1; tile <= size; tile *= 2)
    for (const char *op : {"all", "any"})
      kernels.add("i1", "i1", formatv("%r = qd.subgroup.{0} %a tile({1})", op, tile).str());
  kernels.add("i1", "i64", "%r = qd.subgroup.ballot %a : i64", "100");
  kernels.add("i1", "i1", "%r = qd.subgroup.all %a", "100");
  kernels.add("i1", "i1", "%e = qd.subgroup.elect tile(8)\n %r = arith.andi %e, %a : i1");
}

inline void addReductions(Kernels &kernels) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<QDDialect>();
  for (ArrayRef<const char *> types : {ArrayRef(integers), ArrayRef(floats)})
    for (const char *type : types)
      for (unsigned kind = 0; kind <= getMaxEnumValForKind(); ++kind) {
        if (!isLegalKind(Kind(kind), mlir::parseType(type, &context)))
          continue;
        auto add = [&](const char *op, unsigned tile, const char *block) {
          std::string clause = tile ? formatv(" tile({0})", tile).str() : "";
          kernels.add(type, type, formatv("%r = qd.subgroup.{0} {1} %a{2} : {3}", op, stringifyKind(Kind(kind)),
                                          clause, type).str(), block);
        };
        add("reduce", 0, "256");
        add("reduce_all", 0, "256");
        add("reduce_all", 16, "4, 8, 2");
        add("reduce", 0, "200");
        add("reduce_all", 0, "200");
      }
}

/// Every kind on every type, of buffers and shared arrays, with and without a reader of the old value.
inline void addAtomics(Kernels &kernels) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<QDDialect>();
  for (ArrayRef<const char *> types : {ArrayRef(integers), ArrayRef(floats)})
    for (const char *type : types) {
      for (unsigned kind = 0; kind <= getMaxEnumValForAtomicKind(); ++kind) {
        if (!isLegalAtomicKind(AtomicKind(kind), mlir::parseType(type, &context)))
          continue;
        kernels.add(type, type, formatv(R"(
  %s = qd.shared.alloc : !qd.shared<256x{0}>
  %t = qd.thread_id x : i32
  qd.atomic_store %b, %s[%t] : !qd.shared<256x{0}>
  %v = qd.atomic_rmw {1} %a, %s[%t] acquire : !qd.shared<256x{0}>
  %w = qd.atomic_rmw {1} %a, %s[%t] scope(subgroup) : !qd.shared<256x{0}>
  %r = qd.atomic_rmw {1} %v, %y[%i] acq_rel : !qd.buffer<{0}>
  %u = qd.atomic_rmw {1} %v, %y[0] release scope(block) : !qd.buffer<{0}>
  qd.block.mem_fence)", type, stringifyAtomicKind(AtomicKind(kind))).str());
      }
      kernels.add(type, type, formatv(R"(
  %s = qd.shared.alloc : !qd.shared<256x{0}>
  %t = qd.thread_id x : i32
  %c0 = arith.constant 0 : i32
  %p = arith.cmpi sgt, %t, %c0 : i32
  qd.atomic_store %b, %s[%t] if %p release : !qd.shared<256x{0}>
  %v = qd.atomic_load %s[%t] if %p else %a acquire : !qd.shared<256x{0}>
  %o, %ok = qd.atomic_cas %v, %b, %y[%i] if %p acq_rel scope(block) : !qd.buffer<{0}>
  %q, %done = qd.atomic_cas %v, %b, %s[%t] : !qd.shared<256x{0}>
  %w = qd.load volatile %x[0] : !qd.buffer<{0}>
  qd.store volatile %w, %x[1] if %ok : !qd.buffer<{0}>
  qd.grid.mem_fence
  %r = arith.select %done, %o, %w : {0})", type).str());
    }
}

} // namespace qd::test

#endif

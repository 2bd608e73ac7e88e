// Rows.h - the kernels of this folder as a C++ programmer writes them for a processor.
//
// Each function does the elements [begin, end) of one worker's share, a multiple of the row's length. Compiled for
// the machine at hand (-march=native), as the cpu device compiles its kernels.
#ifndef QD_BENCH_CPU_ROWS_H
#define QD_BENCH_CPU_ROWS_H

#include <cstdint>

/// Inputs `a` and `b`, outputs `c` and `d`.
struct Arrays {
  void *a, *b, *c, *d;
};

using Row = void (*)(const Arrays &arrays, int64_t begin, int64_t end);

struct NamedRow {
  const char *bench, *name;
  Row run;
};

extern const NamedRow rows[];
extern const unsigned numRows;

#endif // QD_BENCH_CPU_ROWS_H

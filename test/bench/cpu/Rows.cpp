// Rows.cpp - plain loops with `omp simd`, and vectors of the compiler's.
#include "Rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace {

template <typename T> T *to(void *array) { return static_cast<T *>(array); }

/// A register of 64 bytes; on machines with narrower ones, several.
template <typename T> struct Vector {
  typedef T Type __attribute__((vector_size(64), aligned(64)));
  static constexpr int size = 64 / sizeof(T);
  static const Type &at(const T *p) { return *reinterpret_cast<const Type *>(p); }
  static Type &at(T *p) { return *reinterpret_cast<Type *>(p); }
};

template <typename V, int... sources> V pick(V a, V b) { return __builtin_shufflevector(a, b, sources...); }

float sumOf(Vector<float>::Type v) {
#ifdef __AVX512F__
  return _mm512_reduce_add_ps(__m512(v));
#else
  typedef float Half __attribute__((vector_size(32)));
  typedef float Quarter __attribute__((vector_size(16)));
  Half h = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  Quarter q = __builtin_shufflevector(h, h, 0, 1, 2, 3) + __builtin_shufflevector(h, h, 4, 5, 6, 7);
  return (q[0] + q[2]) + (q[1] + q[3]);
#endif
}
double sumOf(Vector<double>::Type v) {
#ifdef __AVX512F__
  return _mm512_reduce_add_pd(__m512d(v));
#else
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
#endif
}
int32_t sumOf(Vector<int32_t>::Type v) { return __builtin_reduce_add(v); }

//===----------------------------------------------------------------------===//
// Sums and quotients
//===----------------------------------------------------------------------===//

template <typename T, int width> void sumLoop(const Arrays &arrays, int64_t begin, int64_t end) {
  const T *__restrict x = to<T>(arrays.a);
  T *__restrict o = to<T>(arrays.c);
  for (int64_t row = begin / width; row < end / width; ++row) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int k = 0; k < width; ++k)
      sum += x[row * width + k];
    o[row] = sum;
  }
}

template <typename T, int width> void sumVector(const Arrays &arrays, int64_t begin, int64_t end) {
  using V = Vector<T>;
  const T *__restrict x = to<T>(arrays.a);
  T *__restrict o = to<T>(arrays.c);
  for (int64_t row = begin / width; row < end / width; ++row) {
    typename V::Type sum = V::at(x + row * width);
    for (int k = V::size; k < width; k += V::size)
      sum += V::at(x + row * width + k);
    o[row] = sumOf(sum);
  }
}

template <int width> void normLoop(const Arrays &arrays, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; row += width) {
    const float *__restrict x = to<float>(arrays.a) + row;
    float *__restrict o = to<float>(arrays.c) + row;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int k = 0; k < width; ++k)
      sum += x[k];
    float inverse = 1.0f / sum;
    for (int k = 0; k < width; ++k)
      o[k] = x[k] * inverse;
  }
}

template <int width> void normVector(const Arrays &arrays, int64_t begin, int64_t end) {
  using V = Vector<float>;
  for (int64_t row = begin; row < end; row += width) {
    const float *__restrict x = to<float>(arrays.a) + row;
    float *__restrict o = to<float>(arrays.c) + row;
    V::Type sum = V::at(x);
    for (int k = V::size; k < width; k += V::size)
      sum += V::at(x + k);
    float inverse = 1.0f / sumOf(sum);
    for (int k = 0; k < width; k += V::size)
      V::at(o + k) = V::at(x + k) * inverse;
  }
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

void scanLoop(const Arrays &arrays, int64_t begin, int64_t end) {
  const uint32_t *__restrict x = to<uint32_t>(arrays.a);
  uint32_t *__restrict o = to<uint32_t>(arrays.c);
  for (int64_t row = begin; row < end; row += 32) {
    uint32_t sum = 0;
    for (int k = 0; k < 32; ++k)
      o[row + k] = sum += x[row + k];
  }
}

Vector<int32_t>::Type scanned(Vector<int32_t>::Type v) {
  using T = Vector<int32_t>::Type;
  const T zero = {};
  v += pick<T, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14>(v, zero);
  v += pick<T, 16, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13>(v, zero);
  v += pick<T, 16, 16, 16, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11>(v, zero);
  v += pick<T, 16, 16, 16, 16, 16, 16, 16, 16, 0, 1, 2, 3, 4, 5, 6, 7>(v, zero);
  return v;
}

void scanVector(const Arrays &arrays, int64_t begin, int64_t end) {
  using V = Vector<int32_t>;
  const int32_t *__restrict x = to<int32_t>(arrays.a);
  int32_t *__restrict o = to<int32_t>(arrays.c);
  for (int64_t row = begin; row < end; row += 32) {
    V::Type low = scanned(V::at(x + row)), high = scanned(V::at(x + row + 16));
    V::at(o + row) = low;
    V::at(o + row + 16) = high + low[15];
  }
}

//===----------------------------------------------------------------------===//
// Sorts of 32 pairs
//===----------------------------------------------------------------------===//

struct Pairs {
  const float *keys;
  const int32_t *values;
  float *sortedKeys;
  int32_t *sortedValues;

  explicit Pairs(const Arrays &arrays)
      : keys(to<float>(arrays.a)), values(to<int32_t>(arrays.b)), sortedKeys(to<float>(arrays.c)),
        sortedValues(to<int32_t>(arrays.d)) {}
};

/// A bitonic network over one row.
void sortRow(const Arrays &arrays, int64_t begin, int64_t end) {
  Pairs p(arrays);
  for (int64_t row = begin; row < end; row += 32) {
    float k[32], nk[32];
    int32_t v[32], nv[32];
    std::memcpy(k, p.keys + row, sizeof k);
    std::memcpy(v, p.values + row, sizeof v);
    for (int run = 2; run <= 32; run *= 2)
      for (int step = run / 2; step; step /= 2) {
        for (int i = 0; i < 32; ++i) {
          bool takesSmaller = !(i & step) == !(i & run);
          float other = k[i ^ step];
          bool takes = takesSmaller ? other < k[i] : other > k[i];
          nk[i] = takes ? other : k[i];
          nv[i] = takes ? v[i ^ step] : v[i];
        }
        std::memcpy(k, nk, sizeof k);
        std::memcpy(v, nv, sizeof v);
      }
    std::memcpy(p.sortedKeys + row, k, sizeof k);
    std::memcpy(p.sortedValues + row, v, sizeof v);
  }
}

/// The same over 16 rows at once, a row each lane.
void sortRows(const Arrays &arrays, int64_t begin, int64_t end) {
  using K = Vector<float>;
  using V = Vector<int32_t>;
  Pairs p(arrays);
  for (int64_t first = begin; first < end; first += 16 * 32) {
    K::Type k[32];
    V::Type v[32];
#ifdef __AVX512F__
    const __m512i places = _mm512_mullo_epi32(
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_epi32(32));
    for (int i = 0; i < 32; ++i) {
      k[i] = K::Type(_mm512_i32gather_ps(places, p.keys + first + i, 4));
      v[i] = V::Type(_mm512_i32gather_epi32(places, p.values + first + i, 4));
    }
#else
    for (int i = 0; i < 32; ++i)
      for (int row = 0; row < 16; ++row) {
        k[i][row] = p.keys[first + row * 32 + i];
        v[i][row] = p.values[first + row * 32 + i];
      }
#endif
    for (int run = 2; run <= 32; run *= 2)
      for (int step = run / 2; step; step /= 2)
        for (int pair = 0; pair < 16; ++pair) {
          int i = (pair & (step - 1)) | ((pair & ~(step - 1)) << 1), j = i | step;
          int low = i & run ? j : i, high = i & run ? i : j;
          K::Type a = k[low], b = k[high];
          V::Type va = v[low], vb = v[high], turned = b < a;
          k[low] = turned ? b : a;
          k[high] = turned ? a : b;
          v[low] = turned ? vb : va;
          v[high] = turned ? va : vb;
        }
#ifdef __AVX512F__
    for (int i = 0; i < 32; ++i) {
      _mm512_i32scatter_ps(p.sortedKeys + first + i, places, __m512(k[i]), 4);
      _mm512_i32scatter_epi32(p.sortedValues + first + i, places, __m512i(v[i]), 4);
    }
#else
    for (int i = 0; i < 32; ++i)
      for (int row = 0; row < 16; ++row) {
        p.sortedKeys[first + row * 32 + i] = k[i][row];
        p.sortedValues[first + row * 32 + i] = v[i][row];
      }
#endif
  }
}

void sortStandard(const Arrays &arrays, int64_t begin, int64_t end) {
  Pairs p(arrays);
  struct Pair {
    float key;
    int32_t value;
  } pairs[32];
  for (int64_t row = begin; row < end; row += 32) {
    for (int i = 0; i < 32; ++i)
      pairs[i] = {p.keys[row + i], p.values[row + i]};
    std::sort(pairs, pairs + 32, [](const Pair &x, const Pair &y) { return x.key < y.key; });
    for (int i = 0; i < 32; ++i) {
      p.sortedKeys[row + i] = pairs[i].key;
      p.sortedValues[row + i] = pairs[i].value;
    }
  }
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

/// Four tables, so that equal neighbours do not wait for each other. Then a worker at a time adds its counts to the whole.
void countLoop(const Arrays &arrays, int64_t begin, int64_t end) {
  const int32_t *__restrict x = to<int32_t>(arrays.a);
  int32_t tables[4][256] = {};
  for (int64_t i = begin; i < end; i += 4)
    for (int t = 0; t < 4; ++t)
      ++tables[t][x[i + t] & 255];
  static std::atomic_flag isTaken = ATOMIC_FLAG_INIT;
  while (isTaken.test_and_set(std::memory_order_acquire)) {
  }
  int32_t *whole = to<int32_t>(arrays.c);
  for (int bin = 0; bin < 256; ++bin)
    whole[bin] += tables[0][bin] + tables[1][bin] + tables[2][bin] + tables[3][bin];
  isTaken.clear(std::memory_order_release);
}

void rankLoop(const Arrays &arrays, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; row += 256) {
    const int32_t *__restrict x = to<int32_t>(arrays.a) + row;
    int32_t *__restrict o = to<int32_t>(arrays.c) + row;
    int32_t counts[256] = {};
    for (int i = 0; i < 256; ++i)
      ++counts[x[i] & 255];
    int32_t sum = 0;
    for (int bin = 0; bin < 256; ++bin) {
      int32_t count = counts[bin];
      counts[bin] = sum;
      sum += count;
    }
    for (int i = 0; i < 256; ++i)
      o[i] = counts[x[i] & 255]++;
  }
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

void branchLoop(const Arrays &arrays, int64_t begin, int64_t end) {
  const float *__restrict x = to<float>(arrays.a);
  float *__restrict o = to<float>(arrays.c);
  const float a = 2;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i)
    o[i] = x[i] > 12.f ? a * x[i] + 1.f : x[i] - a;
}

void turnsLoop(const Arrays &arrays, int64_t begin, int64_t end) {
  const float *__restrict x = to<float>(arrays.a);
  const float *__restrict y = to<float>(arrays.b);
  float *__restrict o = to<float>(arrays.c);
  const float a = 2;
  for (int64_t i = begin; i < end; ++i) {
    float v = y[i];
    if (x[i] > 12.f)
      v = a * x[i] + v;
    else
      for (int k = 0, turns = int(x[i]) & 7; k < turns; ++k)
        v = v * 0.5f + x[i];
    o[i] = v;
  }
}

/// All lanes turn until the last one is done; those that are done keep what they have.
void turnsVector(const Arrays &arrays, int64_t begin, int64_t end) {
  using V = Vector<float>;
  using I = Vector<int32_t>;
  const float *x = to<float>(arrays.a), *y = to<float>(arrays.b);
  float *o = to<float>(arrays.c);
  const float a = 2;
  for (int64_t i = begin; i < end; i += V::size) {
    V::Type u = V::at(x + i), w = V::at(y + i), v = w;
    I::Type big = u > 12.f, turns = big ? I::Type{} : __builtin_convertvector(u, I::Type) & 7;
    for (int k = 0; k < 7 && __builtin_reduce_max(turns) > k; ++k)
      v = turns > k ? v * 0.5f + u : v;
    V::at(o + i) = big ? a * u + w : v;
  }
}

} // namespace

const NamedRow rows[] = {
    {"sum32 f32", "loop", sumLoop<float, 32>},      {"sum32 f32", "vectors", sumVector<float, 32>},
    {"sum32 i32", "loop", sumLoop<int32_t, 32>},    {"sum32 i32", "vectors", sumVector<int32_t, 32>},
    {"sum32 f64", "loop", sumLoop<double, 32>},     {"sum32 f64", "vectors", sumVector<double, 32>},
    {"norm32", "loop", normLoop<32>},               {"norm32", "vectors", normVector<32>},
    {"norm256", "loop", normLoop<256>},             {"norm256", "vectors", normVector<256>},
    {"scan32", "loop", scanLoop},                   {"scan32", "vectors", scanVector},
    {"sort32 kv", "row", sortRow},                  {"sort32 kv", "16 rows", sortRows},
    {"sort32 kv", "std::sort", sortStandard},       {"reduce256", "loop", sumLoop<float, 256>},
    {"reduce256", "vectors", sumVector<float, 256>}, {"reduce256 tree", "loop", sumLoop<float, 256>},
    {"reduce256 tree", "vectors", sumVector<float, 256>},
    {"hist256", "loop", countLoop},                 {"rank256", "loop", rankLoop},
    {"saxpy if", "loop", branchLoop},               {"saxpy loop", "loop", turnsLoop},
    {"saxpy loop", "vectors", turnsVector},
};
const unsigned numRows = sizeof(rows) / sizeof(*rows);

// The largest error of each function of math on the cpu device, against MPFR.
//
// usage: math-errors [--functions=exp,log] [--every=N] [--samples=N]
//
// f32 functions of one operand are computed for every Nth of all f32 (1: all 2^32). There the C library's f64 finds the
// operand with the largest error, which then is measured against MPFR. Other functions are compared with MPFR at
// --samples operands: evenly many of each exponent, and dense ones where functions turn. Errors are in units of the
// last place of the exact result's format. The exit status says whether one is beyond the bound, 2 units for f32 and 4
// for f64, or whether a result is NaN, infinite, zero or negative where the exact one is not.

#include "compiler/qdc.h"

#include <mpfr.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using Unary = int (*)(mpfr_t, const mpfr_t, mpfr_rnd_t);
using Binary = int (*)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);

struct Function {
  const char *name;
  Unary unary;
  double (*host)(double); ///< of one operand
  Binary binary = nullptr;
};

/// As IEEE 754 has it: of -0 it is -infinity.
double rsqrtOfHost(double x) { return 1 / std::sqrt(x); }
int rsqrtOfExact(mpfr_t result, const mpfr_t x, mpfr_rnd_t rounding) {
  int ternary = mpfr_rec_sqrt(result, x, rounding);
  if (mpfr_zero_p(x))
    mpfr_setsign(result, result, mpfr_signbit(x), rounding);
  return ternary;
}

const Function functions[] = {
    {"exp", mpfr_exp, std::exp},       {"exp2", mpfr_exp2, std::exp2},    {"expm1", mpfr_expm1, std::expm1},
    {"sinh", mpfr_sinh, std::sinh},    {"cosh", mpfr_cosh, std::cosh},    {"tanh", mpfr_tanh, std::tanh},
    {"asinh", mpfr_asinh, std::asinh}, {"acosh", mpfr_acosh, std::acosh}, {"atanh", mpfr_atanh, std::atanh},
    {"log", mpfr_log, std::log},       {"log2", mpfr_log2, std::log2},    {"log10", mpfr_log10, std::log10},
    {"log1p", mpfr_log1p, std::log1p}, {"sin", mpfr_sin, std::sin},       {"cos", mpfr_cos, std::cos},
    {"tan", mpfr_tan, std::tan},       {"asin", mpfr_asin, std::asin},    {"acos", mpfr_acos, std::acos},
    {"atan", mpfr_atan, std::atan},    {"cbrt", mpfr_cbrt, std::cbrt},    {"rsqrt", rsqrtOfExact, rsqrtOfHost},
    {"erf", mpfr_erf, std::erf},       {"erfc", mpfr_erfc, std::erfc},    {"powf", nullptr, nullptr, mpfr_pow},
    {"atan2", nullptr, nullptr, mpfr_atan2},
};

template <typename T> constexpr const char *typeName = std::is_same_v<T, float> ? "f32" : "f64";
template <typename T> constexpr double bound = std::is_same_v<T, float> ? 2 : 4;

/// A number with more digits than any format here, of any exponent that results have.
class Exact {
public:
  explicit Exact(double value = 0) {
    mpfr_init2(number, 160);
    mpfr_set_d(number, value, MPFR_RNDN);
  }
  ~Exact() { mpfr_clear(number); }
  Exact(const Exact &) = delete;
  Exact &operator=(const Exact &) = delete;
  mpfr_t number;
};

/// Of formats with `digits` digits: the exponent of the last place of a number in [2^exponent, 2^(exponent+1)).
template <typename T> int lastPlace(int exponent) {
  using Limits = std::numeric_limits<T>;
  return std::max(exponent, Limits::min_exponent - 1) - (Limits::digits - 1);
}

/// Whether two results differ in more than their digits. A zero is near every subnormal number; next to the largest
/// number a unit decides whether a result is infinite.
template <typename T> bool differsInKind(T found, bool isNaN, bool isInfinite, bool isNegative, double magnitude) {
  if (isNaN || std::isnan(found))
    return isNaN != std::isnan(found);
  if (isNegative != std::signbit(found))
    return true;
  bool isAtEnd =
      magnitude > double(std::numeric_limits<T>::max()) * (1 - 4 * double(std::numeric_limits<T>::epsilon()));
  return isInfinite != std::isinf(found) && !isAtEnd;
}

/// In units of the last place, of a result against the host's; infinite where they differ in kind.
double errorByHost(float found, double expected) {
  if (differsInKind(found, std::isnan(expected), std::isinf(expected), std::signbit(expected), std::abs(expected)))
    return INFINITY;
  if (std::isnan(found) || std::isinf(found) || expected == found)
    return 0;
  int exponent = expected == 0 ? -1000 : std::ilogb(expected);
  return std::ldexp(std::abs(double(found) - expected), -lastPlace<float>(exponent));
}

template <typename T> double errorByMPFR(const Function &function, T found, T x, T y) {
  Exact a(x), b(y), result;
  if (function.unary)
    function.unary(result.number, a.number, MPFR_RNDN);
  else
    function.binary(result.number, a.number, b.number, MPFR_RNDN);
  double magnitude = std::abs(mpfr_get_d(result.number, MPFR_RNDN));
  if (differsInKind(found, mpfr_nan_p(result.number), mpfr_inf_p(result.number), mpfr_signbit(result.number),
                    magnitude))
    return INFINITY;
  if (std::isnan(found) || std::isinf(found) || mpfr_cmp_d(result.number, found) == 0)
    return 0;
  int exponent = mpfr_zero_p(result.number) ? -5000 : int(mpfr_get_exp(result.number)) - 1;
  mpfr_sub_d(result.number, result.number, found, MPFR_RNDN);
  mpfr_mul_2si(result.number, result.number, -lastPlace<T>(exponent), MPFR_RNDN);
  return std::abs(mpfr_get_d(result.number, MPFR_RNDN));
}

/// A function on the cpu device.
class Kernel {
public:
  Kernel(const Function &function, const char *type) : numOperands(function.unary ? 1 : 2) {
    std::string buffer = ": !qd.buffer<" + std::string(type) + ">", name = function.name;
    std::string text = "qd.kernel @f(%a" + buffer + " readonly, ";
    text += numOperands == 2 ? "%b" + buffer + " readonly, " : "";
    text += "%y" + buffer + ", %n: i32) block(256) {\n  %i = qd.global_thread_id x : i32\n";
    text += "  %in = arith.cmpi slt, %i, %n : i32\n  scf.if %in {\n    %x = qd.load %a[%i] " + buffer + "\n";
    text += numOperands == 2 ? "    %z = qd.load %b[%i] " + buffer + "\n" : "";
    text += "    %r = math." + name + (numOperands == 2 ? " %x, %z : " : " %x : ") + type + "\n";
    text += "    qd.store %r, %y[%i] " + buffer + "\n  }\n  qd.return\n}\n";
    qdcHostOptions options;
    qdcInitHostOptions(&options);
    options.device = "cpu";
    char *diagnostics = nullptr;
    module = qdcHostLoad(text.data(), text.size(), function.name, &options, &diagnostics);
    check(module, diagnostics);
  }
  ~Kernel() { qdcHostUnload(module); }
  Kernel(const Kernel &) = delete;
  Kernel &operator=(const Kernel &) = delete;

  template <typename T> void run(std::vector<T> &x, std::vector<T> &y, std::vector<T> &results) {
    auto count = int64_t(x.size());
    std::vector<qdcHostArg> arguments;
    for (std::vector<T> *buffer : {&x, &y, &results})
      if (buffer != &y || numOperands == 2)
        arguments.push_back({QDC_ARG_BUFFER, buffer->data(), count, 0, {count, 1, 1}});
    arguments.push_back({QDC_ARG_SCALAR, nullptr, 0, uint64_t(count), {}});
    uint32_t grid[3] = {uint32_t((count + 255) / 256), 1, 1};
    char *diagnostics = nullptr;
    check(qdcHostLaunch(module, "f", grid, arguments.data(), arguments.size(), &diagnostics) == 0, diagnostics);
  }

private:
  static void check(bool isRight, char *diagnostics) {
    if (isRight)
      return qdcFreeString(diagnostics);
    std::fprintf(stderr, "%s\n", diagnostics ? diagnostics : "");
    std::exit(2);
  }

  unsigned numOperands;
  qdcHostModule module;
};

template <typename T> struct Worst {
  double error = -1;
  T x = 0, y = 0, found = 0;
  void take(double candidate, T ofX, T ofY, T result) {
    if (candidate > error)
      *this = {candidate, ofX, ofY, result};
  }
};

/// `body` with parts of [0, count), on all processors.
void inParallel(size_t count, const std::function<void(size_t, size_t, unsigned)> &body, unsigned threads) {
  std::vector<std::thread> pool;
  for (unsigned t = 0; t < threads; ++t)
    pool.emplace_back(body, count * t / threads, count * (t + 1) / threads, t);
  for (std::thread &thread : pool)
    thread.join();
}

template <typename T> Worst<T> worstOf(const std::vector<Worst<T>> &parts) {
  Worst<T> worst;
  for (const Worst<T> &part : parts)
    worst.take(part.error, part.x, part.y, part.found);
  return worst;
}

/// Every `step`th f32.
Worst<float> sweep(const Function &function, uint64_t step, unsigned threads) {
  Kernel kernel(function, "f32");
  constexpr uint64_t all = uint64_t(1) << 32, chunk = 1 << 22;
  std::vector<float> x, none, results;
  std::vector<Worst<float>> worst(threads);
  for (uint64_t first = 0; first < all; first += chunk * step) {
    x.resize((std::min(chunk * step, all - first) + step - 1) / step);
    for (size_t i = 0; i < x.size(); ++i) {
      auto bits = uint32_t(first + i * step);
      std::memcpy(&x[i], &bits, sizeof(bits));
    }
    results.resize(x.size());
    kernel.run(x, none, results);
    auto judge = [&](size_t begin, size_t end, unsigned thread) {
      for (size_t i = begin; i < end; ++i)
        worst[thread].take(errorByHost(results[i], function.host(x[i])), x[i], 0, results[i]);
    };
    inParallel(x.size(), judge, threads);
  }
  Worst<float> result = worstOf(worst);
  result.error = errorByMPFR(function, result.found, result.x, 0.0f);
  return result;
}

/// Numbers of all exponents, and dense ones around the places where functions turn.
template <typename T> std::vector<T> sample(size_t count, unsigned seed) {
  using Limits = std::numeric_limits<T>;
  const double ranges[] = {1, 2, 12, 30, 110, 800, 5000};
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(-1, 1);
  std::vector<T> numbers;
  int least = Limits::min_exponent - Limits::digits;
  for (size_t i = 0; i < count; ++i) {
    double mantissa = unit(random);
    if (i % 2)
      numbers.push_back(T(mantissa * ranges[i / 2 % std::size(ranges)]));
    else
      numbers.push_back(std::ldexp(T(mantissa), least + int(i / 2 % (Limits::max_exponent - least))));
  }
  return numbers;
}

template <typename T> Worst<T> compare(const Function &function, size_t samples, unsigned threads) {
  std::vector<T> x = sample<T>(samples, 1), y = sample<T>(function.binary ? samples : 0, 2), results(samples);
  // Powers that are neither zero nor infinite.
  for (size_t i = 0; i < y.size(); i += 3) {
    x[i] = std::abs(x[i]);
    if (T logarithm = std::log2(x[i]); std::isfinite(logarithm) && logarithm != 0)
      y[i] = T(std::fmod(double(y[i]), double(std::numeric_limits<T>::max_exponent))) / logarithm;
  }
  Kernel(function, typeName<T>).run(x, y, results);
  std::vector<Worst<T>> worst(threads);
  auto judge = [&](size_t begin, size_t end, unsigned thread) {
    for (size_t i = begin; i < end; ++i) {
      T second = y.empty() ? T(0) : y[i];
      worst[thread].take(errorByMPFR(function, results[i], x[i], second), x[i], second, results[i]);
    }
    mpfr_free_cache();
  };
  inParallel(samples, judge, threads);
  return worstOf(worst);
}

/// Prints a line of the table.
template <typename T> bool report(const Function &function, const Worst<T> &worst, const std::string &operands) {
  bool isRight = worst.error <= bound<T>;
  std::printf("%-6s %s %6.3f at %a", function.name, typeName<T>, worst.error, double(worst.x));
  if (function.binary)
    std::printf(", %a", double(worst.y));
  std::printf(" (%s)%s\n", operands.c_str(), isRight ? "" : "  BEYOND THE BOUND");
  std::fflush(stdout);
  return isRight;
}

} // namespace

int main(int argc, char **argv) {
  uint64_t step = 100003;
  size_t samples = 20000;
  std::string names;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument.rfind("--every=", 0) == 0)
      step = std::strtoull(argument.c_str() + 8, nullptr, 10);
    else if (argument.rfind("--samples=", 0) == 0)
      samples = std::strtoull(argument.c_str() + 10, nullptr, 10);
    else if (argument.rfind("--functions=", 0) == 0)
      names = "," + argument.substr(12) + ",";
    else
      step = 0;
  }
  if (step == 0 || samples == 0) {
    std::fprintf(stderr, "usage: math-errors [--functions=exp,log] [--every=N] [--samples=N]\n");
    return 2;
  }
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  unsigned numWrong = 0, numDone = 0;
  for (const Function &function : functions) {
    if (!names.empty() && names.find("," + std::string(function.name) + ",") == std::string::npos)
      continue;
    std::string sampled = std::to_string(samples) + (function.unary ? " operands" : " pairs");
    if (function.unary)
      numWrong += !report(function, sweep(function, step, threads), "one f32 in " + std::to_string(step));
    else
      numWrong += !report(function, compare<float>(function, samples, threads), sampled);
    numWrong += !report(function, compare<double>(function, samples, threads), sampled);
    ++numDone;
  }
  std::printf("%u functions, %u beyond their bounds\n", numDone, numWrong);
  return numWrong || !numDone;
}

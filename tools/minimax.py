#!/usr/bin/env python3
"""Derives the polynomials and constants of the math functions: passes/MathTables.h.

usage: minimax.py [--check] [FILE]

Each polynomial is the best one for a weighted error on an interval, found by Remez' exchange algorithm. Its
coefficients are rounded to the format one after the other, lowest degree first, and the rest makes up for it each
time. The error that the rounded polynomial has stands beside it. --check writes nothing; the exit status says whether
FILE is what this program writes. Needs mpmath.
"""
import sys

import mpmath as mp

mp.mp.dps = 90
DIGITS = {32: 24, 64: 53}
FILE = "passes/MathTables.h"


def round_to(value, bits):
    """The number of `bits` significant bits nearest to a value."""
    if not value:
        return mp.mpf(0)
    with mp.workprec(bits):
        return +mp.mpf(value)


def evaluate(coefficients, z):
    result = mp.mpf(0)
    for c in reversed(coefficients):
        result = result * z + c
    return result


def extrema(error, low, high, count):
    """Where the error is largest between its changes of sign, and at the ends."""
    n = 24 * count + 1  # odd: no point lies in the middle
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / n) for i in range(n + 1)]
    values = [error(p) for p in points]
    runs = []
    for p, v in zip(points, values):
        if runs and (v > 0) == (runs[-1][1] > 0):
            if abs(v) > abs(runs[-1][1]):
                runs[-1] = (p, v)
        else:
            runs.append((p, v))
    while len(runs) > count:  # the smaller end goes
        runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
    return runs


def remez(function, weight, low, high, degree):
    """The coefficients with the least maximum of |polynomial - function| * weight."""
    count = degree + 2
    # Off the middle of the interval, where a weight may vanish.
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + mp.mpf("0.43")) / count) for i in range(count)]
    best = None
    for _ in range(12):
        matrix, right = mp.matrix(count), mp.matrix(count, 1)
        for row, p in enumerate(points):
            for column in range(degree + 1):
                matrix[row, column] = p ** column
            matrix[row, degree + 1] = (-1) ** row / weight(p)
            right[row] = function(p)
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[i] for i in range(degree + 1)]
        runs = extrema(lambda p: (evaluate(coefficients, p) - function(p)) * weight(p), low, high, count)
        worst = max(abs(v) for _, v in runs)
        if best is None or worst < best[0]:
            best = worst, coefficients
        if len(runs) < count or worst < abs(solution[degree + 1]) * mp.mpf("1.01"):
            break
        points = [p for p, _ in runs]
    return best[1]


def cached(function):
    known = {}
    def call(z):
        if z not in known:
            known[z] = function(z)
        return known[z]
    return call


def repair(best, rounded, weight, points):
    """The coefficients behind the rounded ones that come nearest to the best polynomial, by weighted squares."""
    first, count = len(rounded), len(best) - len(rounded)
    matrix, right = mp.matrix(count), mp.matrix(count, 1)
    for p in points:
        w, missing = weight(p) ** 2, evaluate(best, p) - evaluate(rounded, p)
        powers = [p ** (first + i) for i in range(count)]
        for i in range(count):
            right[i] += w * powers[i] * missing
            for j in range(count):
                matrix[i, j] += w * powers[i] * powers[j]
    return list(mp.lu_solve(matrix, right))


def fit(function, weight, low, high, degree, bits):
    """Coefficients rounded to `bits`, and the largest weighted error."""
    low, high = mp.mpf(low), mp.mpf(high)
    function = cached(function)
    best = remez(function, weight, low, high, degree)
    rounded = [round_to(best[0], bits)]
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + mp.mpf("0.43")) / 60) for i in range(60)]
    for first in range(1, degree + 1):
        rounded.append(round_to(repair(best, rounded, weight, points)[0], bits))
    error = max(abs(v) for _, v in extrema(lambda p: (evaluate(rounded, p) - function(p)) * weight(p), low, high, 20))
    return rounded, error


# ---- what is approximated ---------------------------------------------------------------------------------------

TINY = mp.mpf("1e-3")  # intervals of x^2 begin here: what is fitted loses digits near zero, where it hardly counts
HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.001")
QUARTER_PI = mp.pi / 4 * mp.mpf("1.001")
ROOT_HALF, ROOT2 = mp.sqrt(mp.mpf("0.5")) * mp.mpf("0.9999"), mp.sqrt(2) * mp.mpf("1.0001")


def odd(function, lead=1):
    """g with function(x) = x * (lead + x*x * g(x*x)), and the weight of g's error relative to the function."""
    def inner(z):
        x = mp.sqrt(z)
        return (function(x) / x - lead) / z
    return inner, lambda z: z * mp.sqrt(z) / abs(function(mp.sqrt(z)))


def log_tail(base):
    """g with log(1 + f) / log(base) = f / log(base) + f*f * g(f)."""
    scale = 1 / mp.log(base)
    return (lambda f: (mp.log(1 + f) * scale - f * scale) / f ** 2,
            lambda f: f ** 2 / abs(mp.log(1 + f) * scale) if f else mp.mpf(0))


def below_power(function):
    """The weight of g's error in 1 + r * g(r), by what the last place of the function's value is worth."""
    return lambda r: abs(r) / mp.mpf(2) ** mp.floor(mp.log(function(r), 2))


def polynomials(width):
    """(name, what, function, weight, low, high, degree)."""
    f32 = width == 32
    yield ("exp", "(exp(r) - 1 - r) / r^2", lambda r: (mp.expm1(r) - r) / r ** 2, lambda r: r ** 2 / mp.exp(r),
           -HALF_LN2, HALF_LN2, 4 if f32 else 9)
    if f32:
        yield ("expShort", "(exp(r) - 1) / r, relative to the power of two below exp(r)", lambda r: mp.expm1(r) / r,
               below_power(mp.exp), -HALF_LN2, HALF_LN2, 4)
    yield ("expm1", "(exp(r) - 1 - r) / r^2, relative to exp(r) - 1", lambda r: (mp.expm1(r) - r) / r ** 2,
           lambda r: r ** 2 / abs(mp.expm1(r)), -HALF_LN2, HALF_LN2, 5 if f32 else 10)
    yield ("exp2", "(2^r - 1) / r", lambda r: (mp.mpf(2) ** r - 1) / r, lambda r: abs(r) / mp.mpf(2) ** r,
           mp.mpf("-0.5001"), mp.mpf("0.5001"), 5 if f32 else 11)
    if f32:
        yield ("exp2Short", "(2^r - 1) / r, relative to the power of two below 2^r",
               lambda r: (mp.mpf(2) ** r - 1) / r, below_power(lambda r: mp.mpf(2) ** r),
               mp.mpf("-0.5001"), mp.mpf("0.5001"), 4)
        yield ("exp2Wide", "(2^r - 1) / r, for r within 1", lambda r: (mp.mpf(2) ** r - 1) / r,
               lambda r: abs(r) / mp.mpf(2) ** r, mp.mpf("-1.0001"), mp.mpf("1.0001"), 6)
    for name, base in ("log", mp.e), ("log2", 2), ("log10", 10):
        function, weight = log_tail(base)
        yield (name, "(log(1 + f) - f) / f^2, by the base", function, weight, ROOT_HALF - 1, ROOT2 - 1,
               8 if f32 else 20)
    yield ("sin", "(sin(x) / x - 1) / x^2, in x^2") + odd(mp.sin) + (TINY, QUARTER_PI ** 2, 2 if f32 else 6)
    yield ("cos", "((cos(x) - 1) / x^2 + 1/2) / x^2, in x^2",
           lambda z: ((mp.cos(mp.sqrt(z)) - 1) / z + mp.mpf("0.5")) / z, lambda z: z ** 2 / mp.cos(mp.sqrt(z)),
           TINY, QUARTER_PI ** 2, 2 if f32 else 6)
    yield ("tan", "(tan(x) / x - 1) / x^2, in x^2") + odd(mp.tan) + (TINY, QUARTER_PI ** 2, 5 if f32 else 14)
    yield ("asin", "(asin(x) / x - 1) / x^2, in x^2") + odd(mp.asin) + (TINY, mp.mpf("0.3601"), 5 if f32 else 14)
    yield ("atan", "(atan(x) / x - 1) / x^2, in x^2") + odd(mp.atan) + (TINY, mp.mpf("1.0001"), 8 if f32 else 20)
    yield ("sinh", "(sinh(x) / x - 1) / x^2, in x^2") + odd(mp.sinh) + (TINY, mp.mpf("1.0001"), 3 if f32 else 7)
    yield ("tanh", "(tanh(x) / x - 1) / x^2, in x^2") + odd(mp.tanh) + (
        TINY, mp.mpf("0.6251") ** 2 if f32 else mp.mpf("0.2501"), 4 if f32 else 9)
    yield ("cbrt", "x^(1/3), to ten bits", mp.cbrt, lambda x: 1 / mp.cbrt(x), mp.mpf("0.5"), mp.mpf(1), 3)
    # log((1+s)/(1-s)) = 2s + 2s^3/3 + ..., by log(2)
    yield ("powLog", "log2((1+s)/(1-s)) less its terms in s and s^3, by s^5, in s^2",
           lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2 - 2 * z / 3) / z ** 2 / mp.log(2),
           lambda z: z ** 2, mp.mpf("1e-4"), mp.mpf("0.0297"), 2 if f32 else 9)
    yield ("erfSmall", "erf(x) / x - 1, in x^2", lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
           lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), TINY, mp.mpf(1), 7 if f32 else 14)
    yield ("erfLarge", "log2(1 - erf(a)), in a", lambda a: mp.log(mp.erfc(a)) / mp.log(2), lambda a: mp.erfc(a),
           mp.mpf("0.999"), mp.mpf(4 if f32 else 6), 5 if f32 else 18)
    # The center of q is chosen so that coefficients fall off fast.
    center = mp.mpf(2 if f32 else 4)
    def scaled_erfc(q):
        x = center * (1 + q) / (1 - q)
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)
    least, most = mp.mpf("0.499"), mp.mpf("10.126" if f32 else "27.251")
    yield ("erfcLarge", "(1 + 2x) * exp(x^2) * erfc(x), in q = (x - %d) / (x + %d)" % (center, center), scaled_erfc,
           lambda q: 1 / scaled_erfc(q), (least - center) / (least + center), (most - center) / (most + center),
           10 if f32 else 21)


# ---- the file ---------------------------------------------------------------------------------------------------

def literal(value):
    """A hexadecimal C++ literal of a number that a double holds."""
    return float(value).hex().replace("0x1.0000000000000p", "0x1p").replace("0x0.0p+0", "0.0")


def split(value, *widths):
    """A number as a sum of parts of so many significant bits, each part the rest cut to its width."""
    parts, rest = [], mp.mpf(value)
    for bits in widths:
        part = round_to(rest, bits)
        parts.append(part)
        rest -= part
    return parts


def constants(width):
    """(name, list of numbers)."""
    f32, digits = width == 32, DIGITS[width]
    few = 16 if f32 else 42  # products with exponents are exact
    yield "ln2", split(mp.log(2), few, few)
    yield "log10Of2", split(mp.log10(2), few, digits)
    half = digits // 2
    for name, value in ("log2e", 1 / mp.log(2)), ("log10e", 1 / mp.log(10)):
        yield name, split(value, half, digits)
    yield "halfPi", split(mp.pi / 2, digits, digits)
    if f32:
        yield "ln2Whole", split(mp.log(2), digits, digits)
        yield "halfPiThree", split(mp.pi / 2, digits, digits, digits)
    else:
        yield "halfPiParts", split(mp.pi / 2, 33, 33, 33, digits)
    yield "halfPiSplit", split(mp.pi / 2, half, digits)
    yield "twoLog2e", split(2 / mp.log(2), digits, digits)
    yield "thirdOfTwoLog2e", split(2 / mp.log(2) / 3, digits, digits)


def two_over_pi(words):
    """The bits of 2/pi below the point, 32 a word."""
    with mp.workprec(32 * words + 64):
        value = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (32 * words)))
    return [(value >> 32 * (words - 1 - i)) & 0xffffffff for i in range(words)]


def wrap(items, indent):
    lines, line = [], ""
    for item in items:
        if line and len(indent + line + item) > 116:
            lines.append(indent + line.rstrip())
            line = ""
        line += item + ", "
    return "\n".join(lines + [indent + line.rstrip(", ")])


def render():
    text = """//===- MathTables.h - polynomials and constants of the math functions ---------------------===//
//
// Generated by tools/minimax.py, which says how. Coefficients stand lowest degree first; "error" is the largest of the
// polynomial, relative to the whole function, as a power of two. A list of constants is a sum: each is the rest cut to
// as many bits as products with it need.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_MATHTABLES_H
#define QD_PASSES_MATHTABLES_H

#include <cstdint>

namespace qd::math {

template <unsigned width> struct Tables;

"""
    for width in (32, 64):
        text += "template <> struct Tables<%d> {\n" % width
        for name, what, function, weight, low, high, degree in polynomials(width):
            coefficients, error = fit(function, weight, low, high, degree, DIGITS[width])
            print(width, name, mp.nstr(mp.log(error, 2), 5), file=sys.stderr, flush=True)
            text += "  /// %s; error %s.\n" % (what, mp.nstr(mp.log(error, 2), 4))
            text += "  static constexpr double %s[] = {\n%s};\n" % (name, wrap(map(literal, coefficients), "      "))
        for name, values in constants(width):
            text += "  static constexpr double %s[] = {\n%s};\n" % (name, wrap(map(literal, values), "      "))
        text += "};\n\n"
    text += "/// The bits of 2/pi below the point.\ninline constexpr uint32_t twoOverPi[] = {\n%s};\n\n" % wrap(
        ["0x%08xu" % word for word in two_over_pi(40)], "    ")
    return text + "} // namespace qd::math\n\n#endif\n"


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    path = arguments[0] if arguments else FILE
    text = render()
    if "--check" in sys.argv[1:]:
        with open(path) as file:
            return text != file.read()
    with open(path, "w") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes coefficients.h: the polynomials of the math library.

Each is the interpolant at Chebyshev nodes of a function on [0, top] or [-top, top], which is within a
small factor of the minimax polynomial, or that one where the weight varies; its relative error against the whole function stands beside it.
Computed with 60 digits. Usage: coefficients.py | clang-format > coefficients.h
"""
import struct
from mpmath import mp, mpf, cos, sin, exp, log, atan, pi, atanh, sqrt, tan, tanh, sinh, cosh, asin, erf, erfc, loggamma, matrix, lu_solve

mp.dps = 60


def double(v):
    return float(v).hex()


def single(v):
    """The f32 nearest to v, as a Python float."""
    return struct.unpack("f", struct.pack("f", float(v)))[0]


def interpolant(g, degree, low, high, weight):
    """Coefficients of the polynomial of `degree` that equals g at the Chebyshev nodes."""
    n = degree + 1
    nodes = [(low + high) / 2 + (high - low) / 2 * cos((2 * k + 1) * pi / (2 * n)) for k in range(n)]
    a = matrix(n, n)
    b = matrix(n, 1)
    for i, x in enumerate(nodes):
        for j in range(n):
            a[i, j] = x**j
        b[i] = g(x)
    return [v for v in lu_solve(a, b)]


def value(c, x):
    """Σ c[k]·x^k."""
    sum = mpf(0)
    for v in reversed(c):
        sum = sum * x + v
    return sum


def minimax(g, degree, low, high, weight):
    """Coefficients of the polynomial p of `degree` with the least max |(p - g) weight| (Remez)."""
    n = degree + 2
    grid = [low + (high - low) * (1 - cos(pi * k / (60 * n))) / 2 for k in range(60 * n + 1)]
    wanted, weights = [g(x) for x in grid], [weight(x) for x in grid]
    reference = [60 * n * k // (n - 1) for k in range(n)]
    while True:
        a, b = matrix(n, n), matrix(n, 1)
        for row, i in enumerate(reference):
            for j in range(n - 1):
                a[row, j] = grid[i]**j
            a[row, n - 1] = (-1)**row / weights[i]
            b[row] = wanted[i]
        *c, level = lu_solve(a, b)
        error = [(y - value(c, x)) * w for x, y, w in zip(grid, wanted, weights)]
        if max(abs(v) for v in error) < abs(level) * mpf("1.05"):
            return c
        reference = alternation(error, n)


def alternation(error, n):
    """Where `error` is extreme with alternating signs, the `n` largest that still alternate."""
    at = []
    for i, v in enumerate(error):
        if at and (v > 0) == (error[at[-1]] > 0):
            if abs(v) > abs(error[at[-1]]):
                at[-1] = i
        else:
            at.append(i)
    size = lambda k: abs(error[at[k]])
    while len(at) > n + 1:
        k = min(range(len(at) - 1), key=lambda k: max(size(k), size(k + 1)))
        del at[k:k + 2]
    if len(at) > n:
        at.pop(0 if size(0) < size(-1) else -1)
    return at


def emit(name, why, g, degree, low, high, weight, to=float, fit=interpolant):
    """`weight(x)`: what an absolute error of g means relative to the whole function. `to` rounds a
    coefficient: float, or single for arithmetic in f32."""
    c = [to(v) for v in fit(g, degree, low, high, weight)]
    rounded = [mpf(v) for v in c]
    worst = mpf(0)
    for k in range(2000):
        x = low + (high - low) * mpf(k) / 2000
        if x == 0:
            continue
        worst = max(worst, abs((value(rounded, x) - g(x)) * weight(x)))
    print(f"/// {why}; error 2^{float(log(worst) / log(2)):.1f}")
    print(f"inline constexpr double {name}[] = {{")
    for v in c:
        print(f"    {double(v)},")
    print("};\n")


def parts(name, why, value, bits):
    """`value` as a sum of doubles, the first ones of `bits` significant bits, the last one full."""
    rest, out = mpf(value), []
    for b in bits:
        if b == 53:
            part = mpf(float(rest))
        elif b == 24:
            part = mpf(single(rest))
        else:
            e = mp.floor(log(abs(rest)) / log(2))
            unit = mpf(2) ** (e - b + 1)
            part = mp.floor(rest / unit) * unit
        out.append(part)
        rest -= part
    print(f"/// {why}")
    print(f"inline constexpr double {name}[] = {{")
    for v in out:
        print(f"    {double(v)},")
    print("};\n")


print("#pragma once")
print("// Written by coefficients.py: do not edit. Errors are relative to the whole function.")
print("#include <cstdint>\n")
print("namespace quern::ir::math::table {\n")

quarter = pi / 4 * mpf("1.0001")
top = quarter**2
one = lambda x: mpf(1)
sin_g = lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z
cos_g = lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2
emit("sin_f64", "(sin r / r - 1) / r², in z = r²", sin_g, 5, mpf(0), top, lambda z: z)
emit("cos_f64", "(cos r - 1 + r²/2) / r⁴, in z = r²", cos_g, 5, mpf(0), top, lambda z: z * z)
tan_g = lambda z: (tan(sqrt(z)) / sqrt(z) - 1) / z
emit("sin_single", "the first in f32 arithmetic", sin_g, 2, mpf(0), top, lambda z: z, single)
emit("cos_single", "the second in f32 arithmetic", cos_g, 2, mpf(0), top, lambda z: z * z, single)
emit("tan_f64", "(tan r / r - 1) / r² up to π/4, in z = r²", tan_g, 13, mpf(0), top, lambda z: z)
emit("tan_single", "the same in f32 arithmetic", tan_g, 6, mpf(0), top, lambda z: z, single)

half = log(mpf(2)) / 2 * mpf("1.001")
exp_g = lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > mpf("1e-18") else mpf(1) / 2 + r / 6
emit("exp_f64", "(exp r - 1 - r) / r²", exp_g, 9, -half, half, lambda r: r * r)
emit("exp_f32", "the same for f32 through f64", exp_g, 6, -half, half, lambda r: r * r)

emit("exp_single", "the same in f32 arithmetic", exp_g, 5, -half, half, lambda r: r * r, single)
exp2_g = lambda r: (mpf(2)**r - 1 - r * log(mpf(2))) / r**2 if abs(r) > mpf("1e-18") else log(mpf(2))**2 / 2
unit = mpf("0.5001")
emit("exp2_f64", "(2^r - 1 - r ln 2) / r²", exp2_g, 10, -unit, unit, lambda r: r * r)
emit("exp2_single", "the same in f32 arithmetic", exp2_g, 5, -unit, unit, lambda r: r * r, single)

cosh_g = lambda z: (cosh(sqrt(z)) - 1) / z
sinh_g = lambda z: (sinh(sqrt(z)) / sqrt(z) - 1) / z
emit("cosh_f64", "(cosh r - 1) / r², in z = r²", cosh_g, 6, mpf(0), half**2, lambda z: z)
emit("sinh_f64", "(sinh r / r - 1) / r², in z = r²", sinh_g, 5, mpf(0), half**2, lambda z: z)
emit("cosh_single", "the first in f32 arithmetic", cosh_g, 2, mpf(0), half**2, lambda z: z, single)
emit("sinh_single", "the second in f32 arithmetic", sinh_g, 2, mpf(0), half**2, lambda z: z, single)
tanh_g = lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z
tm = mpf("0.75") ** 2 * mpf("1.0001")
emit("tanh_f64", "(tanh x / x - 1) / x² below 3/4, in z = x²", tanh_g, 13, mpf(0), tm, lambda z: z)
emit("tanh_single", "the same in f32 arithmetic", tanh_g, 5, mpf(0), tm, lambda z: z, single)

def log1p_g(f):
    return mp.log1p(f) if abs(f) > mpf("1e-9") else f - f**2 / 2 + f**3 / 3 - f**4 / 4

emit("log_single", "(log(1 + f) - f + f²/2) / f³ on [√½, √2) in f32 arithmetic",
     lambda f: (log1p_g(f) - f + f * f / 2) / f**3, 8, sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1,
     lambda f: f * f, single)
log_range = sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1
for base, lead in ((2, 1), (10, mpf(1) / 2)):
    scale = 1 / log(mpf(base))
    emit(f"log{base}_single", f"log{base}(1 + f) / f - {float(lead)} on [√½, √2) in f32 arithmetic",
         lambda f: (log1p_g(f) / f if f else mpf(1)) * scale - lead, 9, *log_range,
         lambda f: (f / log1p_g(f) if f else mpf(1)) / scale, single)

zm = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2 * mpf("1.0001")
at_g = lambda z: atanh(sqrt(z)) / sqrt(z)
emit("log_f64", "(2 atanh s / s - 2) / s², in z = s²", lambda z: 2 * (at_g(z) - 1) / z, 7, mpf(0), zm,
     lambda z: z / 2)
emit("log_pow_f32", "the same for pow in f32", lambda z: 2 * (at_g(z) - 1) / z, 6, mpf(0), zm, lambda z: z / 2)
emit("log_pow_f64", "(atanh s / s - 1 - z/3 - z²/5) / z³, in z = s²",
     lambda z: (at_g(z) - 1 - z / 3 - z * z / 5) / z**3, 8, mpf(0), zm, lambda z: z**3)

az = mpf("0.28") ** 2
emit("atanh_f64", "(atanh s / s - 1) / s² up to 0.28, in z = s²", lambda z: (at_g(z) - 1) / z, 12, mpf(0), az,
     lambda z: z)
emit("atanh_single", "the same in f32 arithmetic", lambda z: (at_g(z) - 1) / z, 5, mpf(0), az, lambda z: z, single)

atan_g = lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z
emit("atan_f64", "(atan q / q - 1) / q² up to 1, in z = q²", atan_g, 19, mpf(0), one(0), lambda z: z)
emit("atan_single", "the same in f32 arithmetic", atan_g, 8, mpf(0), one(0), lambda z: z, single)

asin_g = lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z
quarter_unit = mpf("0.2501")
emit("asin_f64", "(asin x / x - 1) / x² up to 1/2, in z = x²", asin_g, 12, mpf(0), quarter_unit, lambda z: z)
emit("asin_single", "the same in f32 arithmetic", asin_g, 5, mpf(0), quarter_unit, lambda z: z, single)

erf_g = lambda x: -log(erfc(x)) / x - 2 / sqrt(pi) if x else mpf(0)
erf_rest = lambda x: erf_g(x) / x if x else 2 / pi
erf_weight = lambda x: x * x * erfc(x) / erf(x) if x else mpf(0)
parts("two_over_root_pi", "2/√π to 106 bits", 2 / sqrt(pi), [53, 53])
parts("two_over_root_pi_single", "the same for f32 arithmetic", 2 / sqrt(pi), [24, 24])
emit("erf_f64", "(-log(erfc x) / x - 2/√π) / x, for x from 0 to 6", erf_rest, 23, mpf("1e-9"), mpf(6), erf_weight,
     fit=minimax)
emit("erf_single", "the same in f32 arithmetic, for x up to 4", erf_rest, 9, mpf("1e-9"), mpf(4), erf_weight, single,
     minimax)


def erfc_g(t):
    u = t + mpf(1) / 2
    x = u * 4 / (1 - u)
    return exp(x * x) * erfc(x) * (x + 4) - mpf(3) / 4


def erfc_range(top):
    end = mpf(top) / (mpf(top) + 4) - mpf(1) / 2
    return mpf("-0.5"), end, lambda t: 1 / (erfc_g(t) + mpf(3) / 4)


emit("erfc_f64", "(x + 4) exp(x²) erfc x - 3/4, in t = x / (x + 4) - 1/2, for x from 0 to 27.4", erfc_g, 21,
     *erfc_range("27.4"), fit=minimax)
emit("erfc_single", "the same in f32 arithmetic, for x up to 10.2", erfc_g, 10, *erfc_range("10.2"), single, minimax)


def stirling_g(z):
    w = 1 / sqrt(z)
    return w * (loggamma(w) - (w - mpf(1) / 2) * log(w) + w - log(2 * pi) / 2)


emit("stirling", "w (log Γ(w) - (w - 1/2) log w + w - log √(2π)) from 10 on, in z = 1 / w²; absolute", stirling_g, 7,
     mpf("1e-12"), mpf("0.01"), sqrt)


def lgamma_g(t):
    x = mpf("1.5625") + t
    if abs((x - 1) * (x - 2)) < mpf("1e-15"):
        x += mpf("1e-20")
    return loggamma(x) / ((x - 1) * (x - 2))


emit("lgamma_middle", "log Γ(x) / ((x - 1) (x - 2)) - 1/2 for x = t + 25/16 in [7/8, 9/4]",
     lambda t: lgamma_g(t) - mpf(1) / 2, 26, mpf("-0.6875"), mpf("0.6875"), lambda t: 1 / lgamma_g(t))

parts("pi_pair", "π to 106 bits", pi, [53, 53])
parts("half_pi_single", "π/2 for f32 arithmetic", pi / 2, [24, 24])
parts("log_root_two_pi", "log √(2π) to 106 bits", log(2 * pi) / 2, [53, 53])
parts("half_pi", "π/2 in two parts of 36 bits, whose products with n < 2^17 are exact, and the rest", pi / 2,
      [36, 36, 53])
parts("half_pi_parts_single", "π/2 in three parts of 13 bits, whose products with n < 2^11 are exact, and the rest",
      pi / 2, [13, 13, 13, 24])
parts("half_pi_pair", "π/2 to 106 bits", pi / 2, [53, 53])
parts("ln2", "ln 2: 40 bits, whose products with an exponent are exact, and the rest", log(mpf(2)), [40, 53])
parts("ln2_pow", "ln 2 in two parts of 40 bits and the rest", log(mpf(2)), [40, 40, 53])
parts("ln2_single", "ln 2 for f32 arithmetic: 15 bits, whose products with an exponent are exact, and the rest",
      log(mpf(2)), [15, 24])
parts("log10_2", "log10 2: 40 bits, whose products with an exponent are exact, and the rest", mp.log10(2), [40, 53])
parts("log10_2_single", "the same for f32 arithmetic", mp.log10(2), [15, 24])
parts("third", "1/3 to 106 bits", mpf(1) / 3, [53, 53])
parts("fifth", "1/5 to 106 bits", mpf(1) / 5, [53, 53])
print("inline constexpr double ln2_nearest = %s;" % double(log(mpf(2))))
print("inline constexpr double log10_e_less_half = %s;" % double(1 / log(mpf(10)) - mpf(1) / 2))
print("inline constexpr double two_over_pi = %s;" % double(2 / pi))
print("inline constexpr double log2_e = %s;\n" % double(1 / log(mpf(2))))

mp.dps = 500
words = int(mp.floor(2 / pi * mpf(2) ** (64 * 19)))
print("/// 64 zero bits, then the binary digits of 2/π.")
print("inline constexpr uint64_t two_over_pi_digits[20] = {")
print("    0,")
for k in range(19):
    print(f"    0x{(words >> (64 * (18 - k))) & ((1 << 64) - 1):016x},")
print("};\n")
print("}  // namespace quern::ir::math::table")

#!/usr/bin/env python3
"""Writes coefficients.h: the polynomials of the math library.

Each is the interpolant at Chebyshev nodes of a function on [0, top] or [-top, top], which is within a
small factor of the minimax polynomial; its relative error against the whole function stands beside it.
Computed with 60 digits. Usage: coefficients.py | clang-format > coefficients.h
"""
import sys
from mpmath import mp, mpf, cos, sin, exp, log, atan, pi, atanh, sqrt, tan, matrix, lu_solve

mp.dps = 60


def double(v):
    return float(v).hex()


def fit(g, degree, low, high):
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


def emit(name, why, g, degree, low, high, weight):
    """`weight(x)`: what an absolute error of g means relative to the whole function."""
    c = fit(g, degree, low, high)
    rounded = [mpf(float(v)) for v in c]
    worst = mpf(0)
    for k in range(2000):
        x = low + (high - low) * mpf(k) / 2000
        if x == 0:
            continue
        p = sum(v * x**j for j, v in enumerate(rounded))
        worst = max(worst, abs((p - g(x)) * weight(x)))
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
emit("sin_f64", "(sin r / r - 1) / r², in z = r²", sin_g, 6, mpf(0), top, lambda z: z)
emit("cos_f64", "(cos r - 1 + r²/2) / r⁴, in z = r²", cos_g, 5, mpf(0), top, lambda z: z * z)
emit("sin_f32", "the same for f32", sin_g, 3, mpf(0), top, lambda z: z)
emit("cos_f32", "the same for f32", cos_g, 3, mpf(0), top, lambda z: z * z)

half = log(mpf(2)) / 2 * mpf("1.001")
exp_g = lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > mpf("1e-18") else mpf(1) / 2 + r / 6
emit("exp_f64", "(exp r - 1 - r) / r²", exp_g, 10, -half, half, lambda r: r * r)
emit("exp_f32", "the same for f32", exp_g, 6, -half, half, lambda r: r * r)

zm = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2 * mpf("1.0001")
at_g = lambda z: atanh(sqrt(z)) / sqrt(z)
emit("log_f64", "(2 atanh s / s - 2) / s², in z = s²", lambda z: 2 * (at_g(z) - 1) / z, 7, mpf(0), zm,
     lambda z: z / 2)
emit("log_f32", "the same for f32", lambda z: 2 * (at_g(z) - 1) / z, 3, mpf(0), zm, lambda z: z / 2)
emit("log_pow_f32", "the same for pow in f32", lambda z: 2 * (at_g(z) - 1) / z, 6, mpf(0), zm, lambda z: z / 2)
emit("log_pow_f64", "(atanh s / s - 1 - z/3 - z²/5) / z³, in z = s²",
     lambda z: (at_g(z) - 1 - z / 3 - z * z / 5) / z**3, 8, mpf(0), zm, lambda z: z**3)

am = tan(pi / 8) ** 2 * mpf("1.0001")
emit("atan_f64", "(atan q / q - 1) / q², in z = q²", lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z, 12, mpf(0), am,
     lambda z: z)
emit("atan_f32", "the same for f32", lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z, 6, mpf(0), am, lambda z: z)

parts("half_pi", "π/2 in three parts of 33 bits, whose products with n < 2^20 are exact, and the rest", pi / 2,
      [33, 33, 33, 53])
parts("half_pi_pair", "π/2 to 106 bits", pi / 2, [53, 53])
parts("quarter_pi", "π/4: 50 bits, whose products with 0 … 4 are exact, and the rest", pi / 4, [50, 53])
parts("ln2", "ln 2: 40 bits, whose products with an exponent are exact, and the rest", log(mpf(2)), [40, 53])
parts("ln2_pow", "ln 2 in two parts of 40 bits and the rest", log(mpf(2)), [40, 40, 53])
parts("third", "1/3 to 106 bits", mpf(1) / 3, [53, 53])
parts("fifth", "1/5 to 106 bits", mpf(1) / 5, [53, 53])
print("inline constexpr double two_over_pi = %s;" % double(2 / pi))
print("inline constexpr double log2_e = %s;" % double(1 / log(mpf(2))))
print("inline constexpr double tan_eighth_pi = %s;\n" % double(tan(pi / 8)))

mp.dps = 500
words = int(mp.floor(2 / pi * mpf(2) ** (64 * 19)))
print("/// 64 zero bits, then the binary digits of 2/π.")
print("inline constexpr uint64_t two_over_pi_digits[20] = {")
print("    0,")
for k in range(19):
    print(f"    0x{(words >> (64 * (18 - k))) & ((1 << 64) - 1):016x},")
print("};\n")
print("}  // namespace quern::ir::math::table")

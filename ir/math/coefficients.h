#pragma once
// Written by coefficients.py: do not edit. Errors are relative to the whole function.
#include <cstdint>

namespace quern::ir::math::table {

/// (sin r / r - 1) / r², in z = r²; error 2^-55.6
inline constexpr double sin_f64[] = {
    -0x1.5555555555555p-3, 0x1.1111111110bb1p-7,   -0x1.a01a019e8357dp-13,
    0x1.71de37961e4c6p-19, -0x1.ae600a926c89ap-26, 0x1.5e0af186af739p-33,
};

/// (cos r - 1 + r²/2) / r⁴, in z = r²; error 2^-60.0
inline constexpr double cos_f64[] = {
    0x1.5555555555555p-5,   -0x1.6c16c16c16966p-10, 0x1.a01a019f4e867p-16,
    -0x1.27e4fa17a41b4p-22, 0x1.1eeb68b109173p-29,  -0x1.907d7aebd5e3dp-37,
};

/// the first in f32 arithmetic; error 2^-26.4
inline constexpr double sin_single[] = {
    -0x1.5555520000000p-3,
    0x1.110c280000000p-7,
    -0x1.9ac96c0000000p-13,
};

/// the second in f32 arithmetic; error 2^-30.7
inline constexpr double cos_single[] = {
    0x1.5555540000000p-5,
    -0x1.6c12d20000000p-10,
    0x1.9bd8640000000p-16,
};

/// (tan r / r - 1) / r² up to π/4, in z = r²; error 2^-53.9
inline constexpr double tan_f64[] = {
    0x1.5555555555554p-2,   0x1.11111111116c3p-3,  0x1.ba1ba1b986141p-5,   0x1.664f48b2f2889p-6,
    0x1.226e2d4a4494dp-7,   0x1.d6d56eb5b9832p-9,  0x1.7d88b0735029fp-10,  0x1.3681d24c5c9c2p-11,
    0x1.e38feb50e90a0p-13,  0x1.f6c860274d6d6p-14, -0x1.b556f822bb091p-19, 0x1.1f62c525eb896p-14,
    -0x1.1b1d97c8a0bacp-15, 0x1.31d64af7d06e3p-16,
};

/// the same in f32 arithmetic; error 2^-26.9
inline constexpr double tan_single[] = {
    0x1.5555560000000p-2, 0x1.1110880000000p-3,  0x1.ba52aa0000000p-5, 0x1.623c880000000p-6,
    0x1.4677ea0000000p-7, 0x1.365b6e0000000p-10, 0x1.f7d64e0000000p-9,
};

/// (exp r - 1 - r) / r²; error 2^-56.1
inline constexpr double exp_f64[] = {
    0x1.0000000000001p-1,  0x1.5555555555556p-3,  0x1.5555555553d37p-5,  0x1.11111111109a6p-7,
    0x1.6c16c1789d1d7p-10, 0x1.a01a01a7cebcdp-13, 0x1.a019b8ca26fcfp-16, 0x1.71de0d85293b8p-19,
    0x1.2891d4ffbb0f9p-22, 0x1.af390ba7e6f47p-26,
};

/// the same for f32 through f64; error 2^-38.2
inline constexpr double exp_f32[] = {
    0x1.0000000000000p-1,  0x1.555555676c1bbp-3,  0x1.5555555c910d6p-5,  0x1.1110c5ed7d6c9p-7,
    0x1.6c1685542fcb2p-10, 0x1.a152099da25bap-13, 0x1.a113930ccbff5p-16,
};

/// the same in f32 arithmetic; error 2^-30.8
inline constexpr double exp_single[] = {
    0x1.0000000000000p-1, 0x1.5555560000000p-3,  0x1.5554e80000000p-5,
    0x1.1110e00000000p-7, 0x1.6d43b00000000p-10, 0x1.a1256c0000000p-13,
};

/// (2^r - 1 - r ln 2) / r²; error 2^-58.3
inline constexpr double exp2_f64[] = {
    0x1.ebfbdff82c58fp-3,  0x1.c6b08d704a0c2p-5,  0x1.3b2ab6fba4e78p-7,  0x1.5d87fe78a526dp-10,
    0x1.430912f86bf4ep-13, 0x1.ffcbfc6712438p-17, 0x1.62c022401d5c2p-20, 0x1.b524fad88ed30p-24,
    0x1.e4cf1cc5c8b02p-28, 0x1.e9d419696e0e9p-32, 0x1.c48f8c2305624p-36,
};

/// the same in f32 arithmetic; error 2^-31.2
inline constexpr double exp2_single[] = {
    0x1.ebfbe00000000p-3,  0x1.c6b08e0000000p-5,  0x1.3b2a520000000p-7,
    0x1.5d87c00000000p-10, 0x1.4413a40000000p-13, 0x1.008a300000000p-16,
};

/// (cosh r - 1) / r², in z = r²; error 2^-64.7
inline constexpr double cosh_f64[] = {
    0x1.0000000000000p-1,  0x1.5555555555555p-5,  0x1.6c16c16c16c18p-10, 0x1.a01a01a0192cep-16,
    0x1.27e4fb7c785a9p-22, 0x1.1eed70f498346p-29, 0x1.944cc8cd82b19p-37,
};

/// (sinh r / r - 1) / r², in z = r²; error 2^-59.6
inline constexpr double sinh_f64[] = {
    0x1.5555555555555p-3,  0x1.1111111111111p-7,  0x1.a01a01a01969bp-13,
    0x1.71de3a5aaefb9p-19, 0x1.ae642c5c1fa33p-26, 0x1.61bff1c64f494p-33,
};

/// the first in f32 arithmetic; error 2^-31.4
inline constexpr double cosh_single[] = {
    0x1.0000000000000p-1,
    0x1.5554e80000000p-5,
    0x1.6d43b00000000p-10,
};

/// the second in f32 arithmetic; error 2^-30.7
inline constexpr double sinh_single[] = {
    0x1.5555560000000p-3,
    0x1.1110e00000000p-7,
    0x1.a1256c0000000p-13,
};

/// (tanh x / x - 1) / x² below 3/4, in z = x²; error 2^-56.0
inline constexpr double tanh_f64[] = {
    -0x1.5555555555555p-2,  0x1.1111111111103p-3,  -0x1.ba1ba1ba19ffap-5,  0x1.664f48822b9cbp-6,
    -0x1.226e354278ef3p-7,  0x1.d6d3ca99100eep-9,  -0x1.7da2eec170ec8p-10, 0x1.3552470fbbd21p-11,
    -0x1.f514457b7f4d4p-13, 0x1.93ddd86c8d8f6p-14, -0x1.3d7e78b822393p-15, 0x1.c8621cbe7832dp-17,
    -0x1.013f9d1806683p-18, 0x1.414b77ffb40c2p-21,
};

/// the same in f32 arithmetic; error 2^-26.8
inline constexpr double tanh_single[] = {
    -0x1.5555540000000p-2, 0x1.1110420000000p-3,  -0x1.b9d7a80000000p-5,
    0x1.6224f40000000p-6,  -0x1.03f8680000000p-7, 0x1.f4890a0000000p-10,
};

/// (log(1 + f) - f + f²/2) / f³ on [√½, √2) in f32 arithmetic; error 2^-28.5
inline constexpr double log_single[] = {
    0x1.5555540000000p-2,  -0x1.fffffc0000000p-3, 0x1.999d5a0000000p-3,
    -0x1.555b4a0000000p-3, 0x1.23d21a0000000p-3,  -0x1.fcf4c60000000p-4,
    0x1.dea2820000000p-4,  -0x1.d635bc0000000p-4, 0x1.1d8ea60000000p-4,
};

/// log2(1 + f) / f - 1.0 on [√½, √2) in f32 arithmetic; error 2^-25.5
inline constexpr double log2_single[] = {
    0x1.c551da0000000p-2, -0x1.7154700000000p-1, 0x1.ec70aa0000000p-2, -0x1.715a700000000p-2,
    0x1.277a520000000p-2, -0x1.eab7aa0000000p-3, 0x1.a38c680000000p-3, -0x1.87f6a20000000p-3,
    0x1.7a63a00000000p-3, -0x1.b84fb60000000p-4,
};

/// log10(1 + f) / f - 0.5 on [√½, √2) in f32 arithmetic; error 2^-25.7
inline constexpr double log10_single[] = {
    -0x1.0d213a0000000p-4, -0x1.bcb7aa0000000p-3, 0x1.287a7e0000000p-3, -0x1.bcbee20000000p-4,
    0x1.63ca6e0000000p-4,  -0x1.2770fc0000000p-4, 0x1.f92fca0000000p-5, -0x1.d7f8900000000p-5,
    0x1.c7a03e0000000p-5,  -0x1.0918080000000p-5,
};

/// (2 atanh s / s - 2) / s², in z = s²; error 2^-60.7
inline constexpr double log_f64[] = {
    0x1.5555555555555p-1, 0x1.9999999999a38p-2, 0x1.2492492476c87p-2, 0x1.c71c720160b47p-3,
    0x1.745cf901605f7p-3, 0x1.3b1c360763b8ap-3, 0x1.0fbe83c2cbcf3p-3, 0x1.0c04595972ab8p-3,
};

/// the same for pow in f32; error 2^-57.6
inline constexpr double log_pow_f32[] = {
    0x1.5555555555558p-1, 0x1.99999999952d7p-2, 0x1.2492492df281ap-2, 0x1.c71c62e3f11e6p-3,
    0x1.7462b51cb66b1p-3, 0x1.39fe51a7c18f9p-3, 0x1.2b5900de53b32p-3,
};

/// (atanh s / s - 1 - z/3 - z²/5) / z³, in z = s²; error 2^-72.1
inline constexpr double log_pow_f64[] = {
    0x1.2492492492492p-3, 0x1.c71c71c71c71ap-4, 0x1.745d1745d1f51p-4,
    0x1.3b13b13a64a8ap-4, 0x1.111111883096bp-4, 0x1.e1e186efd184dp-5,
    0x1.af3cc372304dbp-5, 0x1.8374ca1e0e959p-5, 0x1.92def57541b21p-5,
};

/// (atanh s / s - 1) / s² up to 0.28, in z = s²; error 2^-59.3
inline constexpr double atanh_f64[] = {
    0x1.5555555555555p-2, 0x1.999999999999ap-3, 0x1.2492492492493p-3, 0x1.c71c71c71c564p-4,
    0x1.745d1745e115cp-4, 0x1.3b13b135cde52p-4, 0x1.11111234c72e2p-4, 0x1.e1e18d9bc8bf0p-5,
    0x1.af30b922ce906p-5, 0x1.85896a34364e1p-5, 0x1.6a9ba6d91c912p-5, 0x1.18b1a054935cbp-5,
    0x1.ee9719b706f34p-5,
};

/// the same in f32 arithmetic; error 2^-30.3
inline constexpr double atanh_single[] = {
    0x1.5555560000000p-2, 0x1.99999a0000000p-3, 0x1.24919e0000000p-3,
    0x1.c764400000000p-4, 0x1.6d99400000000p-4, 0x1.849b7e0000000p-4,
};

/// (atan q / q - 1) / q² up to 1, in z = q²; error 2^-53.9
inline constexpr double atan_f64[] = {
    -0x1.5555555555555p-2, 0x1.9999999999620p-3,  -0x1.24924924753ecp-3,  0x1.c71c71bb00a6cp-4,
    -0x1.745d15ee35819p-4, 0x1.3b1399d1dcdc7p-4,  -0x1.110fff599e4d2p-4,  0x1.e1d0239d392a6p-5,
    -0x1.aebbb1647a168p-5, 0x1.841dcf603a209p-5,  -0x1.5d02278205cc7p-5,  0x1.3328700bb8169p-5,
    -0x1.00390504e9f2fp-5, 0x1.843f4bca23369p-6,  -0x1.fd0e4de8fed90p-7,  0x1.123baedb61abdp-7,
    -0x1.ca3677db66678p-9, 0x1.1325b2f8964bep-10, -0x1.a359b96a4eee4p-13, 0x1.2f07811f9f6e9p-16,
};

/// the same in f32 arithmetic; error 2^-25.6
inline constexpr double atan_single[] = {
    -0x1.5555540000000p-2, 0x1.99983c0000000p-3,  -0x1.246cd20000000p-3,
    0x1.c3f1680000000p-4,  -0x1.6295f80000000p-4, 0x1.0001c60000000p-4,
    -0x1.25dc120000000p-5, 0x1.ba9f660000000p-7,  -0x1.38de560000000p-9,
};

/// (asin x / x - 1) / x² up to 1/2, in z = x²; error 2^-57.3
inline constexpr double asin_f64[] = {
    0x1.5555555555556p-3, 0x1.3333333332ec4p-4, 0x1.6db6db6e3292ep-5, 0x1.f1c71c1d4aa0dp-6,
    0x1.6e8bb1d89492bp-6, 0x1.1c4d343fa57f6p-6, 0x1.c9cf3759fd8ffp-7, 0x1.78246f32d075cp-7,
    0x1.524ea8b3aad31p-7, 0x1.653a8f8cfd43cp-8, 0x1.1d661531b222ep-6, -0x1.e7a24f548c99fp-7,
    0x1.d78189767524ep-6,
};

/// the same in f32 arithmetic; error 2^-28.6
inline constexpr double asin_single[] = {
    0x1.5555540000000p-3, 0x1.3334320000000p-4, 0x1.6d5b8e0000000p-5,
    0x1.fd921a0000000p-6, 0x1.18e1f60000000p-6, 0x1.14138c0000000p-5,
};

/// 2/√π to 106 bits
inline constexpr double two_over_root_pi[] = {
    0x1.20dd750429b6dp+0,
    0x1.1ae3a914fed80p-56,
};

/// the same for f32 arithmetic
inline constexpr double two_over_root_pi_single[] = {
    0x1.20dd760000000p+0,
    -0x1.f7ac920000000p-25,
};

/// (-log(erfc x) / x - 2/√π) / x, for x from 0 to 6; error 2^-56.6
inline constexpr double erf_f64[] = {
    0x1.45f306dc9c890p-1,   0x1.a4f4e2a1b299dp-4,   -0x1.396685940258cp-6,  -0x1.b6b68b0d6eb51p-13,
    0x1.bca67b13c4af5p-10,  -0x1.356548cc81f4bp-11, 0x1.b228f24f29bfdp-16,  0x1.0e8156bf6b3dfp-14,
    -0x1.f2bcd05d7cac1p-16, 0x1.c9e8ed2d2a76fp-19,  0x1.7bd7099e19b92p-19,  -0x1.d23af4f311e93p-20,
    0x1.656fcfe88145bp-22,  0x1.2b0a9216210edp-23,  -0x1.32913bf71a468p-23, 0x1.1bf9ee76e487bp-24,
    -0x1.6a2f8b7456a24p-26, 0x1.59751638235c0p-28,  -0x1.f667e9d509d33p-31, 0x1.145a7e647c02ep-33,
    -0x1.bedf1de5e910ap-37, 0x1.f5c23637450a1p-41,  -0x1.5da555fb97ef4p-45, 0x1.c78371a1b2138p-51,
};

/// the same in f32 arithmetic, for x up to 4; error 2^-29.3
inline constexpr double erf_single[] = {
    0x1.45f3080000000p-1,  0x1.a4f4020000000p-4,   -0x1.3946840000000p-6, -0x1.fd53d40000000p-13,
    0x1.d2bfbe0000000p-10, -0x1.796f660000000p-11, 0x1.42243a0000000p-13, -0x1.0a8c000000000p-16,
    0x1.d6cb660000000p-26, 0x1.bbc1e40000000p-24,
};

/// (x + 4) exp(x²) erfc x - 3/4, in t = x / (x + 4) - 1/2, for x from 0 to 27.4; error 2^-55.0
inline constexpr double erfc_f64[] = {
    0x1.624cafc238551p-2,  -0x1.f3fe31ecb49c3p+0, 0x1.8be202d26c726p+1,  -0x1.14eacb1ad018dp+2,
    0x1.52cac2370f242p+2,  -0x1.645fd8a4c9e05p+2, 0x1.38dbd2c934fb1p+2,  -0x1.b00c052590a78p+1,
    0x1.908f46ec4c902p+0,  -0x1.269b608d76714p-3, -0x1.dd28301270c75p-2, 0x1.72ce419676a2ep-2,
    -0x1.e80ec9892ef02p-7, -0x1.3c7f369bbc758p-3, 0x1.3b30f3e7af9fcp-4,  0x1.808b3aa3e7af9p-5,
    -0x1.c78412e39d6a6p-5, -0x1.753da571e7191p-7, 0x1.0ae4d799abd46p-5,  0x1.4a3138c492702p-8,
    -0x1.da8da56d1e47cp-7, -0x1.7abb4ce6bb9a3p-8,
};

/// the same in f32 arithmetic, for x up to 10.2; error 2^-25.8
inline constexpr double erfc_single[] = {
    0x1.624cb00000000p-2, -0x1.f3fe320000000p+0, 0x1.8be2040000000p+1,  -0x1.14eaac0000000p+2,
    0x1.52cabc0000000p+2, -0x1.6466f60000000p+2, 0x1.38d1d80000000p+2,  -0x1.aed2060000000p+1,
    0x1.9790b00000000p+0, -0x1.969d5e0000000p-3, -0x1.8c59700000000p-1,
};

/// w (log Γ(w) - (w - 1/2) log w + w - log √(2π)) from 10 on, in z = 1 / w²; absolute; error
/// 2^-60.9
inline constexpr double stirling[] = {
    0x1.5555555555555p-4,  -0x1.6c16c16c16c0bp-9,  0x1.a01a01a00116ep-11, -0x1.381380e9c5b5dp-11,
    0x1.b9516963cb8bap-11, -0x1.f677b5e471489p-10, 0x1.9e027768c8bd3p-8,  -0x1.80d9b6a8cce49p-6,
};

/// log Γ(x) / ((x - 1) (x - 2)) - 1/2 for x = t + 25/16 in [7/8, 9/4]; error 2^-57.5
inline constexpr double lgamma_middle[] = {
    -0x1.a5f91a2051d64p-6,  -0x1.1b8a2e50cbd00p-3,  0x1.d6539c27ad250p-5,  -0x1.c1c7d1612a19cp-6,
    0x1.cf827ff120ba3p-7,   -0x1.f38bffdf42f03p-8,  0x1.1532daa419832p-8,  -0x1.39fcbfd8cc34cp-9,
    0x1.6907b4b225b85p-10,  -0x1.a3e7487ae75efp-11, 0x1.ecd16f7611590p-12, -0x1.23548a3963d9ep-12,
    0x1.5a8e01a187b1cp-13,  -0x1.9e70c5920c2ecp-14, 0x1.f1c69cb6138ccp-15, -0x1.2b8075f215a86p-15,
    0x1.6a578a8a56cbbp-16,  -0x1.c107001dcdfcbp-17, 0x1.114daddbc4bcap-17, -0x1.1abc94ca553a9p-18,
    0x1.58d9e2b59a81dp-19,  -0x1.8efbcf63c9840p-19, 0x1.ebbee31aa97afp-20, 0x1.2bafcb822bf75p-21,
    -0x1.772af9acd1e89p-22, -0x1.04f90bab65a0ap-20, 0x1.43405aaa90a2bp-21,
};

/// π to 106 bits
inline constexpr double pi_pair[] = {
    0x1.921fb54442d18p+1,
    0x1.1a62633145c07p-53,
};

/// π/2 for f32 arithmetic
inline constexpr double half_pi_single[] = {
    0x1.921fb60000000p+0,
    -0x1.777a5c0000000p-25,
};

/// log √(2π) to 106 bits
inline constexpr double log_root_two_pi[] = {
    0x1.d67f1c864beb5p-1,
    -0x1.65b5a1b7ff5dfp-55,
};

/// π/2 in two parts of 36 bits, whose products with n < 2^17 are exact, and the rest
inline constexpr double half_pi[] = {
    0x1.921fb54440000p+0,
    0x1.68c234c4c0000p-39,
    0x1.98a2e03707345p-77,
};

/// π/2 in three parts of 13 bits, whose products with n < 2^11 are exact, and the rest
inline constexpr double half_pi_parts_single[] = {
    0x1.9210000000000p+0,
    0x1.f6a0000000000p-13,
    0x1.1100000000000p-26,
    0x1.68c2340000000p-39,
};

/// π/2 to 106 bits
inline constexpr double half_pi_pair[] = {
    0x1.921fb54442d18p+0,
    0x1.1a62633145c07p-54,
};

/// ln 2: 40 bits, whose products with an exponent are exact, and the rest
inline constexpr double ln2[] = {
    0x1.62e42fefa2000p-1,
    0x1.9ef35793c7673p-41,
};

/// ln 2 in two parts of 40 bits and the rest
inline constexpr double ln2_pow[] = {
    0x1.62e42fefa2000p-1,
    0x1.9ef35793c6000p-41,
    0x1.673007e5ed5e8p-81,
};

/// ln 2 for f32 arithmetic: 15 bits, whose products with an exponent are exact, and the rest
inline constexpr double ln2_single[] = {
    0x1.62e4000000000p-1,
    0x1.7f7d1c0000000p-20,
};

/// log10 2: 40 bits, whose products with an exponent are exact, and the rest
inline constexpr double log10_2[] = {
    0x1.34413509f6000p-2,
    0x1.9fef311f12b36p-42,
};

/// the same for f32 arithmetic
inline constexpr double log10_2_single[] = {
    0x1.3440000000000p-2,
    0x1.3509f80000000p-18,
};

/// 1/3 to 106 bits
inline constexpr double third[] = {
    0x1.5555555555555p-2,
    0x1.5555555555555p-56,
};

/// 1/5 to 106 bits
inline constexpr double fifth[] = {
    0x1.999999999999ap-3,
    -0x1.999999999999ap-57,
};

inline constexpr double ln2_nearest = 0x1.62e42fefa39efp-1;
inline constexpr double log10_e_less_half = -0x1.0d213ab646bc7p-4;
inline constexpr double two_over_pi = 0x1.45f306dc9c883p-1;
inline constexpr double log2_e = 0x1.71547652b82fep+0;

/// 64 zero bits, then the binary digits of 2/π.
inline constexpr uint64_t two_over_pi_digits[20] = {
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
};

}  // namespace quern::ir::math::table

#pragma once
// Written by coefficients.py: do not edit. Errors are relative to the whole function.
#include <cstdint>

namespace quern::ir::math::table {

/// (sin r / r - 1) / r², in z = r²; error 2^-57.3
inline constexpr double sin_f64[] = {
    -0x1.5555555555555p-3,  0x1.1111111111110p-7,  -0x1.a01a01a019936p-13, 0x1.71de3a54605eep-19,
    -0x1.ae64541266378p-26, 0x1.61217ec01749dp-33, -0x1.ab17a79237a19p-41,
};

/// (cos r - 1 + r²/2) / r⁴, in z = r²; error 2^-60.0
inline constexpr double cos_f64[] = {
    0x1.5555555555555p-5,   -0x1.6c16c16c16966p-10, 0x1.a01a019f4e867p-16,
    -0x1.27e4fa17a41b4p-22, 0x1.1eeb68b109173p-29,  -0x1.907d7aebd5e3dp-37,
};

/// the same for f32; error 2^-35.8
inline constexpr double sin_f32[] = {
    -0x1.555555545dd83p-3,
    0x1.11110deeb33b2p-7,
    -0x1.a013a6edc8f34p-13,
    0x1.6dbdd26f56d2dp-19,
};

/// the same for f32; error 2^-40.1
inline constexpr double cos_f32[] = {
    0x1.5555555502be6p-5,
    -0x1.6c16bf5495185p-10,
    0x1.a015c40ec65ecp-16,
    -0x1.25242a3a17327p-22,
};

/// (exp r - 1 - r) / r²; error 2^-61.7
inline constexpr double exp_f64[] = {
    0x1.0000000000000p-1,  0x1.5555555555557p-3,  0x1.5555555555556p-5,  0x1.11111111100bep-7,
    0x1.6c16c16c162c3p-10, 0x1.a01a01abf85abp-13, 0x1.a01a01a6e1e2ap-16, 0x1.71de01fdbf9cap-19,
    0x1.27e4db46cddd1p-22, 0x1.af4e554377204p-26, 0x1.1f7340dbc337ep-29,
};

/// the same for f32; error 2^-38.2
inline constexpr double exp_f32[] = {
    0x1.0000000000000p-1,  0x1.555555676c1bbp-3,  0x1.5555555c910d6p-5,  0x1.1110c5ed7d6c9p-7,
    0x1.6c1685542fcb2p-10, 0x1.a152099da25bap-13, 0x1.a113930ccbff5p-16,
};

/// (2 atanh s / s - 2) / s², in z = s²; error 2^-60.7
inline constexpr double log_f64[] = {
    0x1.5555555555555p-1, 0x1.9999999999a38p-2, 0x1.2492492476c87p-2, 0x1.c71c720160b47p-3,
    0x1.745cf901605f7p-3, 0x1.3b1c360763b8ap-3, 0x1.0fbe83c2cbcf3p-3, 0x1.0c04595972ab8p-3,
};

/// the same for f32; error 2^-35.8
inline constexpr double log_f32[] = {
    0x1.5555554bb1b2fp-1,
    0x1.9999eb63e783dp-2,
    0x1.245c40aecb50cp-2,
    0x1.ddcf7101b6371p-3,
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

/// (atan q / q - 1) / q², in z = q²; error 2^-58.0
inline constexpr double atan_f64[] = {
    -0x1.5555555555555p-2, 0x1.9999999999997p-3, -0x1.24924924920acp-3, 0x1.c71c71c6ddb13p-4,
    -0x1.745d173561ae0p-4, 0x1.3b13aea970e58p-4, -0x1.1110ceddb22d6p-4, 0x1.e1d8e89291b2fp-5,
    -0x1.aebd143c55a36p-5, 0x1.829c9a46152b5p-5, -0x1.503b1df32251dp-5, 0x1.f5ea203927f08p-6,
    -0x1.c807c7fd8901cp-7,
};

/// the same for f32; error 2^-38.4
inline constexpr double atan_f32[] = {
    -0x1.55555555020aap-2, 0x1.9999982560b1bp-3, -0x1.2491c07b55c0bp-3, 0x1.c6f683c68ff3fp-4,
    -0x1.71d3963f586fcp-4, 0x1.24425ba99f811p-4, -0x1.4b348fe081416p-5,
};

/// π/2 in three parts of 33 bits, whose products with n < 2^20 are exact, and the rest
inline constexpr double half_pi[] = {
    0x1.921fb54400000p+0,
    0x1.0b4611a600000p-34,
    0x1.3198a2e000000p-69,
    0x1.b839a252049c1p-104,
};

/// π/2 to 106 bits
inline constexpr double half_pi_pair[] = {
    0x1.921fb54442d18p+0,
    0x1.1a62633145c07p-54,
};

/// π/4: 50 bits, whose products with 0 … 4 are exact, and the rest
inline constexpr double quarter_pi[] = {
    0x1.921fb54442d18p-1,
    0x1.1a62633145c07p-55,
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

inline constexpr double two_over_pi = 0x1.45f306dc9c883p-1;
inline constexpr double log2_e = 0x1.71547652b82fep+0;
inline constexpr double tan_eighth_pi = 0x1.a827999fcef32p-2;

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

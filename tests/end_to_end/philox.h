#pragma once
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), word 0.
#include <cstdint>

inline uint32_t philox(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1, uint32_t c2,
                       uint32_t c3) {
  for (int round = 0; round < 10; round++) {
    uint64_t p = uint64_t(0xD2511F53u) * c0, q = uint64_t(0xCD9E8D57u) * c2;
    uint32_t n0 = uint32_t(q >> 32) ^ c1 ^ k0, n2 = uint32_t(p >> 32) ^ c3 ^ k1;
    c0 = n0, c1 = uint32_t(q), c2 = n2, c3 = uint32_t(p);
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return c0;
}

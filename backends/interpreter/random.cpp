#include "backends/interpreter/random.h"

#include <numeric>
#include <random>

namespace quern::interpreter {

uint32_t philox(const uint32_t (&counter)[4], const uint32_t (&key)[2]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = uint64_t(0xD2511F53) * c0;
    uint64_t p1 = uint64_t(0xCD9E8D57) * c2;
    uint32_t next0 = uint32_t(p1 >> 32) ^ c1 ^ k0;
    uint32_t next2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c1 = uint32_t(p1);
    c3 = uint32_t(p0);
    c0 = next0;
    c2 = next2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c0;
}

Order::Order(uint64_t count, uint64_t seed) : count_(count) {
  if (seed == 0 || count < 2) return;
  std::mt19937_64 random(seed);
  shift_ = random() % count;
  do {
    factor_ = random() % count;
  } while (std::gcd(factor_, count) != 1);
}

uint64_t Order::operator()(uint64_t k) const {
  if (factor_ == 1 && shift_ == 0) return k;
  __extension__ using Wide = unsigned __int128;
  return uint64_t((Wide(k) * factor_ + shift_) % count_);
}

}  // namespace quern::interpreter

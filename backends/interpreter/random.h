#pragma once
#include <cstdint>

namespace quern::interpreter {

/// Word 0 of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
uint32_t philox(const uint32_t (&counter)[4], const uint32_t (&key)[2]);

/// A permutation of 0 … count - 1, chosen by a seed; seed 0 is the natural order.
class Order {
 public:
  Order(uint64_t count, uint64_t seed);
  uint64_t operator()(uint64_t k) const;

 private:
  uint64_t count_, factor_ = 1, shift_ = 0;
};

}  // namespace quern::interpreter

#pragma once
// The Game of Life on bytes: on a torus, and with dead cells beyond the border.
#include <cstdint>

namespace bench {

class Report;
void cells(Report& report);

namespace reference {
/// A step of n × n cells, each 0 or 1: by rows, and in each the two ends apart.
void life_around(const uint8_t* from, uint8_t* to, int n);
void life_bounded(const uint8_t* from, uint8_t* to, int n);
}  // namespace reference

}  // namespace bench

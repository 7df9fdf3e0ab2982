// The whole surface in one program, run as it stands; its parts are checked in accept_*.cpp.
#include "tests/catch.h"
// `int main() {` without a return becomes a function that needs none.
#define main         \
  accept_status = 0; \
  void accept_program
#include "tests/dsl/surface/accept.cpp"
#undef main

TEST_CASE("accept: the program of ten kernels runs") {
  accept_program();
  CHECK(accept_status == 0);
  qn::Device::best().synchronize();
}

// expect: leave out `std::`
#include <quern/quern.h>
#include <cmath>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&] {
    for (auto i : x) x[i] = std::sin(x[i]);  // here
  };
}

// expect: indexes no array or container | no viable overloaded operator[]
#include <quern/quern.h>
#include <array>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x, std::array<float, 4> w) {
  qn::Kernel k = [&] {
    for (auto i : x) x[i] = w[i % 4];  // here
  };
}

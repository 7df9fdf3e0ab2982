// expect: indexes no array or container | no viable overloaded operator[]
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  const float w[4] = {1, 2, 3, 4};
  qn::Kernel k = [&] {
    for (auto i : x) x[i] = w[i % 4];  // here
  };
}

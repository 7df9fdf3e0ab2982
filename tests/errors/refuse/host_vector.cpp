// expect: indexes no array or container | no viable overloaded operator[]
#include <quern/quern.h>
#include <vector>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x, std::vector<float> w) {
  qn::Kernel k = [&] {
    for (auto i : x) x[i] = w[i];  // here
  };
}

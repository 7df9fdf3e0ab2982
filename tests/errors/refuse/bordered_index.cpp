// expect: an index is an integer
#include <quern/sample.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> u) {
  qn::Kernel k = [&] {
    auto p = bordered(u, border::wrap);
    for (auto i : u) u[i] = p(0.5f * i);  // here
  };
}

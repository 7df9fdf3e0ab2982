// expect: one to three axes
#include <quern/sample.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float, 4> u) {
  qn::Kernel k = [&] {
    auto p = bordered(u, border::clamp);  // here
  };
}

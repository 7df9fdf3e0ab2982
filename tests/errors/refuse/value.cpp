// expect: never changes
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused() {
  qn::Kernel k = [](F32 a) {
    auto t = a * 2;
    t += 1;  // here
  };
}

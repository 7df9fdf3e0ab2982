// expect: takes floating values
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused() {
  qn::Kernel k = [](I32 a) {
    auto c = sqrt(a);  // here
  };
}

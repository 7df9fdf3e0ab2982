// expect: may be negative
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused() {
  qn::Kernel k = [](I32 a, U32 b) {
    auto c = b / a;  // here
  };
}

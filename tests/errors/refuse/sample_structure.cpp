// expect: of structures sample a member
#include <quern/sample.h>
namespace qn = quern;
using namespace qn::lang;

template <class W = HostW>
struct Cell {
  In<W, float> density, heat;
};

void refused(qn::Field<Cell<>> u, qn::Field<float> v) {
  qn::Kernel k = [&] {
    for (auto i : v) v[i] = sample(u, 0.5f * i);  // here
  };
}

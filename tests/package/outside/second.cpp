// A second file with kernels in the same program.
#include <quern/quern.h>

namespace qn = quern;
using namespace qn::lang;

double second(qn::Device& device);
double second(qn::Device& device) {
  qn::Field<double> y{device, {1}};
  qn::Kernel series = [&] {
    Var<double> term = 1.0;
    Var<double> sum = 0.0;
    While(term * 1024.0 >= 1.0) {
      sum += term;
      term *= 0.5;
    }
    y[0] = sum;
  };
  series();
  return y.at(0);
}

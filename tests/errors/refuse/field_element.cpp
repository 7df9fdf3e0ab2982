// expect: vectors, matrices, arrays and structures of them
#include <quern/quern.h>
int main() {
  quern::Field<long double> x{10};  // here
}

// A program with one mistake in the code of a kernel, which a sanitizer must find:
//   quern_planted none | race | field | local
#include <quern/host.h>
#include <quern/quern.h>

#include <cstdio>
#include <map>
#include <string>

namespace qn = quern;
using namespace qn::lang;

namespace {

const qn::Options unchecked = {.checked = false};

void none() {
  qn::Device device("cpu");
  qn::Field<int> x{device, {1'000'000}};
  qn::Field<int> counts{device, {8}};
  qn::Kernel k{[&] {
                 for (auto i : x) {
                   Var<Array<int, 8>> digits;
                   for (auto d : range(8)) digits[d] = i % (d + 1);
                   x[i] = digits[i % 8];
                   atomic_add(counts[i % 8], 1);
                 }
                 Var<int> sum = 0;
                 for (auto i : x) sum += x[i];
                 return sum;
               },
               unchecked};
  const int sum = k();
  std::printf("%d %d\n", sum, counts.at(3));
}

/// Many iterations write one element.
void race() {
  qn::Device device("cpu");
  qn::Field<int> x{device, {64}};
  qn::Kernel k{[&] {
                 for (auto i : range(4'000'000)) x[i % 64] = i;
               },
               unchecked};
  k();
  std::printf("%d\n", x.at(0));
}

/// The element behind the last one is written.
void field() {
  qn::Device device("cpu");
  qn::Field<int> x{device, {100}};
  qn::Kernel k{[&] {
                 for (auto i : x) x[i + 1] = i;
               },
               unchecked};
  k();
  std::printf("%d\n", x.at(99));
}

/// The element behind the last one of an array of the iteration's own is read.
void local() {
  qn::Device device("cpu");
  qn::Field<int> x{device, {8}};
  qn::Kernel k{[&](I32 shift) {
                 for (auto i : x) {
                   Var<Array<int, 8>> own;
                   for (auto j : range(8)) own[j * shift % 8] = i * j;
                   x[i] = own[i + shift];
                 }
               },
               unchecked};
  k(1);
  std::printf("%d\n", x.at(0));
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> planted = {
      {"none", none}, {"race", race}, {"field", field}, {"local", local}};
  const auto found = planted.find(argc == 2 ? argv[1] : "");
  if (found == planted.end()) {
    std::fprintf(stderr, "usage: %s none | race | field | local\n", argv[0]);
    return 2;
  }
  found->second();
}

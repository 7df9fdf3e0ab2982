// Races through several parameters that are passed one field, or views of one.
#include <quern/autodiff.h>
#include <quern/sparse.h>

#include "tests/autodiff/numbers.h"
#include "tests/autodiff/race_checks.h"

using namespace qn::lang;
using namespace qn::test;

namespace {
std::string at(int line) { return "races_places.cpp:" + std::to_string(line); }
}  // namespace

TEST_CASE("races through two parameters that are passed one field are refused, with both lines") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1, 2, 3, 4, 5}), y = numbers(device, {0, 0, 0, 0, 0});
  auto z = numbers(device, {1, 1, 1, 1, 1});
  int line = 0;
  // That `a` and `b` are, before and behind two fields that lie apart.
  const auto refuses = [&](const auto& kernel, auto& a, auto& b, const std::string& what) {
    auto back = qn::vjp(kernel);
    auto push = qn::jvp(kernel);
    for (const std::string& text :
         {message_of([&] { back(a, b); }), message_of([&] { push(a, b); }), message_of([&] {
            qn::Tape tape;
            kernel(a, b);
          })}) {
      INFO(text);
      CHECK(text.find(at(line) + ": ") != std::string::npos);
      CHECK(text.find(what) != std::string::npos);
      CHECK(text.find("another one writes at ") != std::string::npos);
      CHECK(text.find(at(line - 2)) != std::string::npos);
      CHECK(text.find("parameter 1, which lies in the same place") != std::string::npos);
      CHECK(text.find("of parameter 2 here") != std::string::npos);
    }
    CHECK(message_of([&] { back(x, y)(); }) == "");
    CHECK(message_of([&] { push(x, y); }) == "");
    CHECK(message_of([&] { back(a, b); }).find(what) != std::string::npos);
  };
  qn::Kernel read = [&](qn::Field<double> to, qn::Field<double> from) {
    for (auto i : range(4)) {
      to[i] = z[i];
      line = __LINE__ + 1;
      z[i] = from[i + 1] * 2.0;
    }
  };
  refuses(read, x, x, which_first);
  auto same = x.slice(0, 0, 5);
  refuses(read, x, same, which_first);
  qn::Kernel written = [&](qn::Field<double> a, qn::Field<double> b) {
    for (auto i : range(1, 5)) {
      a[i] = z[i];
      line = __LINE__ + 1;
      b[i - 1] = 2.0 * z[i];
    }
  };
  refuses(written, x, x, which_stays);

  qn::Kernel into_captured = [&](qn::Field<double> from) {
    for (auto i : range(4)) {
      x[i] = y[i];
      line = __LINE__ + 1;
      y[i] = 2.0 * from[i + 1];
    }
  };
  CHECK(message_of([&] { qn::jvp(into_captured)(x); }).find(at(line)) != std::string::npos);
  const std::string text = message_of([&] { qn::vjp(into_captured)(x); });
  INFO(text);
  CHECK(text.find(at(line) + ": ") != std::string::npos);
  CHECK(text.find(at(line - 2)) != std::string::npos);
}

TEST_CASE("a component is one place in every layout, and so is a field on a tree") {
  const qn::Device device("cpu");
  qn::Field<float> z{device, {8}};
  qn::Kernel read = [&](qn::Field<vec2> to, qn::Field<float> from) {
    for (auto i : range(7)) {
      to[i].y = z[i];
      z[i] = from[i + 1];
    }
  };
  auto push = qn::jvp(read);
  for (const qn::Layout& layout : {qn::soa, qn::aos, qn::aosoa(4), qn::blocked(2).aos()}) {
    qn::Field<vec2> v{device, {8}, layout};
    CHECK(message_of([&] { push(v, v.component(1)); }).find(which_first) != std::string::npos);
    CHECK(message_of([&] { push(v, v.component(0)); }) == "");
  }
  qn::Tree<1> tree{device, {qn::pointer(64), qn::bitmasked(8)}};
  auto x = tree.field<double>(), y = tree.field<double>();
  auto w = numbers(device, {1, 2, 3, 4});
  qn::Kernel on_tree = [&](qn::Field<double> to, qn::Field<double> from) {
    for (auto i : range(3)) {
      to[i] = w[i];
      w[i] = from[i + 1];
    }
  };
  CHECK(message_of([&] { qn::jvp(on_tree)(x, x); }).find(which_first) != std::string::npos);
  CHECK(message_of([&] { qn::vjp(on_tree)(x, x); }).find(which_first) != std::string::npos);
  CHECK(message_of([&] { qn::jvp(on_tree)(x, y); }) == "");
}

TEST_CASE("what lies in one place is one element: it is stored alike, and read as stored") {
  where_races_are_let_be([](const qn::Device& device) {
    auto x = numbers(device, {1, 2, 3, 4}), y = numbers(device, {0, 0, 0, 0});
    auto z = numbers(device, {0, 0, 0, 0}), w = numbers(device, {0, 0, 0, 0});
    const auto check = [](const auto& kernel, auto& same, auto& other, bool is_race_of_two) {
      auto back = qn::vjp(kernel);
      auto push = qn::jvp(kernel);
      CHECK(message_of([&] { back(same, same)(); }) == "");
      CHECK(message_of([&] { push(same, same); }) == "");
      CHECK((message_of([&] { back(same, other)(); }) != "") == is_race_of_two);
      CHECK((message_of([&] { push(same, other); }) != "") == is_race_of_two);
    };
    qn::Kernel own = [&](qn::Field<double> a, qn::Field<double> b) {
      for (auto i : range(4)) a[i] = b[i] * x[i];
    };
    check(own, y, w, false);
    qn::Kernel behind = [&](qn::Field<double> a, qn::Field<double> b) {
      for (auto i : range(3)) {
        a[i] = x[i];
        b[i + 1] = x[i + 1];
        z[i] = a[i + 1];
      }
    };
    check(behind, y, w, true);
    qn::Kernel alike = [&](qn::Field<double> a, qn::Field<double> b) {
      for (auto i : range(3)) {
        z[i] = a[i];
        z[i + 1] = b[i + 1];
      }
    };
    check(alike, y, w, true);
  });
}

TEST_CASE("of views that overlap otherwise nothing is certain") {
  where_races_are_let_be([](const qn::Device& device) {
    auto x = numbers(device, {1, 2, 3, 4, 5, 6}), z = numbers(device, {1, 1, 1});
    auto w = numbers(device, {0, 0, 0});
    auto low = x.slice(0, 0, 4), high = x.slice(0, 1, 5), back = x.flipped(0);
    qn::Kernel copied = [&](qn::Field<double> to, qn::Field<double> from) {
      for (auto i : range(3)) to[i] = 2.0 * from[i + 1];
    };
    accepted(copied, low, high);
    accepted(copied, low, back);
    CHECK(message_of([&] { qn::jvp(copied)(low, high); }) == "");
    qn::Kernel covered = [&](qn::Field<double> a, qn::Field<double> b) {
      for (auto i : range(3)) {
        a[i + 1] = 2.0 * z[i];
        b[5 - i] = z[i];
        w[i] = a[i];
      }
    };
    accepted(covered, x, back);
  });
}

TEST_CASE("what lies in one place is not asked of fields that were released") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1, 2, 3, 4}), z = numbers(device, {0, 0, 0, 0});
  auto view = x.slice(0, 0, 4);
  qn::Kernel read = [&](qn::Field<double> to, qn::Field<double> from) {
    for (auto i : range(3)) {
      to[i] = z[i];
      z[i] = from[i + 1];
    }
  };
  auto push = qn::jvp(read);
  auto back = qn::vjp(read);
  x.release();
  const int line = __LINE__;
  for (const std::string& text :
       {message_of([&] { push(x, x); }), message_of([&] { push(x, view); }),
        message_of([&] { back(x, x); })}) {
    INFO(text);
    CHECK(text.find("this field was released at ") != std::string::npos);
    CHECK(text.find(at(line - 1)) != std::string::npos);
  }
}

// Races whose derivative has no meaning are refused at their line; what is like them and none is not.
#include <quern/autodiff.h>
#include <quern/sparse.h>

#include <cmath>
#include <vector>

#include "tests/autodiff/numbers.h"
#include "tests/autodiff/race_checks.h"

using namespace qn::lang;
using namespace qn::test;

namespace {
using Numbers = std::vector<double>;

std::string at(int line) { return "races.cpp:" + std::to_string(line); }

/// That either direction, and a tape, is refused at `line` by a text with `what` and with `other`, the
/// place that races with it.
void refused(const auto& kernel, int line, const std::string& what, const std::string& other) {
  for (const std::string& text : {message_of([&] { qn::vjp(kernel)(); }),
                                  message_of([&] { qn::jvp(kernel)(); }), message_of([&] {
                                    qn::Tape tape;
                                    kernel();
                                  })}) {
    INFO(text);
    CHECK(text.find(at(line) + ": ") != std::string::npos);
    CHECK(text.find(what) != std::string::npos);
    CHECK(text.find(other) != std::string::npos);
  }
}
}  // namespace

TEST_CASE("values that iterations store to one element are refused at their line") {
  const qn::Device device("cpu");
  auto x = numbers(device, {1, 2, 3}), y = numbers(device, {0, 0, 0, 0});
  qn::Field<double, 2> z{device, {4, 4}};
  int line = 0;
  qn::Kernel last = [&] {
    line = __LINE__ + 1;
    for (auto i : x) y[0] = x[i] * 2.0;
  };
  refused(last, line, own_values, "the loop at ");
  refused(last, line, "several iterations of the loop at", "write it by an atomic");
  qn::Kernel by_number = [&] {
    for (auto i : range(3)) {
      line = __LINE__ + 1;
      y[2] = x[0] * cast<double>(i);
    }
  };
  refused(by_number, line, own_values, at(line - 2));
  qn::Kernel drawn = [&] {
    line = __LINE__ + 1;
    for (auto i : range(3)) y[1] = x[0] * random<double>();
  };
  refused(drawn, line, own_values, at(line));
  qn::Kernel along_rows = [&] {
    line = __LINE__ + 1;
    for (auto [i, j] : grid(3, 4)) z(i, 2) = x[i] * y[j];
  };
  refused(along_rows, line, own_values, at(line));
  qn::Kernel diagonals = [&] {
    line = __LINE__ + 1;
    for (auto [i, j] : grid(2, 2)) y[i + j] = x[i];
  };
  refused(diagonals, line, own_values, at(line));
  qn::Kernel summed = [&] {
    for (auto i : x) {
      Var<double> sum = 0.0;
      for (auto k : range(3)) sum += x[k] * y[i];
      line = __LINE__ + 1;
      z(1, 1) = sum;
    }
  };
  refused(summed, line, own_values, at(line - 4));
  qn::Kernel in_rounds = [&](I32 rounds) {
    for (auto t : serial(range(rounds))) {
      line = __LINE__ + 1;
      for (auto i : x) {
        for (auto k : range(2)) y[k] = x[i] + cast<double>(t);
      }
    }
  };
  const auto launch = [&](int rounds) {
    qn::vjp(in_rounds)(rounds);
    qn::jvp(in_rounds)(rounds);
  };
  CHECK(message_of([&] { launch(0); }) == "");
  for (const std::string& text :
       {message_of([&] { qn::vjp(in_rounds)(1); }), message_of([&] { qn::jvp(in_rounds)(1); })}) {
    INFO(text);
    CHECK(text.find(at(line + 1) + ": several iterations of the loop at") != std::string::npos);
    CHECK(text.find(at(line) + " write") != std::string::npos);
  }
}

TEST_CASE("elements that iterations store to and neighbours store to or read are refused") {
  const qn::Device device("cpu");
  const int n = 5;
  auto x = numbers(device, {1, 2, 3, 4, 5}), y = numbers(device, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  auto z = numbers(device, {0, 0, 0, 0, 0});
  qn::Field<double, 2> w{device, {5, 5}};
  int line = 0;
  qn::Kernel read = [&] {
    for (auto i : range(n - 1)) {
      y[i] = x[i] * x[i];
      line = __LINE__ + 1;
      z[i] = y[i + 1];
    }
  };
  refused(read, line, which_first, "another one writes at ");
  refused(read, line, "reads an element of the field made at ",
          "races.cpp:" + std::to_string(line - 2));
  qn::Kernel before = [&] {
    for (auto i : range(2, n)) {
      line = __LINE__ + 1;
      y[i] = y[i - 2] * x[i];
    }
  };
  refused(before, line, which_first, at(line));
  qn::Kernel cleared = [&] {
    for (auto i : range(n)) {
      y[i] = 0.0;
      line = __LINE__ + 1;
      z[i] = y[i + 1] * 2.0;
    }
  };
  refused(cleared, line, which_first, at(line - 2));
  qn::Kernel written = [&] {
    for (auto i : range(n - 1)) {
      y[i] = x[i];
      line = __LINE__ + 1;
      y[i + 1] = x[i] * 2.0;
    }
  };
  refused(written, line, which_stays, at(line - 2));
  qn::Kernel added = [&] {
    for (auto i : range(n)) {
      y[i] = 1.0;
      line = __LINE__ + 1;
      atomic_add(y[i + 1], x[i]);
    }
  };
  refused(added, line, which_stays, at(line - 2));
  qn::Kernel strided = [&] {
    for (auto i : range(1, n)) {
      y[2 * i] = x[i];
      line = __LINE__ + 1;
      z[i] = y[2 * i - 2];
    }
  };
  refused(strided, line, which_first, at(line - 2));
  qn::Kernel stepped = [&] {
    for (auto i : range(0, 9, 3)) {
      y[i] = x[i / 3];
      line = __LINE__ + 1;
      z[i / 3] = y[i + 3];
    }
  };
  refused(stepped, line, which_first, at(line - 2));
  qn::Kernel by_first = [&] {
    line = __LINE__ + 1;
    for (auto i : z) z[i] = z[i] / z[0];
  };
  refused(by_first, line, which_first, "an iteration of the loop at ");
  qn::Kernel by_last = [&] {
    for (auto [i, j] : grid(3, range(1, 4))) {
      w(2 - i, j) = x[i] * x[j];
      line = __LINE__ + 1;
      y[j] = w(0, 3) * x[i];
    }
  };
  refused(by_last, line, which_first, at(line - 2));
  qn::Kernel behind = [&] {
    for (auto i : z) {
      line = __LINE__ + 1;
      y[i] = z[i] * 2.0;
      z[1] = x[0];
    }
  };
  refused(behind, line, which_first, at(line + 1));
  // What is read is what was there, or what another iteration has made of it.
  qn::Kernel loaded = [&] {
    for (auto i : range(n)) {
      y[i] = x[i] * x[i];
      line = __LINE__ + 1;
      z[i] = atomic_load(y[i + 1]);
    }
  };
  refused(loaded, line, which_first, at(line - 2));
}

TEST_CASE("how many iterations there are may be known at the launch alone") {
  on_every_device([](const qn::Device& device) {
    auto x = numbers(device, {3, 4, 5}), y = numbers(device, {0, 0, 0, 0});
    int line = 0;
    qn::Kernel over_field = [&line](qn::Field<double> from, qn::Field<double> to) {
      line = __LINE__ + 1;
      for (auto i : from) to[0] = from[i] * from[i];
    };
    auto one = x.slice(0, 1, 2), none = x.slice(0, 1, 1);
    auto back = qn::vjp(over_field);
    auto push = qn::jvp(over_field);
    y.grad().fill(1.0);
    back(one, y)();
    CHECK(qn::to_vector(x.grad()) == Numbers{0, 2 * 4, 0});
    x.dual().fill(1.0);
    push(one, y);
    CHECK(y.dual().at(0) == 2 * 4);
    back(none, y)();
    push(none, y);
    for (const std::string& text :
         {message_of([&] { back(x, y); }), message_of([&] { push(x, y); })}) {
      INFO(text);
      CHECK(text.find(at(line) + ": several iterations of the loop at") != std::string::npos);
      CHECK(text.find("element of parameter 2 here") != std::string::npos);
    }

    qn::Kernel shifted = [&](I32 first, I32 count) {
      for (auto i : range(first, first + count)) {
        y[i] = x[i];
        line = __LINE__ + 1;
        y[i + 2] = 2.0 * x[i];
      }
    };
    y.grad().copy_from(Numbers{1, 10, 100, 1000});
    x.grad().fill(0.0);
    qn::vjp(shifted)(0, 2)();
    CHECK(qn::to_vector(x.grad()) == Numbers{1 + 2 * 100, 10 + 2 * 1000, 0});
    int found = 0;
    const std::string text = error_of([&] { qn::vjp(shifted)(0, 3); }, &found);
    CHECK(found == line);
    CHECK(text.find(which_stays) != std::string::npos);
    CHECK(message_of([&] { qn::jvp(shifted)(0, 2); }) == "");
    CHECK(message_of([&] { qn::jvp(shifted)(0, 3); }).find(which_stays) != std::string::npos);
  });
}

TEST_CASE("a tape refuses a launch before it runs, and goes on") {
  const qn::Device device("cpu");
  auto x = numbers(device, {3, 4, 5}), y = numbers(device, {7, 7, 7});
  qn::Kernel f = [&](I32 count) {
    for (auto i : range(count)) y[0] = x[i] * x[i];
  };
  qn::Tape tape;
  f(1);
  CHECK(y.at(0) == 9);
  CHECK(message_of([&] { f(2); }).find(own_values) != std::string::npos);
  CHECK(y.at(0) == 9);
  y.grad().fill(1.0);
  tape.backward();
  CHECK(qn::to_vector(x.grad()) == Numbers{6, 0, 0});
}

TEST_CASE("gradients and second derivatives are refused, too") {
  const qn::Device device("cpu");
  auto x = numbers(device, {3, 4, 5}), y = numbers(device, {0});
  int line = 0;
  qn::Kernel f = [&]() -> F64 {
    line = __LINE__ + 1;
    for (auto i : x) y[0] = x[i] * x[i];
    return y[0];
  };
  for (const std::string& text : {message_of([&] { qn::grad(f, qn::wrt(x))(); }),
                                  message_of([&] { qn::value_and_grad(f)(); }),
                                  message_of([&] { qn::hessian_vector(f, qn::wrt(x))(); })}) {
    INFO(text);
    CHECK(text.find(at(line) + ": several iterations") != std::string::npos);
  }
}

TEST_CASE("races are found in all modes, types, views and layouts") {
  const qn::Device device("cpu");
  qn::Field<vec2> x{device, {4}};
  qn::Field<float, 2> y{device, {4, 6}, qn::soa};
  auto part = y.slice(1, 1, 5, 2);
  int line = 0;
  const auto check = [&](const qn::Options& options) {
    qn::Kernel components{[&] {
                            for (auto i : x) {
                              x[i].x = 2.0f * x[i].y;
                              line = __LINE__ + 1;
                              y(i, 0) = x[i + 1].x;
                            }
                          },
                          options};
    refused(components, line, which_first, at(line - 2));
    qn::Kernel viewed{[&] {
                        line = __LINE__ + 1;
                        for (auto i : x) part(1, 1) = x[i].x;
                      },
                      options};
    refused(viewed, line, own_values, at(line));
  };
  check({});
  check({.strict = true});
  check({.checked = true});
  check({.checked = false});
}

TEST_CASE(
    "a loop over a tree has as many iterations as it has active elements, which are not known") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(64), qn::bitmasked(8)}};
    auto x = tree.field<double>(), y = tree.field<double>();
    auto z = numbers(device, {0});
    x.set(20, 3.0);
    qn::Kernel over_tree = [&] {
      for (auto i : x) z[0] = x[i] * x[i];
    };
    z.grad().fill(5.0);
    qn::vjp(over_tree)()();
    CHECK(x.grad().at(20) == 5 * 6);
    int line = 0;
    qn::Kernel into_tree = [&] {
      for (auto i : range(4)) {
        x[i] = cast<double>(i) * z[0];
        line = __LINE__ + 1;
        y[i] = x[i + 1];
      }
    };
    const std::string text = message_of([&] { qn::jvp(into_tree)(); });
    CHECK(text.find(at(line) + ": ") != std::string::npos);
    CHECK(text.find(which_first) != std::string::npos);
  });
}

TEST_CASE("what iterations store alike is no race that matters") {
  where_races_are_let_be([](const qn::Device& device) {
    auto x = numbers(device, {3, 4, 5, 6}), y = numbers(device, {0, 0, 0, 0});
    qn::Field<double, 2> z{device, {4, 4}};
    qn::Kernel same = [&](F64 scale) {
      for (auto i : x) {
        y[0] = scale * x[1];
        z(i, 0) = x[i];
      }
    };
    x.dual().fill(1.0);
    qn::jvp(same)({2.0, 10.0});
    CHECK(y.at(0) == 8);
    CHECK(y.dual().at(0) == 2 + 10 * 4);
    CHECK(message_of([&] { qn::vjp(same)(2.0); }) == "");
    qn::Kernel by_rounds = [&] {
      for (auto i : x) {
        Var<double> sum = 0.0;
        for (auto k : range(4)) sum += x[k] * x[k];
        y[1] = sum;
        z(i, 1) = x[i];
      }
    };
    accepted(by_rounds);
    // All of a row store the same, and so do two that share an element.
    qn::Kernel by_row = [&] {
      for (auto [i, j] : grid(4, 4)) {
        y[i] = x[i] * x[i];
        z(i, j) = x[j];
      }
    };
    accepted(by_row);
    qn::Kernel twice = [&] {
      for (auto i : range(2)) {
        y[i] = x[i] * x[i + 1];
        y[i + 1] = x[i + 2] * x[i + 1];
      }
    };
    qn::Kernel on_diagonals = [&] {
      for (auto [i, j] : grid(2, 2)) y[i + j] = x[i + j] * x[i + j];
    };
    accepted(on_diagonals);
    CHECK(message_of([&] { qn::jvp(twice)(); }) == "");
  });
}

TEST_CASE("what is no race for certain, or none of floats that vary, is accepted") {
  where_races_are_let_be([](const qn::Device& device) {
    auto x = numbers(device, {3, 4, 5, 6}), y = numbers(device, {0, 0, 0, 0, 0, 0, 0, 0, 0});
    auto w = numbers(device, {1, 1, 1, 1});
    qn::Field<int> where{device, {4}};
    where.copy_from(std::vector<int>{0, 1, 2, 3});
    qn::Field<int> rounds{device, {1}};
    qn::Kernel one_iteration = [&] {
      for (auto i : range(1)) y[0] = x[i];
    };
    accepted(one_iteration);
    qn::Kernel too_few = [&] {
      for (auto i : range(3)) {
        y[i] = x[i];
        y[i + 3] = x[i] * x[i];
      }
    };
    accepted(too_few);
    qn::Kernel in_turn = [&] {
      for (auto i : serial(range(4))) y[0] = x[i];
    };
    accepted(in_turn);
    qn::Kernel in_rounds = [&] {
      for (auto i : range(4)) {
        for (auto k : range(4)) {
          y[i] = x[k] * x[i];
          w[i] = y[i] + x[k];
        }
      }
    };
    accepted(in_rounds);
    qn::Kernel in_steps = [&] {
      for (auto t : serial(range(1, 5))) {
        for (auto i : range(t, t + 1)) y[0] = x[i - 1] * x[3];
      }
    };
    accepted(in_steps);
    qn::Kernel chosen = [&] {
      for (auto i : x) {
        If(i == 2) { y[0] = x[i]; }
      }
    };
    accepted(chosen);
    qn::Kernel by_data = [&] {
      for (auto i : x) y[where[i]] = x[i];
    };
    accepted(by_data);
    qn::Kernel wrapped = [&] {
      for (auto i : range(4)) y[(i + 1) % 4] = x[i];
    };
    accepted(wrapped);
    qn::Kernel red_black = [&] {
      for (auto i : range(3)) y[2 * i + 1] = y[2 * i] * y[2 * i + 2];
    };
    accepted(red_black);
    qn::Kernel apart = [&] {
      for (auto i : range(4)) {
        y[i] = x[i];
        w[i] = y[8] * x[i];
      }
    };
    accepted(apart);
    qn::Kernel border = [&] {
      for (auto i : range(1, 4)) y[i] = x[i] / y[0];
    };
    accepted(border);
    qn::Kernel all_set_first = [&] {
      for (auto i : x) {
        y[1] = 2.0 * x[0];
        w[i] = y[i] * x[i];
      }
    };
    accepted(all_set_first);
    qn::Kernel of_quotients = [&] {
      for (auto i : range(4)) {
        y[0] = x[i / 4];
        y[1] = x[min(i, 0)];
        y[2] = select(i < 8, x[2], x[3]);
      }
    };
    accepted(of_quotients);
    qn::Kernel unknown_rounds = [&] {
      for (auto i : x) {
        for (auto k : range(rounds[0])) y[0] = x[i] * cast<double>(k);
      }
    };
    accepted(unknown_rounds);
    qn::Kernel guarded = [&](I32 is_on) {
      If(is_on == 1) {
        for (auto i : x) y[0] = x[i];
      }
    };
    accepted(guarded, 0);
    qn::Kernel constants = [&] {
      for (auto i : x) {
        y[0] = stop_gradient(x[i]);
        w[i] = x[i] * 2.0;
      }
    };
    accepted(constants);
    qn::Kernel compared = [&] {
      for (auto i : range(3)) {
        y[i] = x[i];
        where[i] = select(y[i + 1] > 1.0, 1, 0);
        check(y[i + 1] < 100.0, "large");
      }
    };
    accepted(compared);
    qn::Kernel numbers_alone = [&] {
      for (auto i : x) {
        rounds[0] = i;
        y[i] = x[i];
      }
    };
    accepted(numbers_alone);
  });
}

TEST_CASE("a race of what does not vary with what a derivative is taken by is accepted") {
  const qn::Device device("cpu");
  auto x = numbers(device, {3, 4, 5, 6}), y = numbers(device, {0}),
       w = numbers(device, {1, 2, 3, 4});
  qn::Field<double, 0> loss{device};
  qn::Kernel f = [&](F64 scale) -> F64 {
    Var<double> sum = 0.0;
    for (auto i : x) {
      y[0] = w[i];
      sum += scale * x[i];
    }
    return sum;
  };
  const double slope = qn::grad<0>(f)(2.0);
  CHECK(slope == 18);
  CHECK(message_of([&] { qn::grad(f, qn::wrt(w))(2.0); }) == "");  // nor is y asked for
  qn::Kernel measure = [&] {
    for (auto i : x) {
      y[0] = w[i];
      atomic_add(loss(), x[i] * x[i]);
    }
  };
  qn::Tape tape{qn::wrt(x)};
  measure();
  loss.grad().fill(1.0);
  tape.backward();
  CHECK(qn::to_vector(x.grad()) == Numbers{6, 8, 10, 12});
}

TEST_CASE("what an iteration reads of its own stores is no other race") {
  where_races_are_let_be([](const qn::Device& device) {
    auto x = numbers(device, {3, 4, 5}), y = numbers(device, {0, 0, 0});
    qn::Field<double, 2> z{device, {3, 3}};
    // Every j stores the same to y[i], and reads it behind that.
    qn::Kernel f = [&] {
      for (auto [i, j] : grid(3, 3)) {
        y[i] = x[i] * x[i];
        If(j == 1) { x[i] = x[i]; }
        z(i, j) = y[i] * 2.0;
      }
    };
    x.dual().fill(1.0);
    qn::jvp(f)();
    for (int i = 0; i < 3; i++) CHECK(z.dual().at(i, 2) == 4 * x.at(i));
  });
}

// What programs do besides computing: lifetimes, many launches, full buffers, recordings that end
// in exceptions.
#include <cstdio>
#include <optional>
#include <stdexcept>

#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/output.h"

using namespace qn::lang;

namespace {
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

// ---- lifetimes

TEST_CASE("results outlive their kernel and its fields") {
  on_every_device([](qn::Device& device) {
    std::optional<qn::Result<int, float>> kept;
    {
      qn::Field<int> x{device, {1000}};
      x.fill(3);
      qn::Kernel k = [&] {
        Var<int> sum = 0;
        Var<float> top = 0;
        for (auto i : x) {
          sum += x[i];
          atomic_max(top, cast<float>(i));
        }
        return result(sum, top);
      };
      kept.emplace(k());
    }
    auto [sum, top] = *kept;
    CHECK(int(sum) == 3000);
    CHECK(float(top) == 999.0f);
  });
}

TEST_CASE("fields that are destroyed or released while launches use them") {
  on_every_device([](qn::Device& device) {
    const int n = 20000;
    qn::Field<int> out{device, {n}};
    qn::Kernel step = [](qn::Field<int> from, qn::Field<int> to) {
      for (auto i : to) {
        Var<int> v = from[i];
        for (auto r : range(50)) v += r % 2;
        to[i] = to[i] + v;
      }
    };
    for (int round = 0; round < 20; round++) {
      qn::Field<int> a{device, {n}}, b{device, {n}};
      a.fill(round);
      step(a, b);    // b = round + 25
      step(b, out);  // out += round + 50
      if (round % 2) a.release();
    }
    std::vector<int> got = qn::to_vector(out);
    CHECK(got == std::vector<int>(size_t(n), 19 * 20 / 2 + 20 * 50));
  });
}

TEST_CASE("a device handle may go before its fields and kernels") {
  on_every_device([](qn::Device& device) {
    std::optional<qn::Device> own(qn::Device(device.name()));
    qn::Field<int> x{*own, {5}};
    qn::Kernel k = [&] {
      for (auto i : x) x[i] = i;
    };
    own.reset();
    k();
    CHECK(x.at(4) == 4);
  });
}

TEST_CASE("every use of a released field names both lines") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}}, y{device, {4}};
    qn::Kernel with_parameter = [](qn::Field<int> a) {
      for (auto i : a) a[i] = 1;
    };
    with_parameter(x);
    const std::string released = "robustness.cpp:" + std::to_string(__LINE__ + 1);
    x.release();
    int line = 0;
    auto refused = [&](int here, const std::string& text) {
      CHECK(has(text, released));
      CHECK(line == here);
    };
    refused(__LINE__, error_of([&] { with_parameter(x); }, &line));
    refused(__LINE__, error_of([&] { x.fill(1); }, &line));
    refused(__LINE__, error_of([&] { x.at(0); }, &line));
    refused(__LINE__, error_of([&] { x.set(0, 1); }, &line));
    refused(__LINE__, error_of([&] { y.swap(x); }, &line));
    refused(__LINE__, error_of([&] { qn::to_vector(x); }, &line));
    refused(__LINE__, error_of([&] { x.release(); }, &line));
    with_parameter(y);
    CHECK(y.at(3) == 1);
  });
}

TEST_CASE("a handle that was moved from") {
  on_every_device([](qn::Device& device) {
    qn::Kernel k = [](I32 a) { return a + 1; };
    auto moved = std::move(k);
    int line = 0;
    const int here = __LINE__ + 1;
    std::string text = error_of([&] { k(1); }, &line);
    CHECK(has(text, "moved from"));
    CHECK(line == here);
    auto result = moved(1);
    auto taken = std::move(result);
    CHECK(has(error_of([&] { (void)int(result); }), "moved from"));
    CHECK(int(taken) == 2);
    qn::Device other = std::move(device);  // copies name the same device
    CHECK(std::string(device.name()) == other.name());
    device.synchronize();
  });
}

// ---- random numbers

TEST_CASE("a seed begins a sequence of random numbers, wherever in the program") {
  on_every_device([](qn::Device& device) {
    qn::Field<float> x{device, {50}};
    qn::Kernel draw = [&] {
      for (auto i : x) x[i] = random<float>();
    };
    qn::Kernel other = [&] { return random<float>() + x[0] * 0; };
    auto sequence = [&] {
      std::vector<std::vector<float>> all;
      for (int k = 0; k < 3; k++) {
        draw();
        all.push_back(qn::to_vector(x));
        all.push_back({float(other())});
      }
      return all;
    };
    device.seed(2026);
    auto first = sequence();
    CHECK(first[0] != first[2]);
    CHECK(first[1] != first[3]);
    CHECK(sequence() != first);
    other();
    device.seed(2026);
    CHECK(sequence() == first);
    device.seed(2027);
    CHECK(sequence() != first);
  });
}

// ---- many

TEST_CASE("ten thousand launches without a read") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    qn::Kernel plain{[&](I32 a) {
                       for (auto i : x) x[i] = x[i] + a;
                     },
                     {.checked = false}};
    qn::Kernel checked{[&](I32 a) {
                         for (auto i : x) x[i] = x[i] + a;
                       },
                       {.checked = true}};
    for (int k = 0; k < 10000; k++) (k % 2 ? plain : checked)(k % 3);
    int want = 0;
    for (int k = 0; k < 10000; k++) want += k % 3;
    CHECK(qn::to_vector(x) == std::vector<int>(4, want));
  });
}

TEST_CASE("an error among thousands of launches is not lost") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    int line = 0;
    qn::Kernel k{[&](I32 at) {
                   line = __LINE__ + 1;
                   for (auto i : range(1)) x[i + at] = 1;
                 },
                 {.checked = true}};
    int at = 0;
    std::string text = error_of(
        [&] {
          for (int r = 0; r < 5000; r++) k(r == 10 ? 77 : 0);
          device.synchronize();
        },
        &at);
    CHECK(has(text, "77"));
    CHECK(at == line);
    device.synchronize();
    k(1);
    CHECK(x.at(1) == 1);
  });
}

namespace {
size_t count_of(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) n++;
  return n;
}
}  // namespace

TEST_CASE("more printed lines than a device keeps: the loss is told, later lines appear") {
  on_every_device([](qn::Device& device) {
    qn::Kernel talk = [](qn::Field<int> x) {
      for (auto i : x) print("line {} of {}", i, 1.5f);
    };
    qn::Field<int> many{device, {5000}}, few{device, {3}};
    std::string text = output_of([&] {
      talk(many);
      device.synchronize();
    });
    CHECK(count_of(text, "line ") == 4096);
    CHECK(has(text, "904 further lines were lost"));
    text = output_of([&] {
      talk(few);
      device.synchronize();
    });
    CHECK(count_of(text, "line ") == 3);
    for (const char* line : {"line 0 of 1.5\n", "line 1 of 1.5\n", "line 2 of 1.5\n"})
      CHECK(count_of(text, line) == 1);
  });
}

// ---- recordings

TEST_CASE("an exception of the program's own passes through a recording") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {4}};
    auto record = [&](bool bad) {
      return qn::Kernel{[&, bad] {
        for (auto i : x) {
          If(i > 1) {
            if (bad) throw std::out_of_range("mine");
            x[i] = 7;
          }
        }
      }};
    };
    std::string text;
    try {
      record(true);
    } catch (const std::out_of_range& e) {
      text = e.what();
    }
    CHECK(text == "mine");
    record(false)();
    CHECK(qn::to_vector(x) == std::vector<int>{0, 0, 7, 7});
  });
}

TEST_CASE("an exception caught inside a recording: what was recorded before it stays") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {6}}, y{device, {6}};
    auto refuse = [](bool now) {
      if (now) throw std::out_of_range("mine");
      return true;
    };
    int caught = 0;
    qn::Kernel k = [&] {
      for (auto i : x) {
        try {
          If(i > 1) {
            x[i] = 7;
            If(i > 3) {
              x[i] = 8;
              refuse(true);
              x[i] = 9;
            }
            else x[i] = 10;
            x[i] = 11;
          }
        } catch (const std::out_of_range&) {
          caught++;
        }
        y[i] = x[i] + 1;
      }
      try {
        for (auto i : y) {
          y[i] = y[i] * 2;
          for (auto [a, b] : grid(3, 3)) {
            y[i] = y[i] + 1 + a - a + b - b;
            refuse(true);
          }
        }
      } catch (const std::out_of_range&) {
        caught++;
      }
      Var<int> n = 0;
      try {
        While(n < 5) {
          n = n + 1;
          refuse(true);
        }
      } catch (const std::out_of_range&) {
        caught++;
      }
      try {  // there is no loop without a condition
        While(refuse(true) && n < 1000) n = n + 1;
      } catch (const std::out_of_range&) {
        caught++;
      }
      try {
        qn::Func<I32(I32)> f = [&](I32 a) {
          If(a > 0) refuse(true);
          return a;
        };
      } catch (const std::out_of_range&) {
        caught++;
      }
      return n;
    };
    CHECK(caught == 5);
    CHECK(int(k()) == 5);
    CHECK(qn::to_vector(x) == std::vector<int>{0, 0, 7, 7, 8, 8});
    CHECK(qn::to_vector(y) == std::vector<int>{11, 11, 25, 25, 27, 27});
  });
}

TEST_CASE("a kernel keeps a field that was made while it was recorded; copies share it") {
  on_every_device([](qn::Device& device) {
    qn::Kernel next = [&] {
      qn::Field<int> memory{device, {1}};
      memory[0] = memory[0] + 1;
      return memory[0];
    };
    auto copy = next;
    CHECK(int(next()) == 1);
    CHECK(int(copy()) == 2);
    CHECK(int(next()) == 3);
  });
}

TEST_CASE("a function that calls itself is refused with its line, and the next one works") {
  on_every_device([](qn::Device& device) {
    qn::Field<float> x{device, {4}};
    int line = 0;
    const int here = __LINE__ + 2;
    std::string text =
        error_of([&] { qn::Func<F32(F32)> f = [&](F32 a) { return f(a - 1) * a; }; }, &line);
    CHECK(has(text, "call itself"));
    CHECK(line == here);
    qn::Func twice = [](F32 a) { return a * 2; };
    qn::Kernel k = [&] {
      for (auto i : x) x[i] = twice(twice(cast<float>(i)));
    };
    k();
    CHECK(x.at(3) == 12.0f);
  });
}

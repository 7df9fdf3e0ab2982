// Those who observe launches are told of each call once, with what it reads and writes.
#include <quern/algorithms.h>

#include <functional>
#include <stdexcept>

#include "quern/runtime/observer.h"
#include "tests/end_to_end/devices.h"

using namespace quern::lang;

namespace {

using namespace qn::runtime;

/// Writes down what it is told: "name(rw, r, -)", and a + behind what was submitted.
class Notes : public LaunchObserver {
 public:
  void before(const LaunchEvent& event) override {
    std::string text(event.name);
    const char* separator = "(";
    REQUIRE(event.parameters.size() == event.arguments.size());
    for (const Image::Parameter& p : event.parameters) {
      text += std::exchange(separator, ", ");
      text += p.reads && p.writes ? "rw" : p.reads ? "r" : p.writes ? "w" : "-";
    }
    told.push_back(text + ")");
    lines.push_back(event.loc.line);
    devices.push_back(event.device->name());
    has_recording.push_back(event.recording != nullptr);
  }
  void after(const LaunchEvent& event) noexcept override {
    if (!told.empty() && told.back().starts_with(event.name)) told.back() += "+";
  }
  std::vector<std::string> told, devices;
  std::vector<int> lines;
  std::vector<bool> has_recording;
};

}  // namespace

TEST_CASE("an observer is told of launches, and of an algorithm as one") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {5000}}, y{device, {5000}};
    qn::Kernel add{[&](I32 a) {
                     for (auto i : y) y[i] += a * x[i];
                   },
                   {.name = "add"}};
    qn::Kernel nothing{[](qn::Field<int>) {}, {.name = "nothing"}};
    add(1);
    Notes notes;
    int line = 0;
    {
      Observation observation(notes);
      line = __LINE__ + 1;
      add(2);
      nothing(x);
      qn::inclusive_scan(x, y);
      const int64_t sum = qn::sum(y);
      CHECK(sum == 0);
      qn::sort_by_key(x, y);
    }
    add(3);
    CHECK(notes.told == std::vector<std::string>{"add(-, rw, r)+", "nothing(-)+",
                                                 "inclusive_scan(r, w)+", "sum(r)+",
                                                 "sort_by_key(rw, rw)+"});
    CHECK(notes.lines == std::vector<int>{line, line + 1, line + 2, line + 3, line + 5});
    CHECK(notes.devices == std::vector<std::string>(5, device.name()));
    CHECK(notes.has_recording == std::vector<bool>{true, true, false, false, false});
  });
}

TEST_CASE("an observer may ask for the kernels that algorithms consist of") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {5000}};
    Notes kernels, calls;
    Observation first(kernels, Observation::kernels), second(calls);
    qn::inclusive_scan(x, x);
    CHECK(calls.told == std::vector<std::string>{"inclusive_scan(r, w)+"});
    // Totals of the chunks, a scan of these, the chunks.
    CHECK(kernels.told.size() == 3);
    for (const std::string& name : kernels.told) CHECK(name.starts_with("scan("));
  });
}

TEST_CASE("what an observer throws the launch throws, and nothing runs") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {8}};
    qn::Kernel fill = [&] {
      for (auto i : x) x[i] = 1;
    };
    struct Refusing : LaunchObserver {
      void before(const LaunchEvent&) override { throw std::runtime_error("not now"); }
      void after(const LaunchEvent&) noexcept override { ends++; }
      int ends = 0;
    } refusing;
    {
      Observation observation(refusing);
      CHECK_THROWS_AS(fill(), std::runtime_error);
      CHECK_THROWS_AS(qn::sort(x), std::runtime_error);
    }
    CHECK(refusing.ends == 0);
    CHECK(qn::to_vector(x) == std::vector<int>(8));
    fill();
    CHECK(qn::to_vector(x) == std::vector<int>(8, 1));
  });
}

TEST_CASE("launches of an observer's own are told to nobody") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {8}}, copy{device, {8}};
    qn::Kernel save = [&] {
      for (auto i : copy) copy[i] = x[i];
    };
    qn::Kernel fill = [&] {
      for (auto i : x) x[i] = 1;
    };
    struct Saving : LaunchObserver {
      explicit Saving(std::function<void()> f) : act(std::move(f)) {}
      void before(const LaunchEvent&) override {
        calls++;
        act();
      }
      std::function<void()> act;
      int calls = 0;
    } saving([&] { save(); });
    Observation observation(saving);
    fill();
    fill();
    CHECK(saving.calls == 2);
    CHECK(qn::to_vector(copy) == std::vector<int>(8, 1));  // as it was before the second
  });
}

TEST_CASE("the version of a field's memory changes with each call that writes it") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {8}}, y{device, {8}};
    qn::Kernel copy = [&] {
      for (auto i : y) y[i] = x[i];
    };
    struct Versions : LaunchObserver {
      void before(const LaunchEvent& e) override { note(e); }
      void after(const LaunchEvent& e) noexcept override { note(e); }
      void note(const LaunchEvent& e) {
        for (const Argument& a : e.arguments) seen.push_back(a.storage->version());
      }
      std::vector<uint64_t> seen;
    } versions;
    Observation observation(versions);
    copy();
    x.swap(y);
    copy();
    // Captured in the order of their first use: y, x, whatever comes first in each of four lines.
    REQUIRE(versions.seen.size() == 8);
    const auto& v = versions.seen;
    const size_t written = v[0] != v[2] ? 0 : 1, read = 1 - written;
    CHECK(v[written] != v[2 + written]);
    CHECK(v[read] == v[2 + read]);
    CHECK(v[4 + read] == v[2 + written]);  // exchanged
    CHECK(v[4 + written] == v[read]);
    CHECK(v[6 + written] != v[4 + written]);
    CHECK(v[6 + read] == v[4 + read]);
  });
}

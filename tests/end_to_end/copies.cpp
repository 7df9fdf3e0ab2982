// Atomics on many elements of a field: a chunk of a CPU adds them up in a copy of its own, where that
// pays, and nobody sees whether it did.
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <vector>

#include "quern/runtime/observer.h"
#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

const qn::Options fast = {.checked = false};

/// A number for each iteration, the same on host and device.
int mixed(int i) { return int((uint32_t(i) * 2654435761u) >> 8); }
I32 mixed(I32 i) { return cast<int>((cast<uint32_t>(i) * 2654435761u) >> 8u); }

/// What a device has allocated, around the launches that it is told of.
class Allocated : public qn::runtime::LaunchObserver {
 public:
  void before(const qn::runtime::LaunchEvent& event) override {
    before_ = event.device->allocated();
  }
  void after(const qn::runtime::LaunchEvent& event) noexcept override {
    more = event.device->allocated() - before_;
  }
  uint64_t more = 0;  ///< bytes, by the last launch

 private:
  uint64_t before_ = 0;
  qn::runtime::Observation observation_{*this};
};

}  // namespace

TEST_CASE("a CPU makes copies where there are updates enough") {
  qn::Device device("cpu");
  const Allocated allocated;
  const auto bytes = [&](int size, int iterations) {
    qn::Field<float> x{device, {size}};
    qn::Kernel update{[&](I32 n) {
                        for (auto i : range(n)) x[mixed(i) % size] += 1;
                      },
                      fast};
    update(iterations);
    return allocated.more;
  };
  const uint64_t block = bytes(900, 1);  // of arguments: copies of 4 elements would be small
  CHECK(block < 4 * 900);
  CHECK(bytes(900, 100'000) >= block + 4 * 4 * 900);  // in turns, by one thread, too
  CHECK(bytes(900, 400) == block);
  CHECK(bytes(200'000, 100'000) == block);
}

TEST_CASE("updates of many elements, whatever the sizes") {
  on_every_device([](qn::Device& device) {
    // Copies in turns, one copy, and more than a chunk has a copy of; few iterations and many.
    for (int size : {1, 2, 255, 1024, 1025, 30'000, 140'000})
      for (int n : {0, 1, 7, 3000, 200'001}) {
        qn::Field<int> sums{device, {size}}, least{device, {size}};
        qn::Field<double> products{device, {size}};
        qn::Kernel update{[&](I32 count) {
                            for (auto i : range(count)) {
                              I32 at = mixed(i) % size;
                              sums[at] += i;
                              atomic_min(least[at], -i);
                              atomic_mul(products[at],
                                         select(i % 3 == 0, 2.0, select(i % 3 == 1, 0.5, -1.0)));
                            }
                          },
                          fast};
        std::vector<int> sums_wanted(size_t(size), 17), least_wanted(size_t(size), -40);
        std::vector<double> products_wanted(size_t(size), 3);
        for (int i = 0; i < n; i++) {
          const size_t at = size_t(mixed(i) % size);
          sums_wanted[at] = int(uint32_t(sums_wanted[at]) + uint32_t(i));
          least_wanted[at] = std::min(least_wanted[at], -i);
          products_wanted[at] *= i % 3 == 0 ? 2.0 : i % 3 == 1 ? 0.5 : -1.0;
        }
        sums.fill(17);
        least.fill(-40);
        products.fill(3);
        update(n);
        INFO(size << " elements, " << n << " iterations");
        CHECK(qn::to_vector(sums) == sums_wanted);
        CHECK(qn::to_vector(least) == least_wanted);
        CHECK(qn::to_vector(products) == products_wanted);
      }
  });
}

TEST_CASE("updates of components of different types, in any layout and from any first index") {
  on_every_device([](qn::Device& device) {
    const int height = 9, width = 31, n = 40'000;
    std::map<std::pair<int, int>, std::array<double, 3>> wanted;
    std::map<std::pair<int, int>, uint64_t> bits_wanted;
    for (int i = 0; i < n; i++) {
      const std::pair at{mixed(i) % height - 4, mixed(i + n) % width + 10};
      wanted[at][0] += 0.25 * (i % 8);
      wanted[at][1] += 1;
      wanted[at][2] += i;
      bits_wanted[at] ^= uint64_t(i) << (i % 40);
    }
    for (const qn::Layout& layout :
         {qn::soa, qn::aos, qn::aos.order(1, 0), qn::blocked(4, 8), qn::aosoa(2, 4)}) {
      const qn::Layout placed = layout.offset(-4, 10);
      qn::Field<float, 2> weight{device, {height, width}, placed};
      qn::Field<qn::Vec<int, 3>, 2> count{device, {height, width}, placed};
      qn::Field<double, 2> moment{device, {height, width}, placed};
      qn::Field<uint64_t, 2> bits{device, {height, width}, placed};
      qn::Kernel update{[&] {
                          for (auto i : range(n)) {
                            I32 row = mixed(i) % height - 4, column = mixed(i + n) % width + 10;
                            weight(row, column) += 0.25f * cast<float>(i % 8);
                            count(row, column).y += 1;
                            atomic_max(count(row, column).z, i);
                            moment(row, column) += cast<double>(i);
                            atomic_xor(bits(row, column), cast<uint64_t>(i)
                                                              << cast<uint64_t>(i % 40));
                          }
                        },
                        fast};
      update();
      for (int row = -4; row < height - 4; row++)
        for (int column = 10; column < width + 10; column++) {
          INFO(row << ", " << column);
          const auto& sums = wanted[{row, column}];
          CHECK(weight.at(row, column) == float(sums[0]));
          CHECK(count.at(row, column).x == 0);
          CHECK(count.at(row, column).y == int(sums[1]));
          CHECK(moment.at(row, column) == sums[2]);
          CHECK(bits.at(row, column) == bits_wanted[{row, column}]);
        }
    }
  });
}

TEST_CASE("an element that no update comes to keeps its bits") {
  on_every_device([](qn::Device& device) {
    const int size = 100;
    qn::Field<float> x{device, {size}};
    const std::vector<float> start(size, std::bit_cast<float>(0x7fa00001u));  // a signalling NaN
    x.copy_from(start);
    qn::Kernel update{[&](I32 step) {
                        for (auto i : range(10'000)) x[i % (size / step) * step] += 1;
                      },
                      fast};
    update(2);
    for (int k = 0; k < size; k++) {
      INFO(k);
      if (k % 2 == 1) CHECK(std::bit_cast<uint32_t>(x.at(k)) == 0x7fa00001u);
      if (k % 2 == 0) CHECK(x.at(k) != x.at(k));
    }
  });
}

TEST_CASE("one kernel with copies at one launch and without at the next") {
  on_every_device([](qn::Device& device) {
    qn::Kernel update{[](qn::Field<int> to, I32 count, I32 n) {
                        for (auto i : range(n)) to[i % count] += i;
                      },
                      fast};
    for (int size : {10, 200'000, 3000, 1, 200'000, 10})
      for (int n : {5000, 100}) {
        qn::Field<int> to{device, {size}};
        update(to, size, n);
        std::vector<int> wanted(size_t(size), 0);
        for (int i = 0; i < n; i++) wanted[size_t(i % size)] += i;
        INFO(size << " elements, " << n << " iterations");
        CHECK(qn::to_vector(to) == wanted);
      }
  });
}

TEST_CASE("a loop's sum and updates of a field beside it") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> bins{device, {50}};
    qn::Kernel both{[&] {
                      Var<int> sum = 0;
                      for (auto i : range(100'000)) {
                        sum += i % 7;
                        bins[mixed(i) % 50] += 1;
                      }
                      return sum;
                    },
                    fast};
    int wanted = 0;
    std::vector<int> bins_wanted(50);
    for (int i = 0; i < 100'000; i++) {
      wanted += i % 7;
      bins_wanted[size_t(mixed(i) % 50)]++;
    }
    CHECK(int(both()) == wanted);
    CHECK(qn::to_vector(bins) == bins_wanted);
  });
}

TEST_CASE("iterations besides the one that fails a check update what they do") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> bins{device, {50}};
    qn::Kernel update{[&] {
                        for (auto i : range(100'000)) {
                          check(i != 777, "iteration {}", i);
                          bins[mixed(i) % 50] += 1;
                        }
                      },
                      fast};
    CHECK(error_of([&] {
            update();
            device.synchronize();
          }).find("iteration 777") != std::string::npos);
    std::vector<int> wanted(50);
    for (int i = 0; i < 100'000; i++) wanted[size_t(mixed(i) % 50)]++;
    CHECK(qn::to_vector(bins) == wanted);
  });
}

#include "bench/cuda/check.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "bench/mpm_reference.h"
#include "bench/reference.h"
#include "quern/error.h"

namespace bench::cuda {

namespace {

constexpr Stream stream = nullptr;

/// Numbers on the device.
class Array {
 public:
  Array(const Functions& functions, const std::vector<float>& numbers)
      : functions_(functions), size_(numbers.size()) {
    data_ = static_cast<float*>(functions.allocate(size_ * sizeof(float)));
    functions.upload(data_, numbers.data(), size_ * sizeof(float));
  }
  ~Array() { functions_.release(data_); }
  Array(const Array&) = delete;
  float* data() const { return data_; }
  std::vector<float> numbers() const {
    functions_.wait(stream);
    std::vector<float> all(size_);
    functions_.download(all.data(), data_, size_ * sizeof(float));
    return all;
  }

 private:
  const Functions& functions_;
  size_t size_;
  float* data_;
};

std::vector<float> waves(size_t n, float rate) {
  std::vector<float> all(n);
  for (size_t k = 0; k < n; k++) all[k] = std::sin(rate * float(k + 1));
  return all;
}

void expect_same(const char* name, const std::vector<float>& mine, const std::vector<float>& wanted,
                 float tolerance = 1e-6f) {
  float largest = 0;
  for (float w : wanted) largest = std::max(largest, std::abs(w));
  for (size_t k = 0; k < mine.size(); k++)
    if (!(std::abs(mine[k] - wanted[k]) <= tolerance * largest))
      throw quern::Error(std::string("the CUDA version of ") + name + " makes " +
                         std::to_string(mine[k]) + " of element " + std::to_string(k) + ", not " +
                         std::to_string(wanted[k]));
}

void streams(const Functions& f, size_t n) {
  std::vector<float> a = waves(n, 0.3f), b = waves(n, 0.7f), c(n);
  Array x(f, a), y(f, b), z(f, c);
  f.triad(z.data(), x.data(), y.data(), 0.5f, n, stream);
  reference::triad(c.data(), a.data(), b.data(), 0.5f, n);
  expect_same("triad", z.numbers(), c);
  f.saxpy(3.0f, x.data(), y.data(), n, stream);
  reference::saxpy(3.0f, a.data(), b.data(), n);
  expect_same("saxpy", y.numbers(), b);
  f.copy(y.data(), z.data(), n, stream);
  expect_same("copy", z.numbers(), b);
  std::vector<float> positive(n);
  for (size_t k = 0; k < n; k++) positive[k] = 1 + 0.5f * a[k];
  Array summands(f, positive);
  expect_same("reduce_sum", {f.sum(summands.data(), n, stream)},
              {float(std::accumulate(positive.begin(), positive.end(), 0.0))}, 1e-5f);
  f.fill(z.data(), 4.0f, n, stream);
  expect_same("fill", z.numbers(), std::vector<float>(n, 4.0f));
  f.memcpy(z.data(), x.data(), n, stream);
  expect_same("memcpy", z.numbers(), a);
}

void stencil(const Functions& f, int n) {
  std::vector<float> a = waves(size_t(n) * n, 0.3f), b(a.size());
  Array u(f, a), v(f, b);
  f.stencil(u.data(), v.data(), n, stream);
  reference::stencil(a.data(), b.data(), n);
  expect_same("stencil5", v.numbers(), b);
}

void nbody(const Functions& f, int n) {
  std::vector<float> x = waves(size_t(n), 1), y = waves(size_t(n), 2), z = waves(size_t(n), 3),
                     v[3] = {waves(size_t(n), 4), waves(size_t(n), 5), waves(size_t(n), 6)};
  Array dx(f, x), dy(f, y), dz(f, z), dvx(f, v[0]), dvy(f, v[1]), dvz(f, v[2]);
  f.nbody(dx.data(), dy.data(), dz.data(), dvx.data(), dvy.data(), dvz.data(), 1e-4f, n, stream);
  reference::nbody(x.data(), y.data(), z.data(), v[0].data(), v[1].data(), v[2].data(), 1e-4f, n);
  const Array* got[3] = {&dvx, &dvy, &dvz};
  for (int a = 0; a < 3; a++) expect_same("nbody", got[a]->numbers(), v[a], 1e-4f);
}

void mpm3d(const Functions& f, int n, int particles) {
  auto size = size_t(particles);
  std::vector<std::vector<float>> columns;  // x, v, c, j
  for (int k = 0; k < 16; k++) {
    columns.push_back(waves(size, 0.1f * float(k + 1)));
    for (float& value : columns.back())
      value = k < 3 ? 0.35f + 0.1f * value : k < 15 ? 0.1f * value : 1 + 0.01f * value;
  }
  std::vector<reference::FluidParticle> host(size);
  for (size_t p = 0; p < size; p++)
    for (size_t k = 0; k < 16; k++) reinterpret_cast<float*>(&host[p])[k] = columns[k][p];
  const size_t numbers = 4 * size_t(n) * size_t(n) * size_t(n);
  std::vector<float> nodes(numbers * size_t(threads()));
  reference::mpm3d_substep({n, size, host.data(), reinterpret_cast<float(*)[4]>(nodes.data())});

  std::vector<std::unique_ptr<Array>> arrays;
  for (const auto& column : columns) arrays.push_back(std::make_unique<Array>(f, column));
  Array grid(f, std::vector<float>(numbers));
  Mpm3d state{};
  state.n_grid = n;
  state.particles = particles;
  for (size_t k = 0; k < 3; k++) {
    state.x[k] = arrays[k]->data();
    state.v[k] = arrays[k + 3]->data();
  }
  for (size_t k = 0; k < 9; k++) state.c[k] = arrays[k + 6]->data();
  state.j = arrays[15]->data();
  state.nodes = grid.data();
  f.mpm3d_substep(state, stream);
  for (size_t k = 0; k < 16; k++) {
    std::vector<float> wanted;
    for (const auto& p : host) wanted.push_back(reinterpret_cast<const float*>(&p)[k]);
    expect_same("mpm3d", arrays[k]->numbers(), wanted, 1e-4f);  // sums in another order
  }
}

}  // namespace

void expect_right(const Functions& functions) {
  for (size_t n : {1u, 3u, 1000u, 100'003u}) streams(functions, n);
  for (int n : {3, 33, 100}) stencil(functions, n);
  for (int n : {1, 255, 700}) nbody(functions, n);
  mpm3d(functions, 16, 1001);
}

}  // namespace bench::cuda

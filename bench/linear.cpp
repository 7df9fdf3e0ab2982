// Linear algebra: a sparse matrix times a vector, conjugate gradients, a product of dense matrices.
#include <quern/host.h>

#include <cmath>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "bench/linear_reference.h"
#include "bench/pages.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {

/// The Laplacian of n³ nodes, 7 entries a row, plus the identity.
struct Matrix {
  Array<int32_t> begin, column;
  Array<float> value;
  explicit Matrix(int n) {
    begin.push_back(0);
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        for (int k = 0; k < n; k++) {
          auto entry = [&](int a, int b, int c, float v) {
            if (a < 0 || b < 0 || c < 0 || a >= n || b >= n || c >= n) return;
            column.push_back((a * n + b) * n + c);
            value.push_back(v);
          };
          entry(i - 1, j, k, -1), entry(i, j - 1, k, -1), entry(i, j, k - 1, -1);
          entry(i, j, k, 7);
          entry(i, j, k + 1, -1), entry(i, j + 1, k, -1), entry(i + 1, j, k, -1);
          begin.push_back(int32_t(column.size()));
        }
  }
  int rows() const { return int(begin.size()) - 1; }
};

void expect_near(const char* name, const std::vector<float>& mine, const Array<float>& theirs,
                 float tolerance) {
  for (size_t k = 0; k < mine.size(); k++)
    if (!(std::abs(mine[k] - theirs[k]) <= tolerance * (1 + std::abs(theirs[k]))))
      throw qn::Error(std::string(name) + " and its reference differ at element " +
                      std::to_string(k));
}

void sparse(Report& report, int n) {
  qn::Device& device = report.device();
  const Matrix m(n);
  const int rows = m.rows(), entries = int(m.column.size()), iterations = 20;
  const reference::Csr host{rows, m.begin.data(), m.column.data(), m.value.data()};
  Array<float> hb(rows), hx(rows), hr(rows), hp(rows), hq(rows);
  for (int i = 0; i < rows; i++) hb[i] = std::sin(float(i % 1000));
  qn::Field<int> begin{device, {rows + 1}}, column{device, {entries}};
  qn::Field<float> value{device, {entries}};
  qn::Field<float> b{device, {rows}}, x{device, {rows}}, r{device, {rows}}, p{device, {rows}},
      q{device, {rows}};
  begin.copy_from(m.begin);
  column.copy_from(m.column);
  value.copy_from(m.value);
  b.copy_from(hb);

  auto row_times = [&](const qn::Field<float>& v, I32 i) {
    Var<float> sum = 0;
    for (auto k : range(begin[i], begin[i + 1])) sum += value[k] * v[column[k]];
    return sum;
  };
  qn::Kernel multiply = [&] {
    for (auto i : q) q[i] = row_times(b, i);
  };
  const std::string size = std::to_string(rows) + " rows";
  const double once = 8.0 * entries + 4.0 * rows, vectors = 8.0 * rows;
  auto by_hand = [&] { reference::multiply(host, hb.data(), hq.data()); };
  report.run({"spmv_csr", size, once + vectors, 0,
              [&] {
                multiply();
                report.complete();
              },
              by_hand, report.bandwidth(once + vectors)});
  by_hand();
  expect_near("spmv_csr", qn::to_vector(q), hq, 1e-5f);

  qn::Kernel solve = [&](I32 rounds) {
    Var<float> square = 0;
    for (auto i : x) {
      x[i] = 0;
      r[i] = b[i];
      p[i] = b[i];
      square += b[i] * b[i];
    }
    for (auto k : serial(range(rounds))) {
      Var<float> slope = 0, next = 0;
      for (auto i : q) {
        auto sum = row_times(p, i);
        q[i] = sum;
        slope += sum * p[i];
      }
      auto step = square / slope;
      for (auto i : x) {
        x[i] = x[i] + step * p[i];
        auto rest = r[i] - step * q[i];
        r[i] = rest;
        next += rest * rest;
      }
      auto turn = next / square;
      for (auto i : p) p[i] = r[i] + turn * p[i];
      square = next + 0 * cast<float>(k);
    }
  };
  // An iteration reads the matrix, and x, r, p, q nine times in all.
  const double bytes = iterations * (once + 9 * 4.0 * rows);
  auto solve_by_hand = [&] {
    reference::conjugate_gradients(host, hb.data(), hx.data(), hr.data(), hp.data(), hq.data(),
                                   iterations);
  };
  report.run({"cg_csr", size, bytes, 0,
              [&] {
                solve(iterations);
                report.complete();
              },
              solve_by_hand, report.bandwidth(bytes / iterations)});
  solve_by_hand();
  expect_near("cg_csr", qn::to_vector(x), hx, 1e-4f);
}

/// The textbook's loops: what a user writes first.
void matmul(Report& report, int n) {
  qn::Device& device = report.device();
  Array<float> ha(size_t(n) * n), hb(ha.size()), hc(ha.size());
  for (size_t k = 0; k < ha.size(); k++) {
    ha[k] = float(k % 13) / 13;
    hb[k] = float(k % 17) / 17;
  }
  qn::Field<float, 2> a{device, {n, n}}, b{device, {n, n}}, c{device, {n, n}};
  a.copy_from(ha);
  b.copy_from(hb);
  qn::Kernel product = [&] {
    for (auto [i, j] : c) {
      Var<float> sum = 0;
      for (auto k : range(a.dim(1))) sum += a(i, k) * b(k, j);
      c(i, j) = sum;
    }
  };
  auto by_hand = [&] { reference::matmul(ha.data(), hb.data(), hc.data(), n); };
  report.run({"matmul", std::to_string(n) + "^2", 0, 2.0 * n * n * n,
              [&] {
                product();
                report.complete();
              },
              by_hand, report.flops_peak()});
  by_hand();
  expect_near("matmul", qn::to_vector(c), hc, 1e-4f);
}

}  // namespace

void linear(Report& report) {
  sparse(report, 100);
  matmul(report, 1024);
}

}  // namespace bench

// A determinant by minors, with its gradient. Minors behind choices of columns are side by side in
// vectors.
#include <algorithm>

#include "bench/autodiff/reference.h"
#include "bench/wide.h"

namespace bench::reference {

namespace {

/// A number of each of eight minors, which are side by side.
using Lanes = Wide<double>;
constexpr int lanes = int(lanes_of<double>);

double sum_of(Lanes v) {
  double sum = 0;
  for (int l = 0; l < lanes; l++) sum += v[l];
  return sum;
}

struct Triple {
  Lanes x, y, z;
};
Lanes dot(const Triple& a, const Triple& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
Triple cross(const Triple& a, const Triple& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
Triple load(const Lanes* row, const int* left) {
  return {row[left[0]], row[left[1]], row[left[2]]};
}
void add(Lanes* row, const int* left, Lanes factor, const Triple& a) {
  row[left[0]] += factor * a.x;
  row[left[1]] += factor * a.y;
  row[left[2]] += factor * a.z;
}

/// Of the last `size` rows of a matrix with so many columns, and the columns in `left`.
template <int size>
Lanes minor(const Lanes* at, int columns, const int* left) {
  const Lanes* row = at + (columns - size) * columns;
  if constexpr (size == 3) {
    return dot(load(row, left), cross(load(row + columns, left), load(row + 2 * columns, left)));
  } else {
    int others[size - 1];
    for (int j = 1; j < size; j++) others[j - 1] = left[j];
    Lanes sum = {};
    for (int j = 0; j < size; j++) {
      const Lanes part = row[left[j]] * minor<size - 1>(at, columns, others);
      sum = j % 2 == 0 ? sum + part : sum - part;
      if (j + 1 < size) others[j] = left[j];
    }
    return sum;
  }
}

/// The same; adds `factor` times its derivatives to `gradient`.
template <int size>
Lanes minor_gradient(const Lanes* at, int columns, const int* left, Lanes factor, Lanes* gradient) {
  const int first = (columns - size) * columns;
  const Lanes* row = at + first;
  Lanes* of_row = gradient + first;
  if constexpr (size == 3) {
    const Triple a = load(row, left), b = load(row + columns, left),
                 c = load(row + 2 * columns, left), of_a = cross(b, c);
    add(of_row, left, factor, of_a);
    add(of_row + columns, left, factor, cross(c, a));
    add(of_row + 2 * columns, left, factor, cross(a, b));
    return dot(a, of_a);
  } else {
    int others[size - 1];
    for (int j = 1; j < size; j++) others[j - 1] = left[j];
    Lanes sum = {};
    for (int j = 0; j < size; j++) {
      const double sign = j % 2 == 0 ? 1 : -1;
      const Lanes entry = sign * row[left[j]];
      const Lanes rest = minor_gradient<size - 1>(at, columns, others, factor * entry, gradient);
      sum += entry * rest;
      of_row[left[j]] += sign * factor * rest;
      if (j + 1 < size) others[j] = left[j];
    }
    return sum;
  }
}

/// Eight choices of columns in the first three rows, and the minors that are left.
template <int size>
struct Choices {
  static constexpr int chosen = 3, rows = size - chosen, count = size * (size - 1) * (size - 2);
  int column[lanes][size];  ///< those chosen, by rows, then the others in order
  Lanes top[chosen], sign;  ///< 0 where there is no such choice
  Lanes entry[rows * rows];
  int all[rows];

  Choices(const double* at, int first) {
    for (int l = 0; l < lanes; l++) {
      int* const to = column[l];
      for (int j = 0; j < size; j++) to[j] = j;
      int code = first + l;
      sign[l] = code < count ? 1 : 0;
      for (int r = 0; r < chosen; r++) {
        const int place = r + code % (size - r);
        code /= size - r;
        sign[l] = (place - r) % 2 == 0 ? sign[l] : -sign[l];
        std::rotate(to + r, to + place, to + place + 1);
        top[r][l] = at[r * size + to[r]];
      }
      for (int r = 0; r < rows; r++)
        for (int c = 0; c < rows; c++)
          entry[r * rows + c][l] = at[(r + chosen) * size + to[c + chosen]];
    }
    for (int c = 0; c < rows; c++) all[c] = c;
  }

  Lanes value() const { return sign * top[0] * top[1] * top[2] * minor<rows>(entry, rows, all); }

  Lanes differentiate(double* gradient) const {
    Lanes of_entry[rows * rows] = {};
    const Lanes product = sign * top[0] * top[1] * top[2];
    const Lanes rest = minor_gradient<rows>(entry, rows, all, product, of_entry);
    const Lanes of_top[chosen] = {sign * top[1] * top[2] * rest, sign * top[0] * top[2] * rest,
                                  sign * top[0] * top[1] * rest};
    for (int l = 0; l < lanes; l++) {
      for (int r = 0; r < chosen; r++) gradient[r * size + column[l][r]] += of_top[r][l];
      for (int r = 0; r < rows; r++)
        for (int c = 0; c < rows; c++)
          gradient[(r + chosen) * size + column[l][c + chosen]] += of_entry[r * rows + c][l];
    }
    return product * rest;
  }
};

template <int size>
double determinant_of(const double* at) {
  double value = 0;
#pragma omp parallel for reduction(+ : value)
  for (int first = 0; first < Choices<size>::count; first += lanes)
    value += sum_of(Choices<size>(at, first).value());
  return value;
}

template <int size>
double determinant_gradient_of(const double* at, double* gradient) {
  double value = 0;
  std::fill(gradient, gradient + size * size, 0.0);
#pragma omp parallel for reduction(+ : value, gradient[ : size * size])
  for (int first = 0; first < Choices<size>::count; first += lanes)
    value += sum_of(Choices<size>(at, first).differentiate(gradient));
  return value;
}

}  // namespace

double determinant(const Determinant& in, const double* at) {
  switch (in.rows) {
    case 6: return determinant_of<6>(at);
    case 7: return determinant_of<7>(at);
    case 8: return determinant_of<8>(at);
    default: return determinant_of<9>(at);
  }
}

double determinant_gradient(const Determinant& in, const double* at, double* gradient) {
  switch (in.rows) {
    case 6: return determinant_gradient_of<6>(at, gradient);
    case 7: return determinant_gradient_of<7>(at, gradient);
    case 8: return determinant_gradient_of<8>(at, gradient);
    default: return determinant_gradient_of<9>(at, gradient);
  }
}

}  // namespace bench::reference

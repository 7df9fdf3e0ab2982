#pragma once
// What a tree of two axes is to have active, in what order, and what sums over it are to be: kept on the
// host in a map, and computed as docs/semantics.md says.
#include <quern/sparse.h>

#include <array>
#include <bit>
#include <climits>
#include <cstring>
#include <map>
#include <set>
#include <vector>

namespace model {

namespace qn = quern;
using At = std::array<int, 2>;
using Places = std::set<At>;

/// How a tree divides its axes.
struct Kind {
  const char* text;
  std::array<qn::TreeLevel, 4> levels;
  At first, extent;
  At unit = {1, 1};  ///< elements along each axis that are active as one
  bool has_lists() const { return levels[3].kind == qn::TreeLevel::dynamic; }
};

inline const std::array<Kind, 4> trees = {{
    {"pointer, pointer, bitmasked",
     {qn::pointer(4), qn::pointer(3, 2), qn::bitmasked(4, 2), qn::dense(1)},
     {-10, 3},
     {45, 16}},
    {"pointer, dense, dense",
     {qn::dense(1), qn::pointer(6, 8), qn::dense(2), qn::dense(1, 2)},
     {5, -9},
     {12, 30},
     {2, 4}},
    {"hash, pointer, bitmasked",
     {qn::hash(), qn::pointer(2), qn::bitmasked(2, 3), qn::dense(1)},
     {-1'000'000, -500'000},
     {2'000'001, 3'000'000}},
    {"dense, pointer, bitmasked, dense",
     {qn::dense(3, 1), qn::pointer(2, 4), qn::bitmasked(2), qn::dense(2, 1)},
     {0, 0},
     {24, 8},
     {2, 1}},
}};
inline const std::array<Kind, 2> lists = {{
    {"pointer, dense, dynamic",
     {qn::pointer(5, 1), qn::dense(2, 1), qn::dense(1), qn::dynamic(11, 3)},
     {0, 0},
     {10, 11}},
    {"hash, dense, dynamic",
     {qn::hash(), qn::dense(2, 1), qn::dense(1), qn::dynamic(11, 4)},
     {-(1 << 30), 0},
     {INT_MAX, 11}},
}};
/// Of another tree with the same indices.
inline Kind beside(Kind kind) {
  kind.text = "the other one";
  kind.unit = {1, 1};
  if (kind.has_lists())
    kind.levels = {qn::hash(), qn::dense(1), qn::dense(1), qn::dynamic(11, 5)};
  else
    kind.levels = {qn::hash(), qn::bitmasked(3, 2), qn::dense(1), qn::dense(1)};
  return kind;
}

/// A number of an element that no two have by chance.
template <class U>
U mixed(const U& i, const U& j, const U& value) {
  U h = (i * 0x9e3779b1u) ^ (j * 0x85ebca77u + value * 0xc2b2ae3du);
  U g = (h ^ (h >> 15u)) * 0x2c1b3c6du;
  return g ^ (g >> 13u);
}
inline uint32_t mixed(const At& at, int value) {
  return mixed(uint32_t(at[0]), uint32_t(at[1]), uint32_t(value));
}
/// What an element adds to a sum of floats whose bits tell in which order it was taken.
inline float summand(uint32_t h) { return float(h) * float(h & 255u); }

/// What kernels find out about a tree, too.
struct Digest {
  uint32_t count = 0, elements = 0;  ///< how many there are; the sum of their numbers modulo 2^32
  float order = 0, values = 0;       ///< sums in the order of the loop
  bool operator==(const Digest& other) const {
    return std::memcmp(this, &other, sizeof(*this)) == 0;
  }
};

/// The sum of contributions of iterations in a fixed order, of section "Reductions".
inline float ordered_sum(const std::map<int64_t, float>& contributions) {
  std::map<int64_t, float> chunks;
  for (auto k = contributions.begin(); k != contributions.end();) {
    const int64_t chunk = k->first / 1024;
    std::array<float, 32> p;
    p.fill(-0.0f);
    for (; k != contributions.end() && k->first / 1024 == chunk; ++k)
      p[size_t(k->first % 1024 % 32)] += k->second;
    for (size_t half = 16; half > 0; half /= 2)
      for (size_t j = 0; j < half; j++) p[j] += p[j + half];
    chunks[chunk] = p[0];
  }
  if (chunks.empty()) return -0.0f;
  return chunks.rbegin()->first == 0 ? chunks.begin()->second : ordered_sum(chunks);
}

class Elements {
 public:
  Elements(const Kind& kind, int background) : kind_(kind), background_(background) {}

  const std::map<At, int>& all() const { return all_; }
  bool has(const At& at) const { return all_.contains(at); }
  int value(const At& at) const {
    const auto found = all_.find(at);
    return found == all_.end() ? background_ : found->second;
  }
  bool is_inside(const At& at) const {
    for (size_t k = 0; k < 2; k++)
      if (at[k] < kind_.first[k] || int64_t(at[k]) - kind_.first[k] >= kind_.extent[k])
        return false;
    return true;
  }
  /// Elements that are active as one with this one; of a list itself.
  std::vector<At> unit_of(const At& at) const {
    std::vector<At> out;
    const auto begin = [&](size_t k) {
      return at[k] - int((int64_t(at[k]) - kind_.first[k]) % kind_.unit[k]);
    };
    for (int i = 0; i < kind_.unit[0]; i++)
      for (int j = 0; j < kind_.unit[1]; j++)
        if (const At one = {begin(0) + i, begin(1) + j}; is_inside(one)) out.push_back(one);
    return out;
  }
  int length(int list) const {
    return int(
        std::distance(all_.lower_bound({list, 0}), all_.upper_bound({list, kind_.extent[1]})));
  }

  void make(const At& at) {
    if (kind_.has_lists())
      for (int k = 0; k <= at[1]; k++) all_.try_emplace({at[0], k}, background_);
    else
      for (const At& one : unit_of(at)) all_.try_emplace(one, background_);
  }
  int& write(const At& at) {
    make(at);
    return all_[at];
  }
  void end(const At& at) {
    if (kind_.has_lists())
      all_.erase(all_.lower_bound(at), all_.upper_bound({at[0], kind_.extent[1]}));
    else
      for (const At& one : unit_of(at)) all_.erase(one);
  }
  void clear() { all_.clear(); }
  /// Calls `ends(at, value)` for each element and ends those that it is true of.
  template <class F>
  void end_where(F&& ends) {
    Places ended;
    for (const auto& [at, v] : all_)
      if (ends(at, v)) ended.insert(at);
    for (const At& at : ended) end(at);
  }
  /// Ends units of which it is true for all elements.
  template <class F>
  void prune(F&& drops) {
    end_where([&](const At& at, int) {
      for (const At& one : unit_of(at))
        if (!drops(value(one))) return false;
      return true;
    });
  }
  /// A step to neighbours: by one along one axis, or along both.
  void dilate(bool diagonal) {
    for (const At& at : near(diagonal, false)) make(at);
  }
  void erode(bool diagonal) {
    for (const At& at : near(diagonal, true)) end(at);
  }

  Digest digest() const {
    Digest out;
    std::map<std::vector<int64_t>, std::map<int64_t, At>> cells;
    for (const auto& [at, v] : all_) {
      out.count++;
      out.elements += mixed(at, v);
      auto [cell, child] = place_in_order(at);
      cells[cell][child] = at;
    }
    std::map<int64_t, float> order, values;
    int64_t first = 0;
    for (const auto& [cell, children] : cells) {
      for (const auto& [child, at] : children) {
        order[first + child] = summand(mixed(at, 0));
        values[first + child] = summand(mixed(at, all_.at(at)));
      }
      first += children_of_cell();
    }
    out.order = 0.0f + ordered_sum(order);
    out.values = 0.0f + ordered_sum(values);
    return out;
  }

 private:
  /// What is beside an element and not active; or elements beside such.
  Places near(bool diagonal, bool inner) const {
    Places out;
    for (const auto& [at, v] : all_)
      for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++) {
          if (i != 0 && j != 0 && !diagonal) continue;
          const At beside = {at[0] + i, at[1] + j};
          if (!has(beside) && (inner || is_inside(beside))) out.insert(inner ? at : beside);
        }
    return out;
  }
  struct Level {
    bool hash, last;  ///< of the pool that holds elements
    At n;
  };
  std::vector<Level> levels() const {
    std::vector<Level> out;
    for (const qn::TreeLevel& level : kind_.levels) {
      const At n = {level.n[0], level.n[level.count == 1 ? 0 : 1]};
      const auto new_pool = [&] {
        for (Level& outer : out) outer.last = false;
      };
      if (level.kind == qn::TreeLevel::dynamic) {
        out.push_back({false, false, {1, (n[1] - 1) / level.chunk + 1}});
        new_pool();
        out.push_back({false, true, {1, level.chunk}});
        continue;
      }
      out.push_back({level.kind == qn::TreeLevel::hash, true, n});
      if (level.kind == qn::TreeLevel::pointer || level.kind == qn::TreeLevel::hash) new_pool();
    }
    return out;
  }
  int64_t children_of_cell() const {
    int64_t n = 1;
    for (const Level& level : levels())
      if (level.last) n *= int64_t(level.n[0]) * level.n[1];
    return n;
  }
  /// Cells in row-major order, of a level of one power of two in Morton order; elements of a cell by
  /// number.
  std::pair<std::vector<int64_t>, int64_t> place_in_order(const At& at) const {
    std::array<int64_t, 2> rest, size = {1, 1};
    for (size_t k = 0; k < 2; k++) rest[k] = int64_t(at[k]) - kind_.first[k];
    const std::vector<Level> all = levels();
    for (const Level& level : all)
      if (!level.hash)
        for (size_t k = 0; k < 2; k++) size[k] *= level.n[k];
    std::vector<int64_t> cell;
    int64_t child = 0;
    for (const Level& level : all) {
      if (level.hash) {
        for (size_t k = 0; k < 2; k++) cell.push_back(rest[k] / size[k]);
        for (size_t k = 0; k < 2; k++) rest[k] %= size[k];
        continue;
      }
      std::array<int64_t, 2> digit;
      for (size_t k = 0; k < 2; k++) {
        size[k] /= level.n[k];
        digit[k] = rest[k] / size[k];
        rest[k] %= size[k];
      }
      const bool morton = level.n[0] == level.n[1] && std::has_single_bit(unsigned(level.n[0]));
      int64_t number = digit[0] * level.n[1] + digit[1];
      if (level.last)
        child = child * level.n[0] * level.n[1] + number;
      else if (!morton)
        cell.push_back(number);
      else
        cell.push_back(interleaved(digit[0], digit[1]));
    }
    return {cell, child};
  }
  static int64_t interleaved(int64_t high, int64_t low) {
    int64_t out = 0;
    for (int bit = 0; bit < 31; bit++)
      out |= ((high >> bit & 1) << (2 * bit + 1)) | ((low >> bit & 1) << (2 * bit));
    return out;
  }

  Kind kind_;
  int background_;
  std::map<At, int> all_;
};

}  // namespace model

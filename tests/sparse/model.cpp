// Random sequences of what programs and the host do to trees, against maps of the host's. A launch runs
// many operations, from an array: so do 10^5 of them fit into a test.
#include "tests/sparse/model.h"

#include <memory>
#include <random>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using model::At;
using model::Digest;
using model::Kind;

namespace {

constexpr int background = -7;
constexpr int batch = 256;  ///< operations of a launch

using Ints = qn::Field<int, 2>;
using Floats = qn::Field<float, 2>;

enum Operation { write, add, wake, end, grow };  // grow: a list, by one

/// Made once for a device; lists are appended to and do not spread.
struct Kernels {
  bool lists;

  qn::Kernel<void(Ints, Floats, qn::Field<ivec4>, I32)> edit = [this](Ints u, Floats other,
                                                                      qn::Field<ivec4> ops, I32 n) {
    for (auto k : range(n)) {
      IVec4 op = ops[k];
      const auto is = [&](Operation one) { return op.x == int(one); };
      If(is(write)) { u(op.y, op.z) = op.w; }
      If(is(add)) { u(op.y, op.z) += op.w; }
      If(is(wake)) { activate(other, op.y, op.z); }
      If(is(end)) { deactivate(other, op.y, op.z); }
      if (lists) {
        If(is(grow)) { append(u, op.y, op.w); }
      }
    }
  };
  /// Each element counts on; some end, some make the one below them active.
  qn::Kernel<void(Ints, Floats, U32)> sweep = [this](Ints u, Floats other, U32 salt) {
    for (auto [i, j] : u) {
      U32 h = model::mixed<U32>(cast<uint32_t>(i), cast<uint32_t>(j), salt);
      u(i, j) = u(i, j) + 1;
      If(h % 8u == 0u) { deactivate(u, i, j); }
      if (!lists) {
        If(h % 8u == 1u && i + 1 - u.first(0) < u.dim(0)) { activate(other, i + 1, j); }
      }
    }
  };
  qn::Kernel<void(Ints, qn::Field<uint32_t>, qn::Field<float>)> digest = {
      [](Ints u, qn::Field<uint32_t> exact, qn::Field<float> sums) {
        Var<uint32_t> count = 0u, elements = 0u;
        Var<float> order = 0.0f, values = 0.0f;
        const auto summand = [](const U32& h) { return cast<float>(h) * cast<float>(h & 255u); };
        for (auto [i, j] : u) {
          U32 a = cast<uint32_t>(i), b = cast<uint32_t>(j);
          U32 h = model::mixed<U32>(a, b, cast<uint32_t>(u(i, j)));
          count += 1u;
          elements += h;
          order += summand(model::mixed<U32>(a, b, 0u));
          values += summand(h);
        }
        exact[0] = count;
        exact[1] = elements;
        sums[0] = order;
        sums[1] = values;
      },
      {.strict = true}};
  /// Of elements, active or not: their value, whether they are active, the length of their list.
  qn::Kernel<void(Ints, qn::Field<ivec2>, qn::Field<ivec3>)> look =
      [this](Ints u, qn::Field<ivec2> at, qn::Field<ivec3> seen) {
        for (auto k : at) {
          IVec2 where = at[k];
          I32 count = lists ? length(u, where.x) : I32(0);
          seen[k] = vec(u(where.x, where.y), cast<int>(is_active(u, where.x, where.y)), count);
        }
      };
};

/// A tree with two fields, and what one of them is to have.
struct Subject {
  Subject(const Kind& kind, const qn::Tree<2>& tree_)
      : tree(tree_),
        u(tree.field<int>(background)),
        other(tree.field<float>(0.25f)),
        elements(kind, background) {}
  Subject(const qn::Device& device, const Kind& kind, int cells)
      : Subject(kind, {device,
                       {kind.levels[0], kind.levels[1], kind.levels[2], kind.levels[3]},
                       {.shape = {kind.extent[0], kind.extent[1]},
                        .offset = {kind.first[0], kind.first[1]},
                        .cells = cells}}) {}
  /// On a copy of the tree.
  Subject(const Subject& from, const Kind& kind, const qn::Tree<2>& copy)
      : tree(copy),
        u(copy.copy_of(from.u)),
        other(copy.field<float>(0.25f)),
        elements(kind, background) {
    elements = from.elements;
  }

  qn::Tree<2> tree;
  Ints u;
  Floats other;
  model::Elements elements;
};

class Play {
 public:
  Play(const qn::Device& device, const Kind& kind, const Kernels& kernels)
      : device_(device),
        kind_(kind),
        kernels_(kernels),
        random_(1),
        own_(std::make_unique<Subject>(device, kind, 1 + below(20))),
        beside_(device, model::beside(kind), 1 + below(20)) {}

  void run(int rounds) {
    for (int round = 0; round < rounds; round++) {
      INFO(kind_.text << ", round " << round);
      edit(*own_, 1000 + round);
      expect("a batch of operations");
      if (round % 2 == 0) {
        sweep(uint32_t(round));
        expect("a loop over the tree");
      } else {
        if (round % 4 == 1) edit(beside_, round);
        expect(kind_.has_lists() ? change_lists() : change());
      }
      look();
    }
  }

 private:
  int below(int n) { return int(random_() % unsigned(n)); }
  bool sometimes(int n) { return below(n) == 0; }

  At place() {
    At at = kind_.first;
    if (kind_.has_lists() && kind_.extent[0] > 1000) {
      static constexpr int far[] = {-(1 << 30), -5, -4, 0, 77, (1 << 30) - 2};
      at[0] = far[below(6)];
      at[1] = below(kind_.extent[1]);
      return at;
    }
    const bool far = sometimes(kind_.extent[0] > 1000 ? 6 : 2);
    for (size_t k = 0; k < 2; k++)
      at[k] += far ? below(kind_.extent[k]) : below(std::min(kind_.extent[k], 20));
    return at;
  }

  /// Operations whose outcome no order of the iterations changes.
  void edit(Subject& s, int value) {
    model::Elements& m = s.elements;
    std::map<At, bool> ends;  // by unit or list: such end, others are made
    std::map<int, bool> grows;
    std::map<At, Operation> stored;
    std::vector<ivec4> ops;
    for (int k = 0; k < batch; k++) {
      const At at = place();
      Operation op = Operation(below(kind_.has_lists() ? 5 : 4));
      const At group = kind_.has_lists() ? At{at[0], 0} : m.unit_of(at).front();
      const bool is_end = ends.try_emplace(group, op == end).first->second;
      if (is_end)
        op = end;
      else if (op == end)
        op = wake;
      if (!is_end && kind_.has_lists()) {
        const bool is_grown = grows.try_emplace(at[0], op == grow).first->second;
        if (is_grown && m.length(at[0]) == kind_.extent[1]) continue;
        op = is_grown ? grow : op == grow ? wake : op;
      }
      if (op == write || op == add) {
        const auto [first, is_first] = stored.try_emplace(at, op);
        if (!is_first && (op == write || first->second == write)) op = wake;
      }
      ops.emplace_back(op, at[0], at[1], value);
      switch (op) {
        case write: m.write(at) = value; break;
        case add: m.write(at) += value; break;
        case wake: m.make(at); break;
        case end: m.end(at); break;
        case grow: m.write({at[0], m.length(at[0])}) = value;
      }
    }
    const int n = int(ops.size());
    ops.resize(batch);
    qn::Field<ivec4> field{device_, {batch}};
    field.copy_from(ops);
    kernels_.edit(s.u, s.other, field, n);
  }

  void sweep(uint32_t salt) {
    model::Elements& m = own_->elements;
    model::Places made, ended;
    const auto before = m.all();
    for (const auto& [at, v] : before) {
      const uint32_t h = model::mixed(at, int(salt));
      m.write(at)++;
      if (h % 8 == 0) ended.insert(at);
      const At next = {at[0] + 1, at[1]};
      if (h % 8 == 1 && !kind_.has_lists() && m.is_inside(next)) made.insert(next);
    }
    for (const At& at : made) m.make(at);
    for (const At& at : ended) m.end(at);
    kernels_.sweep(own_->u, own_->other, salt);
  }

  /// What the host does to trees of any kind; what it was.
  const char* change_lists() {
    const qn::Tree<2>& tree = own_->tree;
    model::Elements& m = own_->elements;
    const model::Elements& others = beside_.elements;
    switch (below(8)) {
      case 0:
        tree.merge(beside_.tree);
        for (const auto& [at, v] : others.all()) m.make(at);
        return "merge";
      case 1:
        tree.intersect(beside_.tree);
        m.end_where([&](const At& at, int) { return !others.has(at); });
        return "intersect";
      case 2:
        tree.subtract(beside_.tree);
        m.end_where([&](const At& at, int) { return others.has(at); });
        return "subtract";
      case 3:
        tree.prune(own_->u, [](auto v) { return v % 3 == 0; });
        drop([](int v) { return v % 3 == 0; });
        return "prune by a predicate";
      case 4:
        tree.prune(own_->u, 1010);
        drop([](int v) { return std::abs(v - background) <= 1010; });
        return "prune by distance";
      case 5:
        if (sometimes(3)) {
          tree.clear();
          m.clear();
        }
        for (int k = 0; k < 3; k++) {
          const At at = place();
          own_->u.set(at[0], at[1], k);
          m.write(at) = k;
        }
        return "clear and set";
      case 6: tree.shrink(); return "shrink";
      default: {
        const qn::Tree<2> copy = tree.copy();
        CHECK(qn::same_activity(copy, tree));
        own_ = std::make_unique<Subject>(*own_, kind_, copy);
        return "copy";
      }
    }
  }
  template <class F>
  void drop(F&& drops) {
    if (kind_.has_lists())
      own_->elements.end_where([&](const At&, int v) { return drops(v); });
    else
      own_->elements.prune(drops);
  }

  /// The same of elements, and what has no meaning for lists.
  const char* change() {
    const qn::Tree<2>& tree = own_->tree;
    model::Elements& m = own_->elements;
    const bool diagonal = sometimes(2), is_bounded = kind_.extent[0] < 1000;
    const auto neighbours = diagonal ? qn::Neighbours::vertices : qn::Neighbours::faces;
    switch (below(8)) {
      case 0:
        tree.dilate(1, neighbours);
        m.dilate(diagonal);
        return "dilate";
      case 1:
        tree.erode(1, neighbours);
        m.erode(diagonal);
        return "erode";
      case 2: {
        if (!is_bounded) return "nothing";
        const Ints dense = qn::to_dense(own_->u);
        tree.from_dense(own_->u, dense, 1005);
        const auto before = m.all();
        m.clear();
        for (const auto& [at, v] : before)
          if (std::abs(v - background) > 1005) m.make(at);
        for (const auto& [at, v] : before)
          if (m.has(at)) m.write(at) = v;
        return "to_dense, from_dense";
      }
      case 3:
        if (!sometimes(3)) return "nothing";
        tree.build_from(beside_.tree);
        m.clear();
        for (const auto& [at, v] : beside_.elements.all()) m.make(at);
        return "build_from";
      case 4:
        if (kind_.unit == At{1, 1}) resolutions();
        return "coarsen, refine";
      default: return change_lists();
    }
  }
  void resolutions() {
    const auto half = [](int i) { return (i - (i < 0)) / 2; };
    uint32_t count = 0, fine = 0;
    std::map<At, int> sums;
    for (const auto& [at, v] : own_->elements.all()) {
      sums[{half(at[0]), half(at[1])}] += v;
      for (int k = 0; k < 4; k++) fine += model::mixed({2 * at[0] + k / 2, 2 * at[1] + k % 2}, v);
    }
    for (const auto& [at, v] : sums) count += model::mixed(at, v);
    const Digest coarsened = digest(own_->tree.coarsen().coarsened(own_->u, qn::Coarsening::sum));
    CHECK(coarsened.count == sums.size());
    CHECK(coarsened.elements == count);
    const Digest refined = digest(own_->tree.refine().refined(own_->u));
    CHECK(refined.count == 4 * own_->elements.all().size());
    CHECK(refined.elements == fine);
  }

  Digest digest(const Ints& u) const {
    qn::Field<uint32_t> exact{device_, {2}};
    qn::Field<float> sums{device_, {2}};
    kernels_.digest(u, exact, sums);
    const std::vector<uint32_t> numbers = qn::to_vector(exact);
    const std::vector<float> order = qn::to_vector(sums);
    return {numbers[0], numbers[1], order[0], order[1]};
  }
  void expect(const char* done) const {
    INFO("behind " << done);
    const Digest found = digest(own_->u), expected = own_->elements.digest();
    REQUIRE(found.count == expected.count);
    REQUIRE(found.elements == expected.elements);
    REQUIRE(found.order == expected.order);
    REQUIRE(found.values == expected.values);
  }
  void look() {
    constexpr int n = 64;
    std::vector<ivec2> places;
    for (int k = 0; k < n; k++) {
      const At at = place();
      places.emplace_back(at[0], at[1]);
    }
    qn::Field<ivec2> at{device_, {n}};
    qn::Field<ivec3> seen{device_, {n}};
    at.copy_from(places);
    kernels_.look(own_->u, at, seen);
    const std::vector<ivec3> all = qn::to_vector(seen);
    int wrong = 0;
    for (size_t k = 0; k < n; k++) {
      const At where = {places[k].x, places[k].y};
      const model::Elements& m = own_->elements;
      wrong += all[k].x != m.value(where) || all[k].y != int(m.has(where));
      wrong += all[k].z != (kind_.has_lists() ? m.length(where[0]) : 0);
    }
    REQUIRE(wrong == 0);
  }

  const qn::Device& device_;
  const Kind& kind_;
  const Kernels& kernels_;
  std::mt19937 random_;
  std::unique_ptr<Subject> own_;
  Subject beside_;
};

/// So many rounds that all kinds together have 10^5 operations, or 10^4 on an interpreter of PTX.
int rounds_on(const qn::Device& device) {
  const std::string name = device.name();
  const int operations = name == "cuda" ? 10'000 : 100'000;
  return operations / (batch * int(model::trees.size() + model::lists.size())) + 1;
}

}  // namespace

TEST_CASE(
    "random operations on trees do what they do to maps, in an order that follows from them") {
  on_every_device([](const qn::Device& device) {
    const Kernels kernels{false};
    for (const Kind& kind : model::trees) Play(device, kind, kernels).run(rounds_on(device));
  });
}

TEST_CASE("random operations on trees of lists do what they do to maps") {
  on_every_device([](const qn::Device& device) {
    const Kernels kernels{true};
    for (const Kind& kind : model::lists) Play(device, kind, kernels).run(rounds_on(device));
  });
}

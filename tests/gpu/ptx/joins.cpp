// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001), on the reversed graph of
// the function's instructions.
#include "tests/gpu/ptx/joins.h"

namespace quern::ptx {

namespace {

/// What may be executed next; the number behind the last instruction stands for the end.
std::vector<uint32_t> next_of(const std::vector<Inst>& code, uint32_t at) {
  const Inst& inst = code[at];
  const auto end = uint32_t(code.size());
  const bool always = inst.guard < 0;
  if (inst.control == Inst::branch)
    return always ? std::vector{inst.target} : std::vector{at + 1, inst.target};
  if (inst.control == Inst::leave) return always ? std::vector{end} : std::vector{at + 1, end};
  return {at + 1};
}

using Edges = std::vector<std::vector<uint32_t>>;

/// Those from which `root` can be reached, each behind all that it is found from, root last.
std::vector<uint32_t> postorder(const Edges& before, uint32_t root) {
  std::vector<uint32_t> order;
  std::vector<bool> seen(before.size());
  std::vector<std::pair<uint32_t, size_t>> path = {{root, 0}};
  seen[root] = true;
  while (!path.empty()) {
    auto& [at, edge] = path.back();
    if (edge == before[at].size()) {
      order.push_back(at);
      path.pop_back();
    } else if (const uint32_t to = before[at][edge++]; !seen[to]) {
      seen[to] = true;
      path.push_back({to, 0});
    }
  }
  return order;
}

}  // namespace

void find_joins(std::vector<Inst>& code) {
  const auto end = uint32_t(code.size());
  Edges after(end + 1), before(end + 1);
  for (uint32_t k = 0; k < end; k++) {
    after[k] = next_of(code, k);
    for (uint32_t to : after[k]) before[to].push_back(k);
  }
  const std::vector<uint32_t> order = postorder(before, end);
  std::vector<uint32_t> place(end + 1, no_join), join(end + 1, no_join);
  for (uint32_t k = 0; k < order.size(); k++) place[order[k]] = k;
  join[end] = end;
  auto common = [&](uint32_t a, uint32_t b) {
    while (a != b) {
      if (place[a] > place[b]) std::swap(a, b);
      a = join[a];
    }
    return a;
  };
  for (bool changes = true; changes;) {
    changes = false;
    for (auto at = order.rbegin() + 1; at != order.rend(); ++at) {
      uint32_t found = no_join;
      for (uint32_t to : after[*at])
        if (join[to] != no_join) found = found == no_join ? to : common(to, found);
      changes |= join[*at] != found;
      join[*at] = found;
    }
  }
  for (uint32_t k = 0; k < end; k++)
    if (code[k].control == Inst::branch && join[k] != end) code[k].join = join[k];
}

}  // namespace quern::ptx

#include "quern/runtime/image.h"

#include <algorithm>

#include "quern/ir/schedule.h"
#include "runtime/bytes.h"

namespace quern::runtime {

using namespace ir;

namespace {

constexpr char magic[8] = {'Q', 'U', 'E', 'R', 'N', 'I', 'M', 'G'};
/// Of the format below. What launches and code agree on has a version of its own, abi::version.
constexpr uint32_t format_version = 10;
constexpr size_t head_bytes = sizeof magic + 2 * sizeof(uint32_t) + 2 * sizeof(uint64_t);
/// Cells are numbered in 16 bits.
constexpr uint32_t most_frame_bytes = 8 << 16;
/// Steps inside each other.
constexpr int deepest_schedule = 4000;

/// Operations and types are written by name: their numbers change with the tables they stand in.
template <class Archive, class E, class Named>
void by_name(Archive& a, E& e, Named&& named) {
  std::string text;
  if constexpr (!Archive::reads) text = named.name(e);
  a(text);
  if constexpr (Archive::reads) {
    const std::optional<E> found = named.find(text);
    a.expect(found.has_value());
    e = *found;
  }
}

template <class Archive>
void archive(Archive& a, Type& t) {
  struct Named {
    static std::string name(Type of) { return of == Type::none ? "" : std::string(ir::name(of)); }
    static std::optional<Type> find(const std::string& text) {
      return text.empty() ? Type::none : type_named(text);
    }
  };
  by_name(a, t, Named());
}

template <class Archive>
void archive(Archive& a, Op& op) {
  struct Named {
    static std::string name(Op of) { return std::string(info(of).name); }
    static std::optional<Op> find(const std::string& text) { return op_named(text); }
  };
  by_name(a, op, Named());
}

/// An enumerator by its place in a list that only ever grows.
template <class Archive, class E, size_t N>
void listed(Archive& a, E& e, const E (&list)[N]) {
  uint8_t number = 0;
  if constexpr (!Archive::reads) {
    const E* found = std::find(list, list + N, e);
    if (found == list + N) throw InternalError("an image of what images cannot hold");
    number = uint8_t(found - list);
  }
  a(number);
  if constexpr (Archive::reads) {
    a.expect(number < N);
    e = list[number];
  }
}

template <class Archive>
void archive(Archive& a, Task::Kind& kind) {
  static constexpr Task::Kind list[] = {Task::serial, Task::range, Task::combining};
  listed(a, kind, list);
}
template <class Archive>
void archive(Archive& a, Task::Walk& walk) {
  static constexpr Task::Walk list[] = {Task::unlowered, Task::chunked, Task::element};
  listed(a, walk, list);
}
template <class Archive>
void archive(Archive& a, Step::Kind& kind) {
  static constexpr Step::Kind list[] = {Step::launch,  Step::if_,     Step::repeat, Step::combining,
                                        Step::refresh, Step::reserve, Step::collect};
  listed(a, kind, list);
}
template <class Archive>
void archive(Archive& a, Site::Kind& kind) {
  static constexpr Site::Kind list[] = {Site::check, Site::bounds, Site::division, Site::conversion,
                                        Site::print, Site::stop,   Site::other};
  listed(a, kind, list);
}
template <class Archive>
void archive(Archive& a, HostExpression::Source& source) {
  static constexpr HostExpression::Source list[] = {HostExpression::value, HostExpression::constant,
                                                    HostExpression::argument, HostExpression::cell};
  listed(a, source, list);
}

template <class Archive>
void archive(Archive& a, Image::Buffer::Size& size) {
  using Buffer = Image::Buffer;
  static constexpr Buffer::Size list[] = {Buffer::rows, Buffer::iterations, Buffer::counted,
                                          Buffer::copies};
  listed(a, size, list);
}

template <class Archive>
void archive(Archive& a, HostExpression& e) {
  each(a, e.steps, [&](HostExpression::Step& s) {
    archive(a, s.source);
    archive(a, s.op);
    archive(a, s.operand);
    archive(a, s.result);
    for (uint32_t& operand : s.operands) a(operand);
    a(s.count);
    a(s.imm);
  });
  each(a, e.results, [&](uint32_t& k) { a(k); });
  a(e.reads_frame);
}

template <class Archive>
void archive(Archive& a, std::vector<Component>& components) {
  each(a, components, [&](Component& c) {
    archive(a, c.type);
    a(c.exact);
  });
}

template <class Archive>
void archive(Archive& a, Image::Parameter& p) {
  a(p.is_field);
  a(p.rank);
  archive(a, p.components);
  a(p.name);
  a(p.reads);
  a(p.writes);
  a(p.of);
  a(p.companion);
  each(a, p.narrow, [&](Image::Parameter::Narrow& n) {
    a(n.axis);
    a(n.loc);
  });
}

template <class Archive>
void archive(Archive& a, Image::TreePart& p) {
  a(p.binding);
  a(p.of);
  a(p.name);
  archive(a, p.components);
  a(p.writes);
}

template <class Archive>
void archive(Archive& a, Image::Buffer& b) {
  a(b.binding);
  a(b.task);
  archive(a, b.size);
  archive(a, b.count);
  a(b.updates);
  archive(a, b.components);
  a(b.is_kept);
  a(b.name);
  a(b.loc);
}

template <class Archive>
void archive(Archive& a, Image::Task& t) {
  archive(a, t.kind);
  archive(a, t.walk);
  a(t.rank);
  a(t.innermost);
  a(t.once);
  a(t.lanes);
  a(t.combines);
  a(t.block_size);
  a(t.reductions);
  a(t.grain);
  a(t.together);
  a(t.strip);
  a(t.operations);
  for (std::optional<HostExpression>* e : {&t.domain, &t.bound}) {
    bool is_there = e->has_value();
    a(is_there);
    if (!is_there) continue;
    if constexpr (Archive::reads) e->emplace();
    archive(a, **e);
  }
  a(t.merges);
  a(t.follows);
  a(t.is_followed);
  a(t.loc);
}

template <class Archive>
void archive(Archive& a, std::vector<Step>& steps, int depth = 0) {
  if (depth > deepest_schedule) {
    if constexpr (Archive::reads) a.expect(false);
    throw Error("a schedule nested more than " + std::to_string(deepest_schedule) + " deep");
  }
  each(a, steps, [&](Step& s) {
    archive(a, s.kind);
    a(s.task);
    a(s.cell);
    a(s.binding);
    a(s.claims);
    archive(a, s.body, depth + 1);
    archive(a, s.condition, depth + 1);
  });
}

template <class Archive>
void archive(Archive& a, std::vector<Placement::Level>& levels) {
  each(a, levels, [&](Placement::Level& l) {
    for (uint32_t& n : l.extent) a(n);
    for (uint32_t& n : l.stride) a(n);
  });
}

template <class Archive>
void archive(Archive& a, Placement& p) {
  archive(a, p.levels);
  each(a, p.pools, [&](Placement::Pool& pool) {
    archive(a, pool.levels);
    a(pool.children);
    a(pool.unit);
    a(pool.direct);
    a(pool.chunks);
    for (uint8_t& words : pool.key) a(words);
  });
  for (uint32_t& n : p.cell) a(n);
  a(p.cut);
  a(p.wide);
  a(p.rebased);
  a(p.step);
  a(p.group);
  a(p.group_bytes);
  each(a, p.offsets, [&](int32_t& n) { a(n); });
  a(p.shifted);
  a(p.fast);
}

template <class Archive>
void archive(Archive& a, Signature& s) {
  each(a, s.fields, [&](Signature::Field& f) {
    a(f.contiguous);
    a(f.alias_class);
    a(f.zero_based);
    archive(a, f.layout);
    a(f.alignment);
    each(a, f.encodings, [&](Type& t) { archive(a, t); });
    a(f.tree);
  });
  a(s.modes.checked);
  a(s.modes.strict);
  a(s.modes.contract);
  a(s.wide);
}

/// One description for both directions.
template <class Archive>
void archive(Archive& a, Image& i) {
  a(i.kernel);
  a(i.loc);
  a(i.signature);
  a(i.backend);
  a(i.isa);
  a(i.one_thread);
  archive(a, i.made_for);
  each(a, i.parameters, [&](Image::Parameter& p) { archive(a, p); });
  each(a, i.layout.places, [&](abi::Place& p) {
    a(p.offset);
    a(p.rank);
    a(p.extents);
    a(p.firsts);
  });
  a(i.layout.bytes);
  a(i.takes_value);
  a(i.frame_bytes);
  each(a, i.results, [&](Type& t) { archive(a, t); });
  each(a, i.tree_parts, [&](Image::TreePart& p) { archive(a, p); });
  each(a, i.buffers, [&](Image::Buffer& b) { archive(a, b); });
  each(a, i.tasks, [&](Image::Task& t) { archive(a, t); });
  archive(a, i.schedule);
  each(a, i.sites, [&](Site& s) {
    archive(a, s.kind);
    a(s.loc);
    a(s.text);
    each(a, s.values, [&](Type& t) { archive(a, t); });
  });
  a(i.code);
}

// ---- consistency: what a launch takes for granted

bool is_consistent(const HostExpression& e, const Image& image) {
  bool reads_frame = false;
  for (size_t k = 0; k < e.steps.size(); k++) {
    const HostExpression::Step& s = e.steps[k];
    if (!is_scalar(s.result) && s.result != Type::address) return false;
    if (s.source == HostExpression::argument && (s.imm % 8 || s.imm + 8 > image.layout.bytes))
      return false;
    if (s.source == HostExpression::cell && (s.imm % 8 || s.imm + 8 > image.frame_bytes))
      return false;
    reads_frame |= s.source == HostExpression::cell;
    if (s.source != HostExpression::value) continue;
    if (!is_pure(s.op) || info(s.op).library || info(s.op).operands != s.count || s.count > 3)
      return false;
    for (uint32_t n = 0; n < s.count; n++)
      if (s.operands[n] >= k) return false;
    if (e.steps[s.operands[s.count - 1u]].result != s.operand) return false;
  }
  return reads_frame == e.reads_frame &&
         std::ranges::all_of(e.results, [&](uint32_t k) { return k < e.steps.size(); });
}

bool is_consistent(const Image::Task& t, const Image& image) {
  if (t.rank > Placement::max_axes || (t.rank ? t.innermost >= t.rank : t.innermost != 0))
    return false;
  const auto is_good = [&](const std::optional<HostExpression>& e) {
    return !e || (e->results.size() == 2u * t.rank && is_consistent(*e, image));
  };
  const auto is_merged = [&](const Image::Buffer& b) {
    return b.binding == t.merges && b.size == Image::Buffer::copies;
  };
  return t.together >= 1 && is_good(t.domain) && is_good(t.bound) && (t.domain || !t.bound) &&
         (t.follows == no_task ||
          (t.follows < size_t(&t - image.tasks.data()) && image.tasks[t.follows].is_followed)) &&
         (t.merges == no_binding || std::ranges::any_of(image.buffers, is_merged));
}

bool is_consistent(const Step& s, const Image& image) {
  auto is_launch = [](const Step& one) { return one.kind == Step::launch; };
  if (is_launch(s)) return s.task < image.tasks.size();
  if (sees_to_tree(s))
    return s.binding < image.parameters.size() && image.parameters[s.binding].is_field &&
           (s.kind != Step::reserve ||
            (s.task < image.tasks.size() && std::ranges::all_of(s.body, is_launch)));
  if (reads_cell(s)) return s.cell * 8ull + 8 <= image.frame_bytes;
  return s.body.size() == 2 && std::ranges::all_of(s.body, is_launch);
}

/// Where the entries of something with elements end. The same sums as those of abi::Place, in 64
/// bits.
bool holds_elements(const abi::Place& place, uint64_t rank, uint64_t components, uint64_t bytes) {
  return place.offset % 8 == 0 && place.rank == rank && place.extents % 8 == 0 &&
         place.firsts % 8 == 0 && place.offset + components * 8 * (1 + rank) <= bytes &&
         place.extents + 8 * rank <= bytes && place.firsts + 16 * rank <= bytes;
}

bool is_consistent(const abi::Place& place, const Image::Parameter& p, uint64_t bytes) {
  if (p.is_field) return holds_elements(place, p.rank, p.components.size(), bytes);
  return place.offset % 8 == 0 && place.offset + uint64_t(8) <= bytes;
}

bool is_consistent(const Image::Buffer& b, const Image& image) {
  return b.binding < image.layout.places.size() && b.binding >= image.parameters.size() &&
         holds_elements(image.layout.places[b.binding], 1, b.components.size(),
                        image.layout.bytes) &&
         !b.components.empty() && b.task < image.tasks.size() &&
         b.count.results.size() ==
             (b.size == Image::Buffer::counted || b.size == Image::Buffer::copies) &&
         is_consistent(b.count, image);
}

bool is_consistent(const Image::TreePart& p, const Image& image) {
  return p.binding < image.layout.places.size() && p.binding >= image.parameters.size() &&
         holds_elements(image.layout.places[p.binding], 1, p.components.size(),
                        image.layout.bytes) &&
         p.of < image.parameters.size() && image.parameters[p.of].is_field;
}

bool is_consistent(const Image& i) {
  // A place of the frame, which has no entries, may stand behind those of the parameters.
  uint64_t entries = 0;
  for (const Image::Parameter& p : i.parameters)
    entries += p.is_field ? p.components.size() * (1 + p.rank) + 3 * p.rank : 1;
  for (const Image::TreePart& p : i.tree_parts) entries += 2 * p.components.size() + 3;
  for (const Image::Buffer& b : i.buffers) entries += 2 * b.components.size() + 3;
  if (i.layout.bytes != abi::head_bytes + 8 * entries ||
      i.layout.places.size() < i.parameters.size() || i.frame_bytes > most_frame_bytes ||
      i.layout.bytes % 8 || i.results.size() * 8 > i.frame_bytes || i.frame_bytes % 8)
    return false;
  for (size_t k = 0; k < i.parameters.size(); k++) {
    const Image::Parameter& p = i.parameters[k];
    if (p.rank > Placement::max_axes || p.components.size() > UINT16_MAX ||
        !is_consistent(i.layout.places[k], p, i.layout.bytes))
      return false;
    if (p.is_derived() && (p.of >= k || !p.is_field || !i.parameters[p.of].is_field ||
                           i.parameters[p.of].rank != p.rank))
      return false;
    for (const Image::Parameter::Narrow& n : p.narrow)
      if (!p.is_field || n.axis >= p.rank) return false;
  }
  const auto all_good = [&](const auto& list) {
    return std::ranges::all_of(list, [&](const auto& one) { return is_consistent(one, i); });
  };
  bool good = all_good(i.tree_parts) && all_good(i.buffers) && all_good(i.tasks);
  for_each_step(i.schedule, [&](const Step& s) { good &= is_consistent(s, i); });
  return good;
}

}  // namespace

std::vector<std::byte> Image::bytes() const {
  ByteWriter body, whole;
  archive(body, const_cast<Image&>(*this));  // a writer changes nothing
  for (char c : magic) whole(c);
  whole(format_version);
  whole(abi::version);
  whole(uint64_t(body.bytes.size()));
  whole(checksum(body.bytes));
  whole.bytes.insert(whole.bytes.end(), body.bytes.begin(), body.bytes.end());
  return std::move(whole.bytes);
}

Image Image::from(std::span<const std::byte> bytes, const std::string& source) {
  auto refuse = [&](const std::string& why) { throw Error(source + " " + why); };
  const std::string size = std::to_string(bytes.size()) + " bytes";
  if (bytes.size() < sizeof magic || std::memcmp(bytes.data(), magic, sizeof magic) != 0)
    refuse("is no image of a kernel: its " + size + " do not begin with QUERNIMG");
  if (bytes.size() < head_bytes) refuse("is cut: it has " + size + ", not even a whole head");
  ByteReader head(bytes.subspan(sizeof magic), source);
  uint32_t format = 0, abi_version = 0;
  uint64_t length = 0, sum = 0;
  head(format);
  head(abi_version);
  head(length);
  head(sum);
  auto version = [](uint32_t f, uint32_t a) { return std::to_string(f) + "." + std::to_string(a); };
  if (format != format_version || abi_version != abi::version)
    refuse("is of version " + version(format, abi_version) +
           "; this build of Quern loads version " + version(format_version, abi::version));
  const std::span<const std::byte> body = bytes.subspan(head_bytes);
  if (length > body.size())
    refuse("is cut: it has " + size + " of " + std::to_string(head_bytes + length));
  if (length < body.size())
    refuse("has " + std::to_string(body.size() - length) + " bytes behind its end");
  const std::string damaged = source + " is damaged: it is not what was written";
  if (checksum(body) != sum) throw Error(damaged);
  ByteReader reader(body, damaged);
  Image image;
  archive(reader, image);
  reader.expect(reader.left() == 0 && is_consistent(image));
  return image;
}

std::string task_symbol(size_t task) { return "task_" + std::to_string(task); }

// ---- domains

void HostExpression::evaluate(const std::byte* args, const std::byte* frame,
                              std::span<int64_t> out) const {
  Bits small[64];
  std::vector<Bits> large;
  Bits* values = small;
  if (steps.size() > 64) {
    large.resize(steps.size());
    values = large.data();
  }
  for (size_t k = 0; k < steps.size(); k++) {
    const Step& s = steps[k];
    Bits v = 0;
    if (s.source == constant) {
      v = s.imm;
    } else if (s.source == value) {
      Bits of[3];
      for (int n = 0; n < s.count; n++) of[n] = values[s.operands[n]];
      if (!ir::evaluate(s.op, s.operand, s.result, {of, s.count}, v))
        throw InternalError("a task's domain holds '" + std::string(info(s.op).name) + "'");
    } else {
      std::memcpy(&v, (s.source == argument ? args : frame) + s.imm, 8);
      v = truncate(v, s.result);
    }
    values[k] = v;
  }
  for (size_t k = 0; k < results.size(); k++) {
    const Type type = steps[results[k]].result;
    out[k] = is_signed(type) ? to_signed(values[results[k]], type) : int64_t(values[results[k]]);
  }
}

}  // namespace quern::runtime

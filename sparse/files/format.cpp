#include "sparse/files/format.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/bytes.h"

namespace quern::detail {

namespace {

using runtime::checksum;

constexpr char magic[8] = {'Q', 'N', 'T', 'R', 'E', 'E', '\r', '\n'};
constexpr uint32_t version = 1;

class Writer {
 public:
  template <class T>
  void number(T v) {
    bytes(&v, sizeof v);
  }
  void bytes(const void* from, size_t count) {
    const auto* at = static_cast<const std::byte*>(from);
    out.insert(out.end(), at, at + count);
  }
  template <class T>
  void all(const std::vector<T>& v) {
    bytes(v.data(), v.size() * sizeof(T));
  }
  std::vector<std::byte> out;
};

/// What is wrong with a file; decoded makes an Error of it.
struct Malformed {
  std::string why;
};
[[noreturn]] void refuse(std::string why) { throw Malformed{std::move(why)}; }

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  std::span<const std::byte> bytes(uint64_t count, uint64_t each = 1) {
    if (each > 0 && count > left_.size() / each) refuse("it is cut off");
    const auto taken = left_.first(size_t(count * each));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  template <class T>
  T number() {
    T v;
    std::memcpy(&v, bytes(sizeof v).data(), sizeof v);
    return v;
  }
  template <class T>
  std::vector<T> all(uint64_t count, uint64_t each = 1) {
    if (each > 0 && count > left_.size() / each) refuse("it is cut off");
    const auto from = bytes(count * each, sizeof(T));
    std::vector<T> v(from.size() / sizeof(T));
    if (!v.empty()) std::memcpy(v.data(), from.data(), from.size());
    return v;
  }
  size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> left_;
};

uint32_t width_of(ir::Type type) { return ir::byte_size(ir::storage_type(type)); }

TreeFileField field_from(Reader& r, int64_t active) {
  TreeFileField field;
  const auto name = r.bytes(r.number<uint32_t>());
  field.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  size_t bytes = 0;
  for (const uint8_t type : r.all<uint8_t>(r.number<uint32_t>())) {
    if (type < uint8_t(ir::Type::b1) || type > uint8_t(ir::Type::f64))
      refuse("'" + field.name + "' has components of the unknown type " + std::to_string(type));
    field.components.push_back(ir::Type(type));
    bytes += width_of(field.components.back());
  }
  field.background = r.all<std::byte>(bytes);
  for (const ir::Type type : field.components)
    field.values.push_back(r.bytes(uint64_t(active), width_of(type)));
  return field;
}

/// Of lists, one after the other, the chunks follow each other and are full but for the last one: no
/// chunk stands for others that the file does not have.
void expect_whole_lists(const TreeContent& c) {
  const size_t rank = c.shape.size();
  if (int64_t(c.children) != c.levels.back().chunk)
    refuse(other_children(c.levels.back().chunk, c));
  for (size_t k = 0; k < c.activity.size(); k++) {
    const uint32_t length = c.activity[k];
    if (length > c.children)
      refuse("a chunk of " + std::to_string(c.children) + " elements has " +
             std::to_string(length));
    const int64_t* place = c.places.data() + k * rank;
    const int64_t first = place[rank - 1];
    const bool follows = k > 0 && std::equal(place, place + rank - 1, place - rank) &&
                         place[-1] == first - int64_t(c.children) &&
                         c.activity[k - 1] == c.children;
    if (length == 0 || (first != 0 && !follows)) refuse(other_cells);
  }
}

TreeContent content_from(std::span<const std::byte> file, int rank) {
  Reader r(file);
  if (file.size() < sizeof magic || std::memcmp(r.bytes(sizeof magic).data(), magic, sizeof magic))
    refuse("it is no file of a tree");
  if (const auto found = r.number<uint32_t>(); found != version)
    refuse("it has format version " + std::to_string(found) + "; version 1 is read");
  constexpr size_t start = sizeof magic + sizeof version, end = sizeof(uint64_t);
  if (file.size() < start + end ||
      checksum(file.first(file.size() - end)) != Reader(file.last(end)).number<uint64_t>())
    refuse("it is damaged or cut off: its checksum is that of another content");
  r = Reader(file.subspan(start, file.size() - start - end));

  const auto axes = r.number<uint32_t>();
  if (axes != uint32_t(rank))
    refuse("it holds a tree of " + std::to_string(axes) + (axes == 1 ? " axis" : " axes") +
           " where one of " + std::to_string(rank) + " is read");
  TreeContent c;
  for (int axis = 0; axis < rank; axis++) {
    c.shape.push_back(r.number<int64_t>());
    c.firsts.push_back(r.number<int64_t>());
  }
  const auto levels = r.number<uint32_t>();
  for (uint32_t k = 0; k < levels; k++) {
    TreeLevel level;
    const auto kind = r.number<uint32_t>();
    if (kind > TreeLevel::dynamic)
      refuse("it has a level of the unknown kind " + std::to_string(kind));
    level.kind = TreeLevel::Kind(kind);
    level.count = kind == TreeLevel::hash ? 0 : rank;
    for (int axis = 0; axis < rank; axis++) level.n[axis] = r.number<int32_t>();
    if (kind == TreeLevel::hash && std::ranges::any_of(level.n, [](int n) { return n != 0; }))
      refuse("its hash level has extents");
    if (kind == TreeLevel::dynamic) level.chunk = r.number<int32_t>();
    c.levels.push_back(level);
  }
  const auto cells = r.number<uint64_t>();
  c.children = r.number<uint32_t>();
  c.places = r.all<int64_t>(cells, uint64_t(rank));
  c.activity = r.all<uint32_t>(cells, uint64_t(c.words()));
  if (c.has_lists()) expect_whole_lists(c);
  for (const uint32_t word : c.activity) c.active += c.active_in(word);
  const auto fields = r.number<uint32_t>();
  for (uint32_t k = 0; k < fields; k++) c.fields.push_back(field_from(r, c.active));
  if (r.left() > 0) refuse("bytes follow its content");
  return c;
}

}  // namespace

std::vector<std::byte> encoded(const TreeContent& c) {
  Writer w;
  w.bytes(magic, sizeof magic);
  w.number(version);
  w.number(uint32_t(c.shape.size()));
  for (size_t axis = 0; axis < c.shape.size(); axis++) {
    w.number(c.shape[axis]);
    w.number(c.firsts[axis]);
  }
  w.number(uint32_t(c.levels.size()));
  for (const TreeLevel& level : c.levels) {
    w.number(uint32_t(level.kind));
    for (size_t axis = 0; axis < c.shape.size(); axis++) w.number(int32_t(level.n[axis]));
    if (level.kind == TreeLevel::dynamic) w.number(int32_t(level.chunk));
  }
  w.number(uint64_t(c.cells()));
  w.number(c.children);
  w.all(c.places);
  w.all(c.activity);
  w.number(uint32_t(c.fields.size()));
  for (const TreeFileField& field : c.fields) {
    w.number(uint32_t(field.name.size()));
    w.bytes(field.name.data(), field.name.size());
    w.number(uint32_t(field.components.size()));
    for (const ir::Type type : field.components) w.number(uint8_t(type));
    w.all(field.background);
    for (const auto& values : field.values) w.bytes(values.data(), values.size());
  }
  w.number(checksum(w.out));
  return std::move(w.out);
}

TreeContent decoded(std::span<const std::byte> bytes, int rank, const std::string& path, Loc loc) {
  try {
    return content_from(bytes, rank);
  } catch (const Malformed& m) {
    throw Error(loc, "cannot read '" + path + "': " + m.why);
  }
}

}  // namespace quern::detail

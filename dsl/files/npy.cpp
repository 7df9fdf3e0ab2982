// NumPy's array format (numpy.lib.format): a magic string, a version, the length of a header, the
// header (a Python dictionary: descr, fortran_order, shape), then the elements.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "dsl/files/bytes.h"
#include "quern/error.h"
#include "quern/files.h"

namespace quern::detail {

namespace {

constexpr std::string_view magic = "\x93NUMPY";

struct Type {
  Scalar scalar;
  std::string_view code, name;  ///< as in a file (without the byte order), as NumPy calls it
};
constexpr Type types[] = {
    {Scalar::b1, "b1", "bool"},     {Scalar::i8, "i1", "int8"},     {Scalar::i16, "i2", "int16"},
    {Scalar::i32, "i4", "int32"},   {Scalar::i64, "i8", "int64"},   {Scalar::u8, "u1", "uint8"},
    {Scalar::u16, "u2", "uint16"},  {Scalar::u32, "u4", "uint32"},  {Scalar::u64, "u8", "uint64"},
    {Scalar::f16, "f2", "float16"}, {Scalar::f32, "f4", "float32"}, {Scalar::f64, "f8", "float64"},
};
const Type& type_named(Scalar s) {
  return *std::find_if(std::begin(types), std::end(types), [&](auto& t) { return t.scalar == s; });
}
size_t width_of(const Type& t) { return size_t(t.code[1] - '0'); }

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

/// What is wrong with a file; load_npy makes an Error of it.
struct Malformed {
  std::string why;
};
[[noreturn]] void refuse(std::string why) { throw Malformed{std::move(why)}; }

/// Reads the header's dictionary; keys may come in any order.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Header header() {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<int64_t>> shape;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !descr)
        descr = element_type();
      else if (key == "fortran_order" && !fortran_order)
        fortran_order = boolean();
      else if (key == "shape" && !shape)
        shape = extents();
      else
        refuse("its header has the key '" + key + "' where none is allowed");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) broken();
    if (!descr || !fortran_order || !shape)
      refuse("its header lacks 'descr', 'fortran_order' or 'shape'");
    return {*descr, *fortran_order, *shape};
  }

 private:
  [[noreturn]] static void broken() { refuse("its header is malformed"); }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) at_++;
  }
  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool accept(char c) { return accept(std::string_view(&c, 1)); }
  void expect(char c) {
    if (!accept(c)) broken();
  }
  std::string string() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) broken();
    std::string s(text_.substr(at_, end - at_));
    at_ = end + 1;
    return s;
  }
  std::string element_type() {
    if (accept('[')) refuse("its elements are structured");
    return string();
  }
  bool boolean() {
    if (accept("True")) return true;
    if (!accept("False")) broken();
    return false;
  }
  std::vector<int64_t> extents() {
    std::vector<int64_t> shape;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t n = 0;
      auto [end, failure] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
      if (failure != std::errc() || n < 0) broken();
      at_ = size_t(end - text_.data());
      accept('L');  // written by Python 2
      shape.push_back(n);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string shape_text(std::span<const int64_t> shape) {
  std::string s = "(";
  for (size_t k = 0; k < shape.size(); k++)
    s += (k ? ", " : "") + std::to_string(shape[k]) + (shape.size() == 1 ? "," : "");
  return s + ")";
}

/// Elements of `width` bytes from the first axis fastest to the last axis fastest.
std::vector<std::byte> row_major(std::span<const std::byte> from, size_t width,
                                 std::span<const int64_t> shape) {
  std::vector<std::byte> to(from.size());
  std::vector<int64_t> index(shape.size());
  for (size_t k = 0; k * width < to.size(); k++) {
    int64_t source = 0;
    for (size_t axis = shape.size(); axis-- > 0;) source = source * shape[axis] + index[axis];
    std::memcpy(&to[k * width], &from[size_t(source) * width], width);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  return to;
}

/// Where the header's text begins and how long it is, by the file's version.
std::string_view header_text(std::string_view file) {
  if (!file.starts_with(magic)) refuse("it is not an .npy file");
  const size_t fixed = magic.size() + 2;
  if (file.size() < fixed) refuse("it is cut off in its header");
  const int major = uint8_t(file[magic.size()]), minor = uint8_t(file[magic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0)
    refuse("it has format version " + std::to_string(major) + "." + std::to_string(minor) +
           "; versions 1.0, 2.0 and 3.0 are read");
  const size_t digits = major == 1 ? 2 : 4;
  if (file.size() < fixed + digits) refuse("it is cut off in its header");
  size_t length = 0;
  for (size_t k = digits; k-- > 0;) length = length << 8 | uint8_t(file[fixed + k]);
  if (file.size() - fixed - digits < length) refuse("it is cut off in its header");
  return file.substr(fixed + digits, length);
}

/// The element's type must be `wanted`; is it stored in the other byte order?
bool swapped_order(const std::string& descr, const Type& wanted) {
  const bool known_order =
      !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string::npos;
  if (!known_order || descr.substr(1) != wanted.code) {
    const std::string code = known_order ? descr.substr(1) : descr;
    const auto* found = std::find_if(std::begin(types), std::end(types),
                                     [&](const Type& t) { return t.code == code; });
    refuse("it holds " + (found == std::end(types) ? "" : std::string(found->name) + " ") + "('" +
           descr + "') where the field's elements are " + std::string(wanted.name));
  }
  if (descr[0] == '=' || width_of(wanted) == 1) return false;
  if (descr[0] == '|') refuse("its elements have no byte order");
  return (descr[0] == '>') != (std::endian::native == std::endian::big);
}

}  // namespace

FileArray load_npy(const std::string& path, Scalar type, int rank, std::span<const int64_t> inside,
                   Loc loc) {
  FileArray a{{}, read_bytes(path, loc), 0};
  const Type& wanted = type_named(type);
  const size_t width = width_of(wanted);
  try {
    const std::string_view file(reinterpret_cast<const char*>(a.bytes.data()), a.bytes.size());
    const std::string_view text = header_text(file);
    const Header header = Parser(text).header();
    const bool swapped = swapped_order(header.descr, wanted);
    a.first = size_t(text.data() - file.data()) + text.size();

    const std::string found = "it has shape " + shape_text(header.shape) + " where ";
    if (header.shape.size() != size_t(rank) + inside.size())
      refuse(found + "the field has " + std::to_string(rank) + (rank == 1 ? " axis" : " axes") +
             (inside.empty() ? "" : " of elements of shape " + shape_text(inside)));
    if (!std::equal(inside.begin(), inside.end(), header.shape.begin() + rank))
      refuse(found + "the last axes must be those of the field's elements, " + shape_text(inside));

    // More bytes than there are cannot be right, so the product stops before it overflows.
    const size_t present = file.size() - a.first;
    const bool empty = std::find(header.shape.begin(), header.shape.end(), 0) != header.shape.end();
    size_t announced = empty ? 0 : width;
    for (size_t k = 0; k < header.shape.size() && announced > 0 && announced <= present; k++)
      if (__builtin_mul_overflow(announced, size_t(header.shape[k]), &announced))
        announced = SIZE_MAX;
    if (announced != present)
      refuse("shape " + shape_text(header.shape) + " of " + std::string(wanted.name) + " takes " +
             (announced > present ? "more" : "fewer") + " than the " + std::to_string(present) +
             " bytes that follow the header");

    std::span<std::byte> elements = std::span(a.bytes).subspan(a.first);
    if (type == Scalar::b1 &&
        std::any_of(elements.begin(), elements.end(), [](std::byte b) { return uint8_t(b) > 1; }))
      refuse("it has bool elements that are neither 0 nor 1");
    if (swapped)
      for (size_t k = 0; k < elements.size(); k += width)
        std::reverse(elements.begin() + int64_t(k), elements.begin() + int64_t(k + width));
    if (header.fortran_order && header.shape.size() > 1) {
      a.bytes = row_major(elements, width, header.shape);
      a.first = 0;
    }
    a.shape.assign(header.shape.begin(), header.shape.begin() + rank);
  } catch (const Malformed& m) {
    throw Error(loc, "cannot read '" + path + "': " + m.why);
  }
  return a;
}

void save_npy(const std::string& path, const FileArray& array, Scalar type,
              std::span<const int64_t> inside, Loc loc) {
  const Type& stored = type_named(type);
  std::vector<int64_t> shape = array.shape;
  shape.insert(shape.end(), inside.begin(), inside.end());
  const char order = width_of(stored) == 1                        ? '|'
                     : std::endian::native == std::endian::little ? '<'
                                                                  : '>';
  std::string header = "{'descr': '" + std::string(1, order) + std::string(stored.code) +
                       "', 'fortran_order': False, 'shape': " + shape_text(shape) + ", }";
  // Padded so that the elements begin at a multiple of 64 bytes.
  const size_t fixed = magic.size() + 4;
  header.append(63 - (fixed + header.size()) % 64, ' ') += '\n';
  std::string start(magic);
  start += {char(1), char(0), char(header.size() & 0xff), char(header.size() >> 8)};
  write_bytes(path,
              {std::as_bytes(std::span(start)), std::as_bytes(std::span(header)),
               std::span(array.bytes).subspan(array.first)},
              loc);
}

}  // namespace quern::detail

#pragma once
// Values as bytes, little-endian, one behind the other: written by ByteWriter, read by ByteReader
// in the same order. And the checksum of such bytes.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "quern/error.h"

namespace quern::runtime {

static_assert(std::endian::native == std::endian::little);

/// FNV-1a on words of eight bytes, the last one filled up by zeros, each folded so that high bits count
/// for low ones: finds damage, not forgery.
inline uint64_t checksum(std::span<const std::byte> bytes) {
  uint64_t h = 0xcbf29ce484222325;
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    h = (h ^ word) * 0x100000001b3;
    h ^= h >> 32;
  }
  return h;
}

class ByteWriter {
 public:
  static constexpr bool reads = false;
  std::vector<std::byte> bytes;

  template <class T>
    requires std::is_integral_v<T>
  void operator()(const T& v) {
    append(&v, sizeof v);
  }
  void operator()(const std::string& v) { sized(v.data(), v.size()); }
  void operator()(const std::vector<std::byte>& v) { sized(v.data(), v.size()); }
  void operator()(const Loc& v) {
    (*this)(std::string(v.file));
    (*this)(v.line);
  }

 private:
  void append(const void* from, size_t n) {
    auto* first = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), first, first + n);
  }
  void sized(const void* from, size_t n) {
    (*this)(uint64_t(n));
    append(from, n);
  }
};

/// Throws Error with the text given for bytes that cannot have been written.
class ByteReader {
 public:
  static constexpr bool reads = true;
  ByteReader(std::span<const std::byte> bytes, std::string complaint)
      : bytes_(bytes), complaint_(std::move(complaint)) {}

  template <class T>
    requires std::is_integral_v<T>
  void operator()(T& v) {
    std::span<const std::byte> part = take(sizeof v);
    if constexpr (std::is_same_v<T, bool>) {
      expect(part[0] <= std::byte(1));
      v = part[0] == std::byte(1);
    } else {
      std::memcpy(&v, part.data(), sizeof v);
    }
  }
  void operator()(std::string& v) {
    std::span<const std::byte> part = sized();
    v.assign(reinterpret_cast<const char*>(part.data()), part.size());
  }
  void operator()(std::vector<std::byte>& v) {
    std::span<const std::byte> part = sized();
    v.assign(part.begin(), part.end());
  }
  void operator()(Loc& v) {
    std::string file;
    (*this)(file);
    (*this)(v.line);
    v.file = intern(file);
  }

  void expect(bool good) const {
    if (!good) throw Error(complaint_);
  }
  size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> take(uint64_t n) {
    expect(n <= bytes_.size());
    std::span<const std::byte> part = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return part;
  }
  std::span<const std::byte> sized() {
    uint64_t n = 0;
    (*this)(n);
    return take(n);
  }

  std::span<const std::byte> bytes_;
  std::string complaint_;
};

/// The elements of `v`, by `f(element)`, of whichever archive it is.
template <class Archive, class T, class F>
void each(Archive& a, std::vector<T>& v, F&& f) {
  uint64_t n = v.size();
  a(n);
  if constexpr (Archive::reads) {
    a.expect(n <= a.left());  // none takes less than a byte
    v.resize(n);
  }
  for (T& one : v) f(one);
}

}  // namespace quern::runtime

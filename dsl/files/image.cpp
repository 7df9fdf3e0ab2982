// Pictures through stb: PNG and JPEG in, PNG out.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <memory>

#include "dsl/files/bytes.h"
#include "quern/error.h"
#include "quern/files.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace quern::detail {

namespace {

/// What is wrong with a JPEG's segments (ITU T.81, annex B), or null. stb fills what is missing of
/// a cut file with grey, and before 2023 wrote past its tables where one has more than 256 codes.
const char* jpeg_fault(const std::vector<std::byte>& file) {
  auto at = [&](size_t k) { return k < file.size() ? int(file[k]) : -1; };
  for (size_t k = 2; k < file.size();) {
    const int marker = at(k + 1);
    if (at(k) != 0xff || marker == 0 || (marker >= 0xd0 && marker <= 0xd7)) {
      k++;  // in a scan, where 0xff stands before 0 or a restart marker
    } else if (marker == 0xff || marker == 0x01) {
      k += marker == 0xff ? 1 : 2;  // a fill byte; a marker without a segment
    } else if (marker == 0xd9) {
      return nullptr;
    } else {
      if (at(k + 3) < 0) break;
      const size_t end = k + 2 + size_t(at(k + 2) << 8 | at(k + 3));
      for (size_t table = k + 4; marker == 0xc4 && table < end;) {  // Huffman tables
        int codes = 0;
        for (size_t length = 1; length <= 16; length++) codes += std::max(at(table + length), 0);
        if (codes > 256) return "it has a Huffman table of more than 256 codes";
        table += 17 + size_t(codes);
      }
      k = end;
    }
  }
  return "it is cut off before its end";
}

struct Free {
  void operator()(void* p) const { stbi_image_free(p); }
};

}  // namespace

FileArray load_image(const std::string& path, Scalar sample, int channels, Loc loc) {
  const std::vector<std::byte> file = read_bytes(path, loc);
  auto fail = [&](const std::string& why) {
    throw Error(loc, "cannot read '" + path + "' as PNG or JPEG: " + why);
  };
  if (file.size() > INT_MAX) fail("it is longer than 2 GiB");
  const auto* data = reinterpret_cast<const stbi_uc*>(file.data());
  const bool jpeg = file.size() > 2 && data[0] == 0xff && data[1] == 0xd8;
  if (const char* fault = jpeg ? jpeg_fault(file) : nullptr) fail(fault);

  int width = 0, height = 0, in_file = 0;
  const int length = int(file.size());
  std::unique_ptr<void, Free> pixels(
      sample == Scalar::u8
          ? static_cast<void*>(
                stbi_load_from_memory(data, length, &width, &height, &in_file, channels))
          : stbi_load_16_from_memory(data, length, &width, &height, &in_file, channels));
  if (!pixels) fail(stbi_failure_reason());
  const size_t count = size_t(width) * size_t(height) * size_t(channels);
  FileArray image{{height, width}, {}, 0};
  if (sample == Scalar::u8) {
    const auto* first = static_cast<const std::byte*>(pixels.get());
    image.bytes.assign(first, first + count);
  } else {
    image.bytes.resize(count * sizeof(float));
    for (size_t k = 0; k < count; k++) {
      const float v = float(static_cast<const uint16_t*>(pixels.get())[k]) / 65535.0f;
      std::memcpy(&image.bytes[k * sizeof v], &v, sizeof v);
    }
  }
  return image;
}

void save_png(const std::string& path, const FileArray& pixels, Scalar sample, int channels,
              Loc loc) {
  const int64_t height = pixels.shape[0], width = pixels.shape[1];
  auto fail = [&](const std::string& why) {
    throw Error(loc, "cannot write '" + path + "' as a picture of " + std::to_string(width) +
                         " x " + std::to_string(height) + " pixels: " + why);
  };
  if (height == 0 || width == 0) fail("a PNG has at least one");
  if (width > INT_MAX / (2 * channels) || height > INT_MAX / (width * channels + 1))
    fail("it takes 2 GiB or more");
  const size_t count = size_t(height * width * channels);
  std::vector<uint8_t> samples(count);
  for (size_t k = 0; k < count; k++) {
    if (sample == Scalar::u8) {
      samples[k] = uint8_t(pixels.bytes[k]);
      continue;
    }
    float v;
    std::memcpy(&v, &pixels.bytes[k * sizeof v], sizeof v);
    if (std::isnan(v)) {
      const auto pixel = int64_t(k) / channels;
      fail("row " + std::to_string(pixel / width) + ", column " + std::to_string(pixel % width) +
           " is NaN");
    }
    samples[k] = uint8_t(std::lround(255.0f * std::fmin(std::fmax(v, 0.0f), 1.0f)));
  }
  std::vector<std::byte> file;
  auto append = [](void* to, void* data, int size) {
    const auto* first = static_cast<const std::byte*>(data);
    auto* bytes = static_cast<std::vector<std::byte>*>(to);
    bytes->insert(bytes->end(), first, first + size);
  };
  if (!stbi_write_png_to_func(append, &file, int(width), int(height), channels, samples.data(),
                              int(width) * channels))
    fail("there is not enough memory to compress it");
  write_bytes(path, {file}, loc);
}

}  // namespace quern::detail

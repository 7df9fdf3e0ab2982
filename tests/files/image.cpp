// Pictures: read from files made here byte by byte, and written ones read back.
#include <cmath>
#include <limits>

#include "tests/files/support.h"

namespace {

std::string big_endian(uint32_t v) {
  return {char(v >> 24), char(v >> 16 & 0xff), char(v >> 8 & 0xff), char(v & 0xff)};
}
uint32_t crc32(const std::string& bytes) {  // ISO 3309, bit by bit
  uint32_t c = 0xffffffffu;
  for (char b : bytes) {
    c ^= uint8_t(b);
    for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
  }
  return ~c;
}
uint32_t adler32(const std::string& bytes) {
  uint32_t a = 1, b = 0;
  for (char c : bytes) a = (a + uint8_t(c)) % 65521, b = (b + a) % 65521;
  return b << 16 | a;
}
std::string chunk(const std::string& type, const std::string& data) {
  return big_endian(uint32_t(data.size())) + type + data + big_endian(crc32(type + data));
}
/// A PNG (ISO 15948) with uncompressed data; `rows` have their samples as bytes. Colour 0 is grey,
/// 2 RGB, 6 RGBA.
std::string png(int width, int depth, int colour, const std::vector<std::string>& rows) {
  std::string raw;
  for (const std::string& row : rows) raw += '\0' + row;  // no filter
  std::string zlib = "\x78\x01\x01";
  zlib += {char(raw.size() & 0xff), char(raw.size() >> 8), char(~raw.size() & 0xff),
           char(~raw.size() >> 8 & 0xff)};
  zlib += raw + big_endian(adler32(raw));
  const std::string shape = big_endian(uint32_t(width)) + big_endian(uint32_t(rows.size()));
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", shape + char(depth) + char(colour) + '\0' + '\0' + '\0') +
         chunk("IDAT", zlib) + chunk("IEND", "");
}

/// A baseline JPEG (ITU T.81) of 8 × 8 pixels of one grey value: one coefficient, v - 128, coded
/// as category 7; so v is 192 … 255.
std::string jpeg(int v) {
  std::string s("\xff\xd8\xff\xdb\x00\x43\x00", 7);
  s += std::string(64, '\x08');  // quantisation by 8
  s += std::string("\xff\xc0\x00\x0b\x08\x00\x08\x00\x08\x01\x01\x11\x00", 13);  // the frame
  const std::string one_code = std::string("\x01", 1) + std::string(15, '\0');
  s += std::string("\xff\xc4\x00\x14\x00", 5) + one_code + '\x07';
  s += std::string("\xff\xc4\x00\x14\x10", 5) + one_code + '\0';
  s += std::string("\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00", 10);
  // 0 (category 7), seven bits of v - 128, 0 (end of block), ones to the end of the byte.
  s += char(v - 128);
  s += '\x7f';
  return s + "\xff\xd9";
}

}  // namespace

TEST_CASE("images: a PNG gives its samples, rows from the top") {
  Folder folder;
  qn::Device device;
  const std::string grey =
      folder.file("g.png", png(3, 8, 0, {{0, 1, 2}, {char(253), char(254), char(255)}}));
  qn::Field<uint8_t, 2> g = qn::read_image(device, grey);
  CHECK(g.shape(0) == 2);
  CHECK(g.shape(1) == 3);
  CHECK(qn::to_vector(g) == std::vector<uint8_t>{0, 1, 2, 253, 254, 255});
  qn::Field<float, 2> f = qn::read_image<float>(device, grey);
  CHECK(f.at(0, 1) == 1.0f / 255.0f);
  CHECK(f.at(1, 2) == 1.0f);
  using P = qn::Vec<uint8_t, 3>;
  CHECK((qn::read_image<uint8_t, 3>(device, grey).at(1, 0) == P{253, 253, 253}));

  const std::string colour = folder.file("c.png", png(2, 8, 2, {{char(255), 0, 0, 10, 20, 30}}));
  qn::Field<P, 2> c = qn::read_image<uint8_t, 3>(device, colour);
  CHECK(c.at(0, 0) == P{255, 0, 0});
  CHECK(c.at(0, 1) == P{10, 20, 30});
  using Q = qn::Vec<uint8_t, 4>;
  CHECK((qn::read_image<uint8_t, 4>(device, colour).at(0, 1) == Q{10, 20, 30, 255}));
  // Luma of pure red is 0.299 (BT.601), of a coloured grey itself.
  CHECK(std::abs(int(qn::read_image(device, colour).at(0, 0)) - 76) <= 1);

  const std::string clear = folder.file("a.png", png(1, 8, 6, {{1, 2, 3, 4}}));
  CHECK((qn::read_image<uint8_t, 4>(device, clear).at(0, 0) == Q{1, 2, 3, 4}));
  CHECK((qn::read_image<uint8_t, 3>(device, clear).at(0, 0) == P{1, 2, 3}));
}

TEST_CASE("images: 16 bits a sample are kept as float, cut to the high byte as uint8_t") {
  Folder folder;
  qn::Device device;
  const std::string path =
      folder.file("d.png", png(2, 16, 0, {{0x12, 0x34, char(0xff), char(0xff)}}));
  qn::Field<float, 2> f = qn::read_image<float>(device, path);
  CHECK(f.at(0, 0) == 0x1234 / 65535.0f);
  CHECK(f.at(0, 1) == 1.0f);
  CHECK(qn::read_image(device, path).at(0, 0) == 0x12);
}

TEST_CASE("images: a JPEG is read; a cut one is an error") {
  Folder folder;
  qn::Device device;
  for (int v : {192, 200, 255}) {
    qn::Field<uint8_t, 2> x = qn::read_image(device, folder.file("j.jpg", jpeg(v)));
    CHECK(qn::to_vector(x) == std::vector<uint8_t>(64, uint8_t(v)));
  }
  const std::string whole = jpeg(200);
  for (size_t length = 3; length < whole.size(); length++)
    FAILS(qn::read_image(device, folder.file("j.jpg", whole.substr(0, length))), "j.jpg",
          "cut off before its end");
}

TEST_CASE("images: a JPEG whose Huffman table has too many codes is an error") {
  Folder folder;
  qn::Device device;
  std::string file = jpeg(200);
  const size_t table = file.find("\xff\xc4") + 5;  // its sixteen counts
  for (size_t k = 7; k < 10; k++) file[table + k] = char(0xff);
  FAILS(qn::read_image(device, folder.file("h.jpg", file)), "h.jpg", "more than 256 codes");
}

TEST_CASE("images: what is written is read back") {
  Folder folder;
  qn::Device device;
  qn::Field<uint8_t, 2> g{device, {5, 300}};
  std::vector<uint8_t> samples(1500);
  for (size_t k = 0; k < samples.size(); k++) samples[k] = uint8_t(k * k % 251);
  g.copy_from(samples);
  qn::write_image(folder / "g.png", g);
  CHECK(bytes_of(folder / "g.png").substr(12, 12) ==
        "IHDR" + big_endian(300) + big_endian(5));  // grey, 8 bits:
  CHECK(bytes_of(folder / "g.png").substr(24, 2) == std::string("\x08\x00", 2));
  CHECK(qn::to_vector(qn::read_image(device, folder / "g.png")) == samples);

  using P = qn::Vec<uint8_t, 3>;
  qn::Field<P, 2> c{device, {2, 2}};
  c.set(1, 0, {1, 200, 3});
  qn::write_image(folder / "c.png", c);
  CHECK(bytes_of(folder / "c.png")[25] == 2);
  CHECK((qn::read_image<uint8_t, 3>(device, folder / "c.png").at(1, 0) == P{1, 200, 3}));

  using Q = qn::Vec<float, 4>;
  qn::Field<Q, 2> f{device, {1, 1}};
  f.set(0, 0, {0.0f, 0.5f, 1.5f, -3.0f});  // rounds, saturates
  qn::write_image(folder / "f.png", f);
  using R = qn::Vec<uint8_t, 4>;
  CHECK((qn::read_image<uint8_t, 4>(device, folder / "f.png").at(0, 0) == R{0, 128, 255, 0}));
  CHECK(folder.files() == 3);
}

TEST_CASE("images: a picture that cannot be written is an error") {
  Folder folder;
  qn::Device device;
  qn::Field<float, 2> x{device, {3, 4}};
  x.set(2, 1, std::numeric_limits<float>::quiet_NaN());
  FAILS(qn::write_image(folder / "n.png", x), "n.png", "4 x 3", "row 2, column 1 is NaN");
  FAILS(qn::write_image(folder / "z.png", (qn::Field<uint8_t, 2>{device, {0, 4}})), "z.png",
        "4 x 0");
  x.fill(0.5f);
  FAILS(qn::write_image("/dev/full", x), "/dev/full", "No space left");
  FAILS(qn::write_image(folder / "no/folder.png", x), "no/folder.png", "No such file");
  CHECK(folder.files() == 0);
}

TEST_CASE("images: a missing, foreign or broken file is an error that names it") {
  Folder folder;
  qn::Device device;
  FAILS(qn::read_image(device, folder / "none.png"), "none.png", "No such file");
  FAILS(qn::read_image(device, folder / "."), "directory");
  FAILS(qn::read_image(device, folder.file("e.png", "")), "e.png", "PNG or JPEG");
  FAILS(qn::read_image(device, folder.file("t.png", "a text")), "t.png", "PNG or JPEG");
  const std::string whole = png(3, 8, 0, {"abc", "def"});
  for (size_t length = 0; length + 12 < whole.size(); length++)  // the last chunk says nothing
    FAILS(qn::read_image(device, folder.file("c.png", whole.substr(0, length))), "c.png",
          "PNG or JPEG");
  std::string huge = whole;
  huge.replace(16, 4, big_endian(0x7fffffff));
  FAILS(qn::read_image(device, folder.file("h.png", huge)), "h.png", "PNG or JPEG");
}

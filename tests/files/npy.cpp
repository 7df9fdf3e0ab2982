// .npy files: what is written and read is stated byte by byte, after the documentation of
// numpy.lib.format.
#include <cstring>

#include "tests/files/support.h"

namespace {

/// A file of version `major`.0 with this header, padded as NumPy does, and these elements.
std::string npy(const std::string& dictionary, const std::string& elements, int major = 1) {
  std::string header = dictionary;
  const size_t fixed = major == 1 ? 10 : 12;
  while ((fixed + header.size() + 1) % 64) header += ' ';
  header += '\n';
  std::string file = std::string("\x93NUMPY") + char(major) + char(0);
  for (size_t k = 0; k < (major == 1 ? 2 : 4); k++) file += char(header.size() >> (8 * k) & 0xff);
  return file + header + elements;
}
std::string header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}
/// Bytes from the list, each as an int.
std::string bytes(std::initializer_list<int> list) { return std::string(list.begin(), list.end()); }

}  // namespace

TEST_CASE("npy: the bytes written are NumPy's") {
  Folder folder;
  qn::Device device;
  qn::Field<float, 2> x{device, {2, 3}};
  x.set(0, 1, 1.0f);
  x.set(1, 2, -2.5f);
  qn::write_npy(folder / "x.npy", x);
  // np.save of the same array: 128 bytes of header, then 0 1 0 0 0 -2.5 in little-endian floats.
  std::string expected =
      "\x93NUMPY" + bytes({1, 0, 118, 0}) + header("<f4", "(2, 3)") + std::string(58, ' ') + "\n";
  expected.resize(128, '?');
  expected += bytes({0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0}) +
              bytes({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0xc0});
  // 118 = 59 of the dictionary + 58 blanks + the end of line.
  CHECK(bytes_of(folder / "x.npy") == expected);
  CHECK(folder.files() == 1);  // the temporary file is gone
}

TEST_CASE("npy: every element type is written under NumPy's code and read back") {
  Folder folder;
  qn::Device device;
  auto round = [&]<class T>(const char* code, T value) {
    qn::Field<T> x{device, {3}};
    x.set(1, value);
    const std::string path = folder / "t.npy";
    qn::write_npy(path, x);
    CHECK(bytes_of(path).find(std::string("'descr': '") + code + "'") == 11);
    CHECK(bytes_of(path).size() == 128 + 3 * sizeof(T));
    qn::Field<T> y = qn::read_npy<T>(device, path);
    CHECK(y.shape(0) == 3);
    CHECK((y.at(0) == T() && y.at(1) == value && y.at(2) == T()));
  };
  round("|b1", true);
  round("|i1", int8_t(-7));
  round("<i2", int16_t(-700));
  round("<i4", int32_t(-70000));
  round("<i8", int64_t(-7) << 40);
  round("|u1", uint8_t(250));
  round("<u2", uint16_t(65000));
  round("<u4", uint32_t(4000000000));
  round("<u8", uint64_t(1) << 63);
  round("<f4", 0.1f);
  round("<f8", 0.1);
}

TEST_CASE("npy: rank 0, four axes and arrays without elements") {
  Folder folder;
  qn::Device device;
  qn::Field<double, 0> one{device};
  one.set({}, 2.0);
  qn::write_npy(folder / "one.npy", one);
  CHECK(bytes_of(folder / "one.npy").find("'shape': (), }") != std::string::npos);
  CHECK(qn::read_npy<double, 0>(device, folder / "one.npy").at({}) == 2.0);

  qn::Field<int, 4> four{device, {2, 1, 3, 2}};
  four.set({1, 0, 2, 1}, 9);
  qn::write_npy(folder / "four.npy", four);
  CHECK(qn::to_vector(qn::read_npy<int, 4>(device, folder / "four.npy")) == qn::to_vector(four));

  for (auto [n, m] : {std::pair{0, 5}, {3, 0}, {0, 0}}) {
    qn::write_npy(folder / "none.npy", qn::Field<int, 2>{device, {n, m}});
    qn::Field<int, 2> none = qn::read_npy<int, 2>(device, folder / "none.npy");
    CHECK(none.shape(0) == n);
    CHECK(none.shape(1) == m);
  }
}

TEST_CASE("npy: vectors take one more axis, matrices two") {
  Folder folder;
  qn::Device device;
  using V = qn::Vec<float, 3>;
  qn::Field<V> v{device, {2}};
  v.set(0, {1, 2, 3});
  v.set(1, {4, 5, 6});
  qn::write_npy(folder / "v.npy", v);
  CHECK(bytes_of(folder / "v.npy").find("'shape': (2, 3), }") != std::string::npos);
  qn::Field<float, 2> plain = qn::read_npy<float, 2>(device, folder / "v.npy");
  CHECK(qn::to_vector(plain) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(qn::read_npy<V>(device, folder / "v.npy").at(1) == V{4, 5, 6});
  using V2 = qn::Vec<float, 2>;
  FAILS((qn::read_npy<V2>(device, folder / "v.npy")), "v.npy", "shape (2, 3)", "elements, (2,)");
  FAILS((qn::read_npy<V, 2>(device, folder / "v.npy")), "shape (2, 3)",
        "2 axes of elements of shape (3,)");
  using M = qn::Mat<double, 2, 3>;
  qn::Field<M, 0> m{device};
  m.set({}, M(1, 2, 3, 4, 5, 6));
  qn::write_npy(folder / "m.npy", m);
  CHECK(qn::to_vector(qn::read_npy<double, 2>(device, folder / "m.npy")) ==
        std::vector<double>{1, 2, 3, 4, 5, 6});  // row by row
  CHECK((qn::read_npy<M, 0>(device, folder / "m.npy").at({}) == M(1, 2, 3, 4, 5, 6)));
  using Transposed = qn::Mat<double, 3, 2>;
  FAILS((qn::read_npy<Transposed, 0>(device, folder / "m.npy")), "shape (2, 3)", "(3, 2)");
}

TEST_CASE("npy: both byte orders, Fortran order and all versions are read") {
  Folder folder;
  qn::Device device;
  const std::string big = bytes({0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe});
  CHECK(qn::to_vector(
            qn::read_npy<int>(device, folder.file("big.npy", npy(header(">i4", "(2,)"), big)))) ==
        std::vector<int>{258, -2});
  // [[1, 2, 3], [4, 5, 6]] column by column.
  const std::string columns = bytes({1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6, 0});
  CHECK(qn::to_vector(qn::read_npy<int16_t, 2>(
            device, folder.file("f.npy", npy(header("<i2", "(2, 3)", true), columns)))) ==
        std::vector<int16_t>{1, 2, 3, 4, 5, 6});
  // a[i, j, k] = 4 i + 2 j + k, first axis fastest.
  CHECK(qn::to_vector(qn::read_npy<uint8_t, 3>(
            device, folder.file("g.npy", npy(header("|u1", "(2, 2, 2)", true),
                                             bytes({0, 4, 2, 6, 1, 5, 3, 7}))))) ==
        std::vector<uint8_t>{0, 1, 2, 3, 4, 5, 6, 7});
  // Keys in any order, double quotes, Python 2's long integers, no trailing comma, native order.
  const std::string unusual = "{\"shape\":(2L,),'fortran_order': False , 'descr':'=u2'}";
  for (int major : {1, 2, 3})
    CHECK(qn::to_vector(qn::read_npy<uint16_t>(
              device, folder.file("u.npy", npy(unusual, bytes({1, 0, 0, 1}), major)))) ==
          std::vector<uint16_t>{1, 256});
  // A header whose length has its low byte above 127.
  const std::string wide = header("|u1", "(1,)") + std::string(140, ' ');
  CHECK(qn::read_npy<uint8_t>(device, folder.file("w.npy", npy(wide, "A"))).at(0) == 65);
}

TEST_CASE("npy: a type or shape that does not fit is an error that names both") {
  Folder folder;
  qn::Device device;
  auto file = [&](const std::string& descr, const std::string& shape, const std::string& elements) {
    return folder.file("a.npy", npy(header(descr, shape), elements));
  };
  const std::string eight(8, '\0');
  FAILS(qn::read_npy<float>(device, file("<f8", "(1,)", eight)), "a.npy", "float64 ('<f8')",
        "float32");
  FAILS(qn::read_npy<float>(device, file("<i4", "(2,)", eight)), "int32 ('<i4')", "float32");
  FAILS(qn::read_npy<float>(device, file("<c8", "(1,)", eight)), "'<c8'", "float32");
  FAILS(qn::read_npy<float>(device, file("<U2", "(1,)", eight)), "'<U2'", "float32");
  FAILS(qn::read_npy<float>(device, file("f4", "(2,)", eight)), "'f4'", "float32");
  FAILS(qn::read_npy<float>(device, file("|f4", "(2,)", eight)), "no byte order");
  FAILS((qn::read_npy<float, 2>(device, file("<f4", "(2,)", eight))), "a.npy", "shape (2,)",
        "2 axes");
  FAILS((qn::read_npy<float, 1>(device, file("<f4", "(2, 1)", eight))), "shape (2, 1)", "1 axis");
  FAILS(qn::read_npy<float>(device, folder.file("s.npy", npy("{'descr': [('x', '<f4')], "
                                                             "'fortran_order': False, 'shape': "
                                                             "(1,), }",
                                                             eight))),
        "s.npy", "structured");
  FAILS(qn::read_npy<bool>(device, file("|b1", "(2,)", "\1\2")), "neither 0 nor 1");
}

TEST_CASE("npy: a missing, foreign, cut or malformed file is an error that names it") {
  Folder folder;
  qn::Device device;
  FAILS(qn::read_npy<float>(device, folder / "none.npy"), "none.npy", "No such file");
  FAILS(qn::read_npy<float>(device, folder / "."), "directory");
  FAILS(qn::read_npy<float>(device, folder.file("e.npy", "")), "e.npy", "not an .npy file");
  FAILS(qn::read_npy<float>(device, folder.file("t.npy", "1.0 2.0\n")), "not an .npy file");

  const std::string whole = npy(header("<f4", "(2,)"), std::string(8, '\0'));
  for (size_t length = 6; length < 128; length++)
    FAILS(qn::read_npy<float>(device, folder.file("h.npy", whole.substr(0, length))), "h.npy",
          "cut off in its header");
  for (size_t length = 128; length < 136; length++)
    FAILS(qn::read_npy<float>(device, folder.file("c.npy", whole.substr(0, length))), "c.npy",
          "(2,) of float32 takes more than the " + std::to_string(length - 128) + " bytes");
  FAILS(qn::read_npy<float>(device, folder.file("l.npy", whole + "x")), "takes fewer than the 9");
  FAILS(qn::read_npy<float>(device, folder.file("v.npy", npy(header("<f4", "(0,)"), "", 4))),
        "version 4.0");
  // Sizes that overflow 64 bits must not pass for small ones.
  for (const char* shape : {"(4611686018427387904, 4)", "(4294967296, 4294967296)",
                            "(9223372036854775807, 9223372036854775807)"})
    FAILS((qn::read_npy<float, 2>(device, folder.file("o.npy", npy(header("<f4", shape), "")))),
          "takes more than the 0 bytes");
  for (const char* text :
       {"", "{", "}", "{}", "{'descr'}", "{'descr': '<f4'}", "nonsense",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0)", "{'descr: '<f4'}",
        "{'descr': '<f4', 'fortran_order': 1, 'shape': (0,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0,), 'more': 'x'}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (0,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0,)} x"})
    FAILS(qn::read_npy<float>(device, folder.file("m.npy", npy(text, ""))), "m.npy", "its header");
}

TEST_CASE("a full disk is an error, and a failed write leaves the file as it was") {
  Folder folder;
  qn::Device device;
  qn::Field<float> x{device, {100000}}, y{device, {2}};
  FAILS(qn::write_npy("/dev/full", x), "/dev/full", "No space left");
  FAILS(qn::write_npy("/dev/full", y), "/dev/full", "No space left");  // found when it is closed
  CHECK(std::filesystem::is_character_file("/dev/full"));
  FAILS(qn::write_npy(folder / "no/such/folder.npy", y), "no/such/folder.npy", "No such file");

  const std::string kept = folder.file("kept.npy", "old");
  std::filesystem::create_symlink(kept, folder / "link.npy");
  FAILS(qn::write_npy(folder / "kept.npy/inside.npy", y), "Not a directory");
  CHECK(bytes_of(kept) == "old");
  qn::write_npy(folder / "link.npy", y);  // replaces what the link points to
  CHECK(std::filesystem::is_symlink(folder / "link.npy"));
  CHECK(qn::read_npy<float>(device, kept).shape(0) == 2);
  CHECK(folder.files() == 2);
}

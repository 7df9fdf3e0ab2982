#pragma once
// A relocatable object file, laid out for some address: what a linker does, as far as machine code in
// one piece needs it.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quern::cpu {

/// An ELF file of this machine's byte order, of x86-64 or AArch64. Throws InternalError for bytes
/// that are none, and for sections, symbols or relocations that cannot be served.
class Object {
 public:
  /// The bytes outlive this.
  explicit Object(std::span<const std::byte> file);

  /// Parts of memory that differ in what may be done with them: code and what it calls others by;
  /// constants, among them the addresses of others; what may be written.
  enum Part { code, constants, data, parts };
  /// Bytes of a part, a multiple of `page`.
  size_t bytes(Part part, size_t page) const;

  /// The address of a symbol that the object does not define; none: it is an error unless weak.
  using Resolve = std::function<std::optional<uint64_t>(const std::string& name)>;
  /// Writes all parts, one behind the other, to `memory` (zeroed), for running at `address`.
  void place(std::span<std::byte> memory, uint64_t address, size_t page,
             const Resolve& resolve) const;
  /// Where what the object defines by this name lies, in bytes from the first part's start.
  std::optional<size_t> symbol(std::string_view name, size_t page) const;

 private:
  struct Section {
    std::span<const std::byte> content;  ///< empty where it is all zeros
    uint64_t bytes = 0, align = 1;
    uint32_t type = 0, link = 0, info = 0;
    bool loaded = false;
    Part part = code;
    size_t offset = 0;  ///< in its part
  };
  struct Symbol {
    std::string name;
    uint64_t value = 0;
    uint32_t section = 0;  ///< 0: defined elsewhere
    bool absolute = false, weak = false;
  };
  struct Relocation {
    uint64_t offset = 0;
    uint32_t type = 0, symbol = 0;
    int64_t addend = 0;
  };

  void read_sections(std::span<const std::byte> file);
  void read_symbols();
  void read_relocations();
  void give_slots();
  size_t start(Part part, size_t page) const;
  size_t section_at(const Section& s, size_t page) const { return start(s.part, page) + s.offset; }

  bool arm_ = false;  ///< AArch64
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::vector<std::pair<uint32_t, Relocation>> relocations_;  ///< of a section
  /// Of a symbol: number of its address among the constants, and of the code that jumps there.
  std::vector<uint32_t> slot_, jump_;
  uint32_t slots_ = 0, jumps_ = 0;
  size_t size_[parts] = {};  ///< of the sections alone
};

}  // namespace quern::cpu

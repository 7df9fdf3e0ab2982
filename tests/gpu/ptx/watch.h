#pragma once
// Finds accesses of a launch that nothing orders: two threads at the same bytes, one of them writing,
// not both by atomic (or volatile) accesses, without a barrier of their block between; and bytes read
// by ld.global.nc that the launch writes. Allowed are a plain read beside an atomic update, with which LLVM
// begins its loops of compare-and-swap (its value is only a guess), and accesses of different widths,
// as where such a loop works on the word around a narrow element.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace quern::ptx {

/// Of one memory, for one launch. Byte by byte it remembers the last write and the last reads, as
/// FastTrack does (Flanagan and Freund, PLDI 2009), with barriers in place of locks.
class Watch {
 public:
  enum Kind : uint8_t { reads, reads_constant, writes, updates };
  /// Who accesses: `barrier` counts the barriers that the block has passed.
  struct Visitor {
    uint64_t block = 0;
    uint32_t thread = 0, barrier = 0;
    unsigned line = 0;
    bool strong = false;   ///< atomic or volatile
    bool updates = false;  ///< atomic
    unsigned bytes = 0;    ///< of an element
  };
  /// What is wrong with it, "" if nothing.
  std::string access(uint64_t address, unsigned bytes, Kind kind, Visitor by);

 private:
  struct Cell {
    Visitor writer, reader;
    bool written = false, read = false;
    bool strongly_read = false;  ///< by strong accesses only
    bool by_many = false;        ///< read by several threads of a block
    bool by_blocks = false;      ///< read by several blocks
    bool constant = false;       ///< read by ld.global.nc
    unsigned constant_line = 0;
  };
  static constexpr uint64_t page = 64;
  using Page = std::array<Cell, page>;
  Page& page_of(uint64_t address);
  static std::string read(Cell& c, const Visitor& by);
  static std::string write(Cell& c, const Visitor& by);

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  /// Pages looked up last, by the end of their numbers: neighbours come to the same ones.
  struct Recent {
    uint64_t number = 0;
    Page* cells = nullptr;
  };
  std::array<Recent, 64> recent_;
};

}  // namespace quern::ptx

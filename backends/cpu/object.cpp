#include "backends/cpu/object.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "quern/error.h"

namespace quern::cpu {

namespace {

constexpr size_t slot_bytes = 8;
/// All of an object lies within the reach of 32-bit distances.
constexpr uint64_t largest = uint64_t(1) << 30;

[[noreturn]] void refuse(const std::string& why) {
  throw InternalError("loading a kernel: " + why);
}
void expect(bool good, const char* what) {
  if (!good) refuse(std::string("a damaged object file (") + what + ")");
}

size_t aligned(size_t n, size_t to) { return (n + to - 1) / to * to; }

std::span<const std::byte> part_of(std::span<const std::byte> all, uint64_t from, uint64_t bytes) {
  expect(from <= all.size() && bytes <= all.size() - from, "it ends early");
  return all.subspan(from, bytes);
}

/// Element `k` of a table.
template <class T>
T entry(std::span<const std::byte> table, size_t k) {
  T v;
  std::memcpy(&v, part_of(table, k * sizeof(T), sizeof(T)).data(), sizeof v);
  return v;
}

std::string text_at(std::span<const std::byte> strings, uint64_t at) {
  expect(at < strings.size(), "a name");
  const auto* first = reinterpret_cast<const char*>(strings.data()) + at;
  const void* end = std::memchr(first, 0, strings.size() - at);
  expect(end != nullptr, "a name");
  return first;
}

template <class T>
void put(std::span<std::byte> at, T v) {
  std::memcpy(at.data(), &v, sizeof v);
}
template <class T>
T get(std::span<const std::byte> at) {
  T v;
  std::memcpy(&v, at.data(), sizeof v);
  return v;
}

void put_distance(std::span<std::byte> at, int64_t distance) {
  if (distance != int32_t(distance)) refuse("a distance of " + std::to_string(distance));
  put(at, int32_t(distance));
}

// ---- AArch64's instructions

uint64_t page_of(uint64_t address) { return address & ~uint64_t(0xfff); }

/// Bits [low, low + count) of the instruction become `v`.
void put_field(std::span<std::byte> at, unsigned low, unsigned count, uint64_t v) {
  const uint32_t mask = ((uint32_t(1) << count) - 1) << low;
  put(at, (get<uint32_t>(at) & ~mask) | (uint32_t(v << low) & mask));
}

void put_page(std::span<std::byte> at, uint64_t target, uint64_t place) {
  const int64_t pages = int64_t(page_of(target) - page_of(place)) >> 12;
  if (pages >= 1 << 20 || pages < -(1 << 20)) refuse("a distance of many pages");
  put_field(at, 29, 2, uint64_t(pages) & 3);
  put_field(at, 5, 19, uint64_t(pages) >> 2);
}

void put_branch(std::span<std::byte> at, uint64_t target, uint64_t place) {
  const int64_t distance = int64_t(target - place);
  if (distance & 3 || distance >= 1 << 27 || distance < -(1 << 27)) refuse("a far branch");
  put_field(at, 0, 26, uint64_t(distance) >> 2);
}

/// The offset within a page, in units of 2^shift bytes.
void put_low(std::span<std::byte> at, uint64_t target, unsigned shift) {
  expect((target & ((uint64_t(1) << shift) - 1)) == 0, "an address that is not aligned");
  put_field(at, 10, 12, (target & 0xfff) >> shift);
}

/// How much an AArch64 access of a page's part is scaled; -1: another relocation.
int scale_of(uint32_t type) {
  switch (type) {
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return 0;
    case R_AARCH64_LDST16_ABS_LO12_NC: return 1;
    case R_AARCH64_LDST32_ABS_LO12_NC: return 2;
    case R_AARCH64_LDST64_ABS_LO12_NC: return 3;
    case R_AARCH64_LDST128_ABS_LO12_NC: return 4;
    default: return -1;
  }
}

// ---- what relocations want

bool wants_slot(bool arm, uint32_t type) {
  if (arm) return type == R_AARCH64_ADR_GOT_PAGE || type == R_AARCH64_LD64_GOT_LO12_NC;
  return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
}
bool is_call(bool arm, uint32_t type) {
  return arm ? type == R_AARCH64_CALL26 || type == R_AARCH64_JUMP26 : type == R_X86_64_PLT32;
}
size_t width_of(bool arm, uint32_t type) {
  const bool wide = arm ? type == R_AARCH64_ABS64 || type == R_AARCH64_PREL64
                        : type == R_X86_64_64 || type == R_X86_64_PC64;
  return wide ? 8 : 4;
}
size_t jump_bytes(bool arm) { return arm ? 16 : 8; }

/// Jumps to the address that lies in `slot`.
void write_jump(bool arm, std::span<std::byte> at, uint64_t place, uint64_t slot) {
  if (!arm) {
    put(at, uint16_t(0x25ff));  // jmp *distance(%rip)
    put_distance(at.subspan(2), int64_t(slot - (place + 6)));
    put(at.subspan(6), uint16_t(0xcccc));
    return;
  }
  put(at, uint32_t(0x90000010));  // adrp x16, slot
  put_page(at, slot, place);
  put(at.subspan(4), uint32_t(0xf9400211));  // ldr x17, [x16, slot]
  put_low(at.subspan(4), slot, 3);
  put(at.subspan(8), uint32_t(0xd61f0220));   // br x17
  put(at.subspan(12), uint32_t(0xd503201f));  // nop
}

struct Target {
  uint64_t symbol;  ///< the symbol's address and the addend
  uint64_t slot;    ///< of the constant that holds its address, and the addend
  uint64_t place;   ///< of what is changed
};

void relocate_x86(std::span<std::byte> at, uint32_t type, const Target& t) {
  switch (type) {
    case R_X86_64_64: return put(at, t.symbol);
    case R_X86_64_PC64: return put(at, t.symbol - t.place);
    case R_X86_64_PC32:
    case R_X86_64_PLT32: return put_distance(at, int64_t(t.symbol - t.place));
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: return put_distance(at, int64_t(t.slot - t.place));
    default: refuse("a relocation of type " + std::to_string(type) + " of x86-64");
  }
}

void relocate_arm(std::span<std::byte> at, uint32_t type, const Target& t) {
  if (int scale = scale_of(type); scale >= 0) return put_low(at, t.symbol, unsigned(scale));
  switch (type) {
    case R_AARCH64_ABS64: return put(at, t.symbol);
    case R_AARCH64_PREL64: return put(at, t.symbol - t.place);
    case R_AARCH64_PREL32: return put_distance(at, int64_t(t.symbol - t.place));
    case R_AARCH64_ADR_PREL_PG_HI21: return put_page(at, t.symbol, t.place);
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26: return put_branch(at, t.symbol, t.place);
    case R_AARCH64_ADR_GOT_PAGE: return put_page(at, t.slot, t.place);
    case R_AARCH64_LD64_GOT_LO12_NC: return put_low(at, t.slot, 3);
    default: refuse("a relocation of type " + std::to_string(type) + " of AArch64");
  }
}

}  // namespace

Object::Object(std::span<const std::byte> file) {
  read_sections(file);
  read_symbols();
  read_relocations();
  give_slots();
}

void Object::read_sections(std::span<const std::byte> file) {
  const auto head = entry<Elf64_Ehdr>(file, 0);
  expect(std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0, "no ELF file");
  expect(head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_ident[EI_DATA] == ELFDATA2LSB &&
             head.e_type == ET_REL && head.e_shentsize == sizeof(Elf64_Shdr),
         "another kind of ELF file");
  arm_ = head.e_machine == EM_AARCH64;
  if (!arm_ && head.e_machine != EM_X86_64)
    refuse("machine code of ELF machine " + std::to_string(head.e_machine));
  const auto table = part_of(file, head.e_shoff, uint64_t(head.e_shnum) * sizeof(Elf64_Shdr));
  expect(head.e_shstrndx < head.e_shnum, "its sections' names");
  const auto names_at = entry<Elf64_Shdr>(table, head.e_shstrndx);
  const auto names = part_of(file, names_at.sh_offset, names_at.sh_size);
  for (size_t k = 0; k < head.e_shnum; k++) {
    const auto h = entry<Elf64_Shdr>(table, k);
    Section s;
    s.type = h.sh_type;
    s.link = h.sh_link;
    s.info = h.sh_info;
    s.bytes = h.sh_size;
    s.align = std::max<uint64_t>(h.sh_addralign, 1);
    expect(s.bytes < largest && std::has_single_bit(s.align) && s.align <= 4096, "a section");
    if (s.type != SHT_NOBITS && s.type != SHT_NULL)
      s.content = part_of(file, h.sh_offset, h.sh_size);
    // Nothing unwinds through a kernel, and nothing is to run before it.
    s.loaded = (h.sh_flags & SHF_ALLOC) && (s.type == SHT_PROGBITS || s.type == SHT_NOBITS) &&
               text_at(names, h.sh_name) != ".eh_frame";
    if (s.loaded) {
      expect(!(h.sh_flags & SHF_TLS), "a section of each thread");
      s.part = h.sh_flags & SHF_EXECINSTR ? code : h.sh_flags & SHF_WRITE ? data : constants;
      s.offset = aligned(size_[s.part], s.align);
      size_[s.part] = s.offset + s.bytes;
      expect(size_[s.part] < largest, "large sections");
    }
    sections_.push_back(s);
  }
}

void Object::read_symbols() {
  for (const Section& table : sections_) {
    if (table.type != SHT_SYMTAB) continue;
    expect(symbols_.empty() && table.link < sections_.size(), "its symbols");
    const std::span<const std::byte> names = sections_[table.link].content;
    for (size_t k = 0; k < table.content.size() / sizeof(Elf64_Sym); k++) {
      const auto s = entry<Elf64_Sym>(table.content, k);
      Symbol symbol;
      symbol.name = s.st_name ? text_at(names, s.st_name) : "";
      symbol.value = s.st_value;
      symbol.weak = ELF64_ST_BIND(s.st_info) == STB_WEAK;
      symbol.absolute = s.st_shndx == SHN_ABS;
      if (!symbol.absolute) symbol.section = s.st_shndx;
      expect(symbol.section < sections_.size() && ELF64_ST_TYPE(s.st_info) != STT_TLS, "a symbol");
      symbols_.push_back(std::move(symbol));
    }
  }
}

void Object::read_relocations() {
  for (const Section& table : sections_) {
    if (table.type == SHT_REL) refuse("relocations without addends");
    if (table.type != SHT_RELA) continue;
    expect(table.info < sections_.size(), "relocations of no section");
    const Section& of = sections_[table.info];
    if (!of.loaded) continue;
    for (size_t k = 0; k < table.content.size() / sizeof(Elf64_Rela); k++) {
      const auto r = entry<Elf64_Rela>(table.content, k);
      Relocation one{r.r_offset, uint32_t(ELF64_R_TYPE(r.r_info)), uint32_t(ELF64_R_SYM(r.r_info)),
                     r.r_addend};
      if (one.type == 0) continue;  // R_X86_64_NONE, R_AARCH64_NONE
      expect(one.symbol < symbols_.size() && !of.content.empty() && one.offset <= of.bytes &&
                 of.bytes - one.offset >= width_of(arm_, one.type),
             "a relocation");
      const Symbol& to = symbols_[one.symbol];
      expect(to.section == 0 || sections_[to.section].loaded, "a reference to what is not loaded");
      relocations_.push_back({table.info, one});
    }
  }
}

/// Places for the addresses of symbols, and for the jumps to functions that others have.
void Object::give_slots() {
  slot_.assign(symbols_.size(), ~0u);
  jump_.assign(symbols_.size(), ~0u);
  for (const auto& [section, r] : relocations_) {
    const bool jumps = is_call(arm_, r.type) && symbols_[r.symbol].section == 0;
    if (jumps && jump_[r.symbol] == ~0u) jump_[r.symbol] = jumps_++;
    if ((jumps || wants_slot(arm_, r.type)) && slot_[r.symbol] == ~0u) slot_[r.symbol] = slots_++;
  }
}

size_t Object::bytes(Part part, size_t page) const {
  size_t all = aligned(size_[part], 16);
  if (part == code) all += jumps_ * jump_bytes(arm_);
  if (part == constants) all += slots_ * slot_bytes;
  return aligned(all, page);
}

size_t Object::start(Part part, size_t page) const {
  size_t at = 0;
  for (int p = 0; p < part; p++) at += bytes(Part(p), page);
  return at;
}

std::optional<size_t> Object::symbol(std::string_view name, size_t page) const {
  for (const Symbol& s : symbols_) {
    if (s.name != name || s.section == 0) continue;
    const Section& in = sections_[s.section];
    if (in.loaded && s.value < in.bytes) return section_at(in, page) + s.value;
  }
  return std::nullopt;
}

void Object::place(std::span<std::byte> memory, uint64_t address, size_t page,
                   const Resolve& resolve) const {
  expect(memory.size() >= start(parts, page), "no room");
  for (const Section& s : sections_)
    if (s.loaded) std::ranges::copy(s.content, memory.begin() + ptrdiff_t(section_at(s, page)));

  std::vector<std::optional<uint64_t>> known(symbols_.size());
  auto address_of = [&](uint32_t k) {
    if (known[k]) return *known[k];
    const Symbol& s = symbols_[k];
    uint64_t at = s.value;
    if (s.section) {
      at += address + section_at(sections_[s.section], page);
    } else if (!s.absolute) {
      const std::optional<uint64_t> found = resolve(s.name);
      if (!found && !s.weak) refuse("the process has no '" + s.name + "'");
      at = found.value_or(0);
    }
    known[k] = at;
    return at;
  };
  auto slot_at = [&](uint32_t k) {
    return start(constants, page) + aligned(size_[constants], 16) + slot_[k] * slot_bytes;
  };
  auto jump_at = [&](uint32_t k) {
    return start(code, page) + aligned(size_[code], 16) + jump_[k] * jump_bytes(arm_);
  };
  for (uint32_t k = 0; k < symbols_.size(); k++) {
    if (slot_[k] != ~0u) put(memory.subspan(slot_at(k)), address_of(k));
    if (jump_[k] != ~0u)
      write_jump(arm_, memory.subspan(jump_at(k)), address + jump_at(k), address + slot_at(k));
  }
  for (const auto& [section, r] : relocations_) {
    const size_t at = section_at(sections_[section], page) + r.offset;
    const bool jumps = is_call(arm_, r.type) && jump_[r.symbol] != ~0u;
    const Target target{
        (jumps ? address + jump_at(r.symbol) : address_of(r.symbol)) + uint64_t(r.addend),
        slot_[r.symbol] == ~0u ? 0 : address + slot_at(r.symbol) + uint64_t(r.addend),
        address + at};
    (arm_ ? relocate_arm : relocate_x86)(memory.subspan(at), r.type, target);
  }
}

}  // namespace quern::cpu

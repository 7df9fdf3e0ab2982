// Object files placed and relocated, against LLVM's own linker for code in memory.
#include "backends/cpu/object.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <random>

#include "quern/error.h"
#include "tests/catch.h"
#include "tests/message_of.h"

using namespace quern;
using cpu::Object;

namespace {

constexpr size_t page = 4096;
/// Above 4 GB, as everything in a process is.
constexpr uint64_t base = 0x7f1234560000, helper = 0x7f9876543210, theirs = 0x55aa11223344;

/// Constants of several widths, a table of addresses, variables, calls to functions of the object
/// and of others, and the address of another's variable.
const char* const source = R"(
@small = dso_local constant [4 x i32] [i32 11, i32 22, i32 33, i32 44], align 16
@bytes = dso_local constant [3 x i8] c"abc"
@halves = dso_local constant [3 x i16] [i16 5, i16 6, i16 7]
@wide = dso_local constant <2 x i64> <i64 3, i64 9>, align 16
@table = dso_local constant [2 x ptr] [ptr @inner, ptr getelementptr (i8, ptr @small, i64 8)]
@count = dso_local global i64 5
@zeros = dso_local global [100 x i32] zeroinitializer
@theirs = external global i32
declare i64 @helper(i64)
define dso_local i32 @inner(i32 %k) noinline {
  %p = getelementptr [4 x i32], ptr @small, i32 0, i32 %k
  %v = load volatile i32, ptr %p
  ret i32 %v
}
define void @task_0(ptr %args, i64 %chunk, i64 %begin, i64 %end) {
  %w = load volatile <2 x i64>, ptr @wide
  %x = extractelement <2 x i64> %w, i32 1
  %b = load volatile i8, ptr @bytes
  %h = load volatile i16, ptr @halves
  %q = load volatile i32, ptr @small
  %y = call i64 @helper(i64 %x)
  store i64 %y, ptr %args
  %c = load volatile i64, ptr @count
  %d = add i64 %c, %chunk
  store volatile i64 %d, ptr @count
  %t = load volatile ptr, ptr @table
  %i = trunc i64 %begin to i32
  %v = call i32 %t(i32 %i)
  %u = call i32 @inner(i32 %v)
  %o = load volatile i32, ptr @theirs
  %s = add i32 %u, %o
  %z = getelementptr [100 x i32], ptr @zeros, i64 0, i64 %end
  store volatile i32 %s, ptr %z
  %last = call i64 @helper(i64 %end)
  ret void
}
)";

const char* const symbols[] = {"small", "bytes", "halves", "wide",  "table",
                               "count", "zeros", "inner",  "task_0"};

std::string compiled(const std::string& triple) {
  static const bool ready = [] {
    LLVMInitializeX86TargetInfo(), LLVMInitializeX86Target(), LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo(), LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC(), LLVMInitializeAArch64AsmPrinter();
    return true;
  }();
  (void)ready;
  llvm::LLVMContext context;
  llvm::SMDiagnostic wrong;
  auto module = llvm::parseAssemblyString(source, wrong, context);
  INFO(wrong.getMessage().str() << " in line " << wrong.getLineNo());
  REQUIRE(module);
  std::string why;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, why);
  REQUIRE(target);
#if LLVM_VERSION_MAJOR >= 21
  const llvm::Triple of(triple);
#else
  const std::string& of = triple;
#endif
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(of, "", "", {}, llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                  llvm::CodeGenOptLevel::Default, true));
  module->setTargetTriple(of);
  module->setDataLayout(machine->createDataLayout());
  llvm::SmallString<0> out;
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  REQUIRE(
      !machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile));
  passes.run(*module);
  return out.str().str();
}

std::optional<uint64_t> elsewhere(const std::string& name) {
  if (name == "helper") return helper;
  if (name == "theirs") return theirs;
  return std::nullopt;
}

struct Placed {
  std::vector<std::byte> memory;
  std::map<std::string, size_t> at;  ///< of the symbols
};
Placed placed(const std::string& file) {
  const Object object(std::as_bytes(std::span(file)));
  Placed out;
  size_t bytes = 0;
  for (int p = 0; p < Object::parts; p++) bytes += object.bytes(Object::Part(p), page);
  out.memory.resize(bytes);
  object.place(out.memory, base, page, elsewhere);
  for (const char* name : symbols) out.at[name] = object.symbol(name, page).value();
  return out;
}

/// The sections as LLVM's linker has them, told to lie where ours do.
class Reference : llvm::RuntimeDyld::MemoryManager, llvm::LegacyJITSymbolResolver {
 public:
  struct Section {
    std::string name;
    std::vector<uint8_t> room;
    uint8_t* start = nullptr;
    size_t bytes = 0;
    int64_t offset = -1;  ///< of ours
  };
  std::deque<Section> sections;

  Reference(const llvm::object::ObjectFile& file, const Placed& ours) : dyld_(*this, *this) {
    dyld_.loadObject(file);
    uint64_t far = base + 0x100000;
    for (Section& s : sections) {
      for (const auto& [name, at] : ours.at) {
        auto* there = static_cast<uint8_t*>(dyld_.getSymbolLocalAddress(name));
        if (there >= s.start && there < s.start + s.bytes)
          s.offset = int64_t(at) - (there - s.start);
      }
      dyld_.mapSectionAddress(s.start, s.offset >= 0 ? base + uint64_t(s.offset) : (far += page));
    }
    dyld_.resolveRelocations();
  }

 private:
  uint8_t* allocate(size_t bytes, unsigned align, llvm::StringRef name) {
    Section& s = sections.emplace_back();
    s.name = name.str();
    s.bytes = bytes;
    s.room.resize(bytes + align);
    s.start = s.room.data();
    while (reinterpret_cast<uintptr_t>(s.start) % std::max(align, 1u)) s.start++;
    return s.start;
  }
  uint8_t* allocateCodeSection(uintptr_t bytes, unsigned align, unsigned,
                               llvm::StringRef name) override {
    return allocate(bytes, align, name);
  }
  uint8_t* allocateDataSection(uintptr_t bytes, unsigned align, unsigned, llvm::StringRef name,
                               bool) override {
    return allocate(bytes, align, name);
  }
  bool finalizeMemory(std::string*) override { return false; }
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}
  void deregisterEHFrames() override {}
  llvm::JITSymbol findSymbol(const std::string& name) override {
    const std::optional<uint64_t> at = elsewhere(name);
    return at ? llvm::JITSymbol(*at, llvm::JITSymbolFlags::Exported) : nullptr;
  }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }

  llvm::RuntimeDyld dyld_;
};

template <class T>
T read(const std::vector<std::byte>& memory, uint64_t at) {
  T v;
  REQUIRE(at + sizeof v <= memory.size());
  std::memcpy(&v, memory.data() + at, sizeof v);
  return v;
}

/// Where an ADRP and the load behind it lead to (Arm's manual of the architecture, C6.2).
uint64_t page_and_offset(uint32_t adrp, uint32_t load, uint64_t place) {
  CHECK((adrp & 0x9f000000) == 0x90000000);
  CHECK((load & 0xffc00000) == 0xf9400000);  // a 64-bit load
  const uint64_t low = adrp >> 29 & 3, high = adrp >> 5 & 0x7ffff;
  const int64_t pages = int64_t((high << 2 | low) << 43) >> 43;
  return (place & ~uint64_t(4095)) + uint64_t(pages) * 4096 + (load >> 10 & 0xfff) * 8;
}

/// The address that a call of another's function, or a load of another's address, at `at` ends at.
/// The load that belongs to an ADRP lies `further` bytes behind it.
uint64_t reached(const Placed& ours, size_t at, bool arm, bool calls, size_t further = 4) {
  const std::vector<std::byte>& m = ours.memory;
  if (!arm) {
    uint64_t to = at + 4 + uint64_t(int64_t(read<int32_t>(m, at)));
    if (calls) {
      CHECK(read<uint16_t>(m, to) == 0x25ff);  // jmp *distance(%rip)
      to += 6 + uint64_t(int64_t(read<int32_t>(m, to + 2)));
    }
    return read<uint64_t>(m, to);
  }
  if (calls) {
    const int64_t words = int64_t(uint64_t(read<uint32_t>(m, at)) << 38) >> 38;
    at += uint64_t(words * 4);
    CHECK(read<uint32_t>(m, at + 8) == 0xd61f0220);  // br x17
    CHECK((read<uint32_t>(m, at + 4) & 0x1f) == 17);
  }
  return read<uint64_t>(
      m, page_and_offset(read<uint32_t>(m, at), read<uint32_t>(m, at + further), base + at) - base);
}

}  // namespace

TEST_CASE("objects are relocated as LLVM does it, on both architectures") {
  for (const char* triple : {"x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"}) {
    INFO(triple);
    const bool arm = triple[0] == 'a';
    const std::string file = compiled(triple);
    const Placed ours = placed(file);
    auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(file, "object"));
    REQUIRE(bool(object));
    Reference reference(**object, ours);
    // What concerns others is reached in ways of one's own: it is looked at apart.
    std::map<std::string, std::vector<size_t>> own;
    int calls = 0, loads = 0;
    size_t page_at = 0;
    for (const llvm::object::SectionRef& table : (*object)->sections()) {
      auto of = llvm::cantFail(table.getRelocatedSection());
      if (of == (*object)->section_end()) continue;
      const std::string section = llvm::cantFail(of->getName()).str();
      for (const llvm::object::RelocationRef& r : table.relocations()) {
        const std::string name = llvm::cantFail(r.getSymbol()->getName()).str();
        if (name != "helper" && name != "theirs") continue;
        REQUIRE(section == ".text");
        own[section].push_back(r.getOffset());
        auto here = std::ranges::find(reference.sections, section, &Reference::Section::name);
        const size_t at = size_t(here->offset) + r.getOffset();
        llvm::SmallString<32> type;
        r.getTypeName(type);
        if (name == "helper") {
          calls++;
          CHECK(reached(ours, at, arm, true) == helper);
        } else if (type.str() == "R_AARCH64_ADR_GOT_PAGE") {
          page_at = at;
        } else {
          loads++;
          CHECK(reached(ours, arm ? page_at : at, arm, false, at - page_at) == theirs);
        }
      }
    }
    CHECK(calls == 2);
    CHECK(loads == 1);
    size_t compared = 0;
    for (const Reference::Section& s : reference.sections) {
      if (s.offset < 0) continue;
      size_t bytes = 0;
      for (const llvm::object::SectionRef& section : (*object)->sections())
        if (llvm::cantFail(section.getName()) == s.name) bytes = section.getSize();
      INFO(s.name);
      int different = 0;
      for (size_t k = 0; k < bytes; k++) {
        const bool apart = std::ranges::any_of(
            own[s.name], [&](size_t from) { return k >= from && k < from + 4; });
        if (apart) continue;
        compared++;
        different += uint8_t(ours.memory[size_t(s.offset) + k]) != s.start[k];
      }
      CHECK(different == 0);
    }
    CHECK(compared > 600);  // the 400 bytes of zeros, and the rest
  }
}

TEST_CASE("damaged object files are errors") {
  for (const char* triple : {"x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"}) {
    const std::string good = compiled(triple);
    for (size_t n = 0; n < good.size(); n += 5)
      CHECK_THROWS_AS(placed(good.substr(0, n)), InternalError);
    // Any bytes are refused, or placed within their memory.
    std::mt19937 random(5);
    int refused = 0;
    for (int k = 0; k < 20000; k++) {
      std::string bytes = good;
      for (int changes = 1 + int(random() % 3); changes > 0; changes--)
        bytes[random() % bytes.size()] = char(random());
      try {
        const Object object(std::as_bytes(std::span(bytes)));
        size_t room = 0;
        for (int p = 0; p < Object::parts; p++) room += object.bytes(Object::Part(p), page);
        if (room > 1 << 24) continue;
        std::vector<std::byte> memory(room);
        object.place(memory, base, page, elsewhere);
      } catch (const InternalError&) {
        refused++;
      }
    }
    CHECK(refused > 500);
  }
}

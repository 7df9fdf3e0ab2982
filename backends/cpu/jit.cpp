#include "backends/cpu/jit.h"

#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/TargetSelect.h>

#include <atomic>
#include <string>

#include "backends/llvm/codegen.h"
#include "backends/llvm/guard.h"
#include "quern/error.h"

namespace quern::cpu {

namespace {

namespace orc = llvm::orc;

template <class T>
T want(llvm::Expected<T> value) {
  if (!value) throw InternalError("loading a kernel: " + llvm::toString(value.takeError()));
  return static_cast<T&&>(*value);
}

void want(llvm::Error error) {
  if (error) throw InternalError("loading a kernel: " + llvm::toString(std::move(error)));
}

/// One linker for the process; each object has a library of its own in it, so names never clash.
class Linker {
 public:
  Linker() {
    llvm::InitializeNativeTarget();
    orc::LLJITBuilder builder;
    builder.setPlatformSetUp(orc::setUpInactivePlatform);
    builder.setLinkProcessSymbolsByDefault(true);  // memset, and libm where the CPU lacks fma
    jit_ = want(builder.create());
    jit_->getExecutionSession().setErrorReporter(
        [](llvm::Error error) { llvm::consumeError(std::move(error)); });
  }

  orc::LLJIT& jit() { return *jit_; }
  orc::JITDylib& make_library() {
    return want(jit_->createJITDylib("kernel " + std::to_string(count_++)));
  }
  void remove(orc::JITDylib& library) {
    llvm::consumeError(jit_->getExecutionSession().removeJITDylib(library));
  }

 private:
  std::unique_ptr<orc::LLJIT> jit_;
  std::atomic<uint64_t> count_{0};
};

Linker& linker() {
  // Never destroyed: loaded code may live as long as the process.
  static Linker* one = new Linker;
  return *one;
}

class Loaded : public LoadedObject {
 public:
  explicit Loaded(orc::JITDylib& library) : library_(library) {}
  ~Loaded() override { linker().remove(library_); }

 private:
  orc::JITDylib& library_;
};

}  // namespace

std::unique_ptr<LoadedObject> load_object(std::span<const std::byte> object, size_t tasks) {
  linker();  // made outside the guard: what it holds must survive
  std::unique_ptr<LoadedObject> loaded;
  codegen::guarded("loading a kernel", [&] {
    orc::JITDylib& library = linker().make_library();
    auto out = std::make_unique<Loaded>(library);
    llvm::StringRef bytes(reinterpret_cast<const char*>(object.data()), object.size());
    want(linker().jit().addObjectFile(library,
                                      llvm::MemoryBuffer::getMemBufferCopy(bytes, "kernel")));
    for (size_t k = 0; k < tasks; k++) {
      auto address = want(linker().jit().lookup(library, codegen::task_symbol(k)));
      out->tasks.push_back(address.toPtr<TaskFunction>());
    }
    loaded = std::move(out);
  });
  return loaded;
}

}  // namespace quern::cpu

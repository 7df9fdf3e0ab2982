#include "quern/runtime/launch.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "quern/runtime/tree.h"
#include "runtime/loaded.h"

namespace quern::runtime {

using namespace ir;

FixedArguments new_fixed_arguments() {
  static std::atomic<FixedArguments> last{not_fixed};
  return ++last;
}

std::string describe(const Image::Parameter& parameter, size_t index) {
  return parameter.name.empty() ? "argument " + std::to_string(index + 1) : parameter.name;
}

namespace {
uint32_t first_on_tree(std::span<const Argument> arguments, const Tree& tree) {
  const auto found = std::ranges::find_if(
      arguments, [&](const Argument& a) { return a.storage && a.storage->tree() == &tree; });
  return uint32_t(found - arguments.begin());
}
}  // namespace

LaunchKey::LaunchKey(std::span<const Argument> arguments, Modes modes)
    : modes_(modes), parts_(arguments.size()) {
  const auto root = [&](uint32_t k) {
    while (parts_[k].alias_class != k) k = parts_[k].alias_class;
    return k;
  };
  // Nearly all have an owner of their own, which a bit of it tells; the other pairs a comparison.
  thread_local std::vector<const void*> owners;  // kept, as most launches allocate nothing
  owners.clear();
  bool any_wrapped = false;
  for (const Argument& a : arguments) {
    owners.push_back(a.storage ? a.storage->owner() : nullptr);
    any_wrapped |= a.storage && a.storage->is_wrapped();
  }
  uint64_t bits_before = 0;
  const auto is_first = [&](const void* owner) {
    const uint64_t number = reinterpret_cast<uintptr_t>(owner) * 0x9e3779b97f4a7c15;
    const uint64_t bit = uint64_t(1) << (number >> 58), before = bits_before;
    bits_before |= bit;
    return (before & bit) == 0;
  };
  for (uint32_t k = 0; k < arguments.size(); k++) {
    Part& part = parts_[k];
    part.alias_class = k;
    const Storage* storage = arguments[k].storage.get();
    if (!storage) continue;
    part.facts = storage->facts_number();
    part.alignment = storage->alignment();
    if (storage->tree()) {
      part.is_on_tree = true;
      part.is_rebased = storage->facts().layout.rebased;
      part.is_of_cells = storage->facts().layout.is_of_cells();
      part.tree = first_on_tree(arguments, *storage->tree());
    }
    if (is_first(owners[k]) && !any_wrapped) continue;
    for (uint32_t other = 0; other < k; other++) {
      if (!owners[other] || (!any_wrapped && owners[k] != owners[other])) continue;
      if (!storage->overlaps(*arguments[other].storage)) continue;
      uint32_t a = root(other), b = root(k);
      parts_[std::max(a, b)].alias_class = std::min(a, b);
    }
  }
  for (uint32_t k = 0; k < parts_.size(); k++) parts_[k].alias_class = root(k);
}

Premises LaunchKey::premises() const {
  Premises out{modes_, {}};
  out.alias_classes.reserve(parts_.size());
  for (const Part& part : parts_) out.alias_classes.push_back(part.alias_class);
  return out;
}

bool LaunchKey::has(const Premises& premises) const {
  return modes_ == premises.modes &&
         std::ranges::equal(parts_, premises.alias_classes, {}, &Part::alias_class);
}

std::vector<LaunchKey::OnTree> LaunchKey::trees() const {
  std::vector<OnTree> out(parts_.size());
  for (size_t k = 0; k < parts_.size(); k++)
    if (const Part& part = parts_[k]; part.is_on_tree)
      out[k] = {part.tree, part.is_rebased, part.is_of_cells};
  return out;
}

size_t LaunchKey::hash() const {
  size_t h = size_t(modes_.checked) | size_t(modes_.strict) << 1 | size_t(modes_.contract) << 2;
  for (const Part& p : parts_)
    h = (h ^ (p.facts | size_t(p.alias_class) << 32 | size_t(p.alignment) << 56)) *
        0x9e3779b97f4a7c15;
  return h ^ h >> 29;
}

Premises premises_of(std::span<const Argument> arguments, Modes modes) {
  return LaunchKey(arguments, modes).premises();
}

Signature signature_of(std::span<const Argument> arguments, Modes modes) {
  const LaunchKey key(arguments, modes);
  Signature s;
  s.modes = modes;
  s.fields.resize(arguments.size());
  for (size_t k = 0; k < arguments.size(); k++) {
    const LaunchKey::Part& part = key.parts_[k];
    if (arguments[k].storage) s.fields[k] = arguments[k].storage->facts();
    s.fields[k].alignment = part.alignment;
    s.fields[k].alias_class = part.alias_class;
    s.fields[k].tree = part.tree;
  }
  return s;
}

AllArguments::AllArguments(const std::string& kernel, std::span<const Image::Parameter> parameters,
                           std::span<const Argument> passed, Loc loc)
    : all_(passed) {
  size_t count = parameters.size();
  while (count > 0 && parameters[count - 1].is_derived()) count--;
  if (passed.size() != count)
    throw Error(loc, "kernel '" + kernel + "' has " + std::to_string(count) +
                         " parameters, launched with " + std::to_string(passed.size()));
  if (count == parameters.size()) return;
  own_.reserve(parameters.size());
  own_.assign(passed.begin(), passed.end());
  for (size_t k = count; k < parameters.size(); k++) {
    const Image::Parameter& p = parameters[k];
    const Storage* of = own_[p.of].storage.get();
    if (!of) throw Error(loc, describe(parameters[p.of], p.of) + " is a field without memory");
    own_.push_back({0, of->companion(p.companion, loc)});
    if (!std::ranges::equal(own_.back().storage->components(), p.components, {}, &Component::type,
                            &Component::type))
      throw InternalError("kernel '" + kernel + "' takes the " + p.companion + " of " +
                          describe(parameters[p.of], p.of) + " as something else than it is");
  }
  all_ = own_;
}

namespace {
/// All snapshots that a launch uses and that may move, each once. All launches take them in one
/// order: each of two might else have what the other waits for behind somebody who writes.
std::vector<std::shared_lock<std::shared_mutex>> hold_all(std::vector<const Storage*> snapshots) {
  if (snapshots.empty()) return {};
  std::ranges::sort(snapshots, {}, &Storage::identity);
  const auto again = std::ranges::unique(snapshots, {}, &Storage::identity);
  snapshots.erase(again.begin(), again.end());
  std::vector<std::shared_lock<std::shared_mutex>> held;
  held.reserve(snapshots.size());
  for (const Storage* s : snapshots) held.push_back(s->hold());
  return held;
}
}  // namespace

TreeArguments::TreeArguments(const Image& image, std::span<const Argument> arguments, Loc loc)
    : arguments_(arguments), loc_(loc) {
  for (const Image::TreePart& part : image.tree_parts)
    parts_.push_back({.part = &part, .writes = part.writes});
  look_up();
  std::vector<const Storage*> snapshots;
  for (const Part& p : parts_)
    if (p.storage->may_move()) snapshots.push_back(p.storage.get());
  held_ = hold_all(std::move(snapshots));
}

void TreeArguments::look_up() {
  // Snapshots of what is written get memory of their own first.
  for (Part& p : parts_) {
    p.storage = arguments_[p.part->of].storage->tree_part(p.part->name, loc_);
    if (p.writes) p.storage->begin_write(loc_);
  }
  for (Part& p : parts_) {
    const Address before = std::exchange(p.base, p.storage->base(0));
    p.moved = before != p.base;
  }
}

void TreeArguments::append_to(std::vector<Touch>& touched) const {
  for (const Part& p : parts_) touched.push_back({&p.storage->uses(), p.writes});
}

void check_arguments(const std::string& kernel, std::span<const Image::Parameter> parameters,
                     std::span<const Argument> arguments, Loc loc) {
  for (size_t k = 0; k < arguments.size(); k++) {
    const Image::Parameter& p = parameters[k];
    const Storage* s = arguments[k].storage.get();
    if (!p.is_field) continue;
    if (!s) throw Error(loc, describe(p, k) + " is a field without memory");
    s->expect_alive(loc);
    if (p.writes && s->is_snapshot())
      throw Error(loc, describe(p, k) + " is a snapshot, which is read only, and kernel '" +
                           kernel + "' writes it");
    if (s->shape().size() != p.rank)
      throw Error(loc, describe(p, k) + " has " + std::to_string(s->shape().size()) +
                           " axes, the kernel wants " + std::to_string(p.rank));
    for (size_t c = 0; c < p.components.size() && c < s->components().size(); c++)
      if (p.components[c].exact && !s->components()[c].exact)
        throw Error(loc, describe(p, k) +
                             " does not keep every value of its elements exactly, and kernel '" +
                             kernel + "' was recorded for a field that does");
    for (const Image::Parameter::Narrow& n : p.narrow) {
      const int64_t extent = s->shape()[n.axis], first = s->first(n.axis);
      const bool reaches = first >= INT32_MIN && first + extent <= INT32_MAX;
      if (first != 0 && extent <= INT32_MAX && !reaches)
        throw Error(n.loc, "the indices of axis " + std::to_string(n.axis) + " of " +
                               describe(p, k) + " go from " + std::to_string(first) + " to " +
                               std::to_string(first + extent - 1) +
                               ", farther than a 32-bit index reaches; loop over x.wide()");
      if (extent > INT32_MAX)
        throw Error(n.loc, "axis " + std::to_string(n.axis) + " of " + describe(p, k) + " has " +
                               std::to_string(extent) +
                               " elements, more than a 32-bit index reaches; loop over x.wide()");
    }
  }
}

KnownArguments::KnownArguments(SameArguments as, std::span<const Argument> arguments) : number(as) {
  for (uint32_t k = 0; k < arguments.size(); k++) {
    const Storage* s = arguments[k].storage.get();
    if (!s)
      scalars.push_back(k);
    else if (s->is_snapshot())
      snapshots.push_back(k);
  }
}

void fill_arguments(const Loaded& kernel, std::span<const Argument> arguments,
                    const KnownArguments* known, LaunchMemory& block) {
  abi::Writer writer(kernel.image->layout, block.args());
  const bool is_same = known && block.arguments == known->number;
  block.arguments = known ? known->number : other_arguments;
  block.repeats = block.repeats && is_same;
  if (is_same) {
    for (uint32_t k : known->scalars) writer.scalar(k, arguments[k].bits);
    for (uint32_t k : known->snapshots) arguments[k].storage->put_bases(writer, k);
    return;
  }
  for (size_t k = 0; k < arguments.size(); k++) {
    const Storage* s = arguments[k].storage.get();
    if (!s) {
      writer.scalar(k, arguments[k].bits);
      continue;
    }
    const size_t rank = s->shape().size();
    std::array<int64_t, Placement::max_axes> firsts, origins;
    for (uint32_t c = 0; c < s->components().size(); c++)
      writer.component(k, c, s->base(c), s->strides(c));
    for (uint32_t axis = 0; axis < rank; axis++) {
      firsts[axis] = s->first(axis);
      origins[axis] = s->origin(axis);
    }
    writer.axes(k, s->shape(), std::span(firsts).first(rank), std::span(origins).first(rank));
  }
}

namespace {

/// Code made for `made` runs on such a field: an alignment of more is one.
bool runs_on(Signature::Field made, const Signature::Field& given) {
  if (made.alignment == 0 || given.alignment % made.alignment != 0) return false;
  made.alignment = given.alignment;
  return made == given;
}

void expect_fit(const Image& image, std::span<const Argument> arguments, Loc loc) {
  check_arguments(image.kernel, image.parameters, arguments, loc);
  for (size_t k = 0; k < arguments.size(); k++) {
    const Image::Parameter& p = image.parameters[k];
    if (!p.is_field && arguments[k].storage)
      throw Error(loc, describe(p, k) + " is a field, the kernel wants a scalar");
    if (p.is_field && !std::ranges::equal(p.components, arguments[k].storage->components(), {},
                                          &Component::type, &Component::type))
      throw Error(loc, describe(p, k) + " has elements of another type than the kernel wants");
  }
  const Signature given = signature_of(arguments, image.made_for.modes);
  for (size_t k = 0; k < arguments.size(); k++) {
    const Signature::Field& made =
        k < image.made_for.fields.size() ? image.made_for.fields[k] : Signature::Field();
    if (made.alias_class != given.fields[k].alias_class)
      throw Error(loc, describe(image.parameters[k], k) +
                           " shares elements with other arguments than the kernel '" +
                           image.kernel + "' was compiled for");
    if (!runs_on(made, given.fields[k]))
      throw Error(loc, describe(image.parameters[k], k) +
                           " lies in memory otherwise than the kernel '" + image.kernel +
                           "' was compiled for");
  }
}

}  // namespace

Outcome::Outcome(std::shared_ptr<Device> device, Stream& stream,
                 std::shared_ptr<const LaunchRecord> launch, std::shared_ptr<LaunchMemory> block,
                 size_t count, std::vector<std::shared_ptr<Storage>> kept)
    : device_(std::move(device)),
      stream_(stream),
      launch_(std::move(launch)),
      block_(std::move(block)),
      values_(count),
      kept_(std::move(kept)) {}
Outcome::~Outcome() = default;

uint64_t Outcome::result(size_t k) {
  std::lock_guard lock(mutex_);
  if (!read_) {
    stream_.download(std::as_writable_bytes(std::span(values_)), block_->loaded->frame(*block_));
    read_ = true;
    block_.reset();
  }
  stream_.expect_success(*launch_);
  return values_.at(k);
}

namespace {
/// The memory of the arguments, as the kernel uses it.
class Touched final : public Touches {
 public:
  Touched(const Image& image, std::span<const Argument> arguments, const TreeArguments& trees)
      : image_(image), arguments_(arguments), trees_(trees) {}
  void append_to(std::vector<Touch>& touched) const override {
    for (size_t k = 0; k < arguments_.size(); k++) {
      const Image::Parameter& p = image_.parameters[k];
      if (arguments_[k].storage && (p.reads || p.writes))
        touched.push_back({&arguments_[k].storage->uses(), p.writes});
    }
    trees_.append_to(touched);
  }

 private:
  const Image& image_;
  std::span<const Argument> arguments_;
  const TreeArguments& trees_;
};

/// What a launch in the stream has made, others read behind it.
void tell_writer(Stream& stream, std::span<const std::shared_ptr<Storage>> made) {
  std::vector<Touch> touched;
  for (const auto& storage : made)
    if (storage) touched.push_back({&storage->uses(), true});
  stream.submit({}, touched);
}
}  // namespace

std::shared_ptr<Outcome> launch(const std::shared_ptr<Loaded>& kernel,
                                std::span<const Argument> arguments, Loc loc,
                                const KnownArguments* known) {
  const std::shared_ptr<Device>& device = kernel->device;
  Stream& stream = Stream::current(*device);
  uint64_t version = kernel->written.empty() ? 0 : Storage::new_versions(kernel->written.size());
  for (uint32_t k : kernel->written) arguments[k].storage->begin_write(loc, version++);
  std::vector<const Storage*> snapshots;
  const auto add = [&](const Argument& a) {
    if (a.storage && a.storage->may_move()) snapshots.push_back(a.storage.get());
  };
  if (known)
    for (uint32_t k : known->snapshots) add(arguments[k]);
  else
    for (const Argument& a : arguments) add(a);
  const auto held = hold_all(std::move(snapshots));  // until all is submitted
  Loaded::Taken block =
      kernel->take_memory(stream.queue(), known ? known->number : other_arguments);
  fill_arguments(*kernel, arguments, known, *block);
  TreeArguments trees(*kernel->image, arguments, loc);
  const Touched touched(*kernel->image, arguments, trees);
  struct Launched {
    Stream& stream;
    const std::shared_ptr<const Reporter>& reporter;
    LaunchRecord& record;
    ~Launched() { stream.end_launch(record, reporter); }
  } launched{stream, kernel->reporter, stream.begin_launch(*kernel->reporter)};
  launched.record.touches = &touched;
  std::vector<std::shared_ptr<Storage>> kept =
      execute(*kernel, *block, stream, launched.record, trees);
  if (!kept.empty()) tell_writer(stream, kept);
  const size_t results = kernel->image->results.size();
  if (results == 0 && kept.empty()) return nullptr;
  block.get_deleter().kept = kernel;
  return std::make_shared<Outcome>(device, stream, launched.record.shared_from_this(),
                                   std::move(block), results, std::move(kept));
}

LoadedKernel::LoadedKernel(std::shared_ptr<Device> device, std::shared_ptr<const Image> image,
                           Loc loc, WideImage wide) {
  try {
    loaded_ = std::make_shared<Loaded>(std::move(device), std::move(image), std::move(wide));
  } catch (const Error& e) {
    throw Error(e.loc().line ? e.loc() : loc, e.message());
  }
}

const Image& LoadedKernel::image() const { return *loaded_->image; }

std::shared_ptr<Outcome> LoadedKernel::launch(std::span<const Argument> passed, Loc loc) const {
  const AllArguments all(loaded_->image->kernel, loaded_->image->parameters, passed, loc);
  const std::span<const Argument> arguments = all;
  expect_fit(*loaded_->image, arguments, loc);
  for (const Argument& a : arguments)
    if (a.storage && a.storage->shared_device() != loaded_->device)
      throw Error(loc, "kernel '" + loaded_->image->kernel + "' is loaded on device " +
                           loaded_->device->name() + ", and a field is on " +
                           a.storage->device().name());
  const auto event = [&] {
    return LaunchEvent{.name = loaded_->image->kernel,
                       .parameters = loaded_->image->parameters,
                       .arguments = arguments,
                       .modes = loaded_->image->made_for.modes,
                       .device = loaded_->device,
                       .loc = loc};
  };
  return observed(event, [&] { return runtime::launch(loaded_, arguments, loc); });
}

}  // namespace quern::runtime

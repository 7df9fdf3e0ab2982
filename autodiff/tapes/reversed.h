#pragma once
// The reverse kernels of one kernel, for those that record its launches.
#include <memory>
#include <mutex>
#include <optional>

#include "autodiff/reverse/reverse.h"
#include "autodiff/tapes/passed_companions.h"
#include "quern/runtime/program.h"

namespace quern::autodiff {

/// Of one kernel's launches with different fields that are looked for among those before, of a tape
/// and from tape to tape: fields that take turns are two or three.
constexpr size_t most_passed = 4;

class PassedBefore;

/// The reverse kernels of one kernel, each made when a launch with its premises is recorded. May be
/// used from several threads.
class Reversed {
 public:
  enum Kind : uint8_t {
    adjoints,
    with_values,  ///< where Reverse::yields_values, the primal's results stand first
    second,  ///< the reverse kernels run forward themselves, and yield what their results change by
             ///< along a direction, too
  };
  /// `inputs`: as reverse() takes them.
  Reversed(std::shared_ptr<const ir::Kernel> primal, std::vector<bool> inputs, Kind kind = adjoints)
      : primal_(std::move(primal)), inputs_(std::move(inputs)), kind_(kind) {}

  struct Program {
    Reverse reverse;      ///< whose kernels the programs have
    bool second = false;  ///< those of `program` and `log_record` run forward
    /// Of `log_record` then: the bindings whose tangents are passed behind all else.
    std::vector<uint32_t> log_tangents;
    std::unique_ptr<runtime::Program> program, count;
    std::unique_ptr<runtime::Program> log_sizes, log_count, log_record;
    bool counts_by_data = false;  ///< Does how many rows there are depend on elements of fields?
    /// What is launched in place of the primal, and says before how much that keeps; null: the primal
    /// itself is launched.
    std::unique_ptr<runtime::Program> augmented, augmented_count;
    bool augmented_by_data = false;      ///< counts_by_data, of augmented_count
    std::vector<uint32_t> augmented_by;  ///< scalars of the primal that decide on what it says
    /// Of what is launched in place of the primal, if that computes the gradient at once.
    std::optional<PassedCompanions> passed_at_once;
    /// Of a `program` that takes nothing but what is known when the launch is recorded: companions
    /// are passed to it, by their fields' numbers among those of Reverse::fields that are some.
    std::optional<PassedCompanions> passed;

    std::shared_ptr<PassedBefore> passed_before;  ///< to it

    /// How one augments that keeps less.
    Augment less_augmented() const {
      return reverse.augmented.at_once ? Augment::by_loops : Augment::never;
    }

    /// What the augmented primal keeps in a launch: results of augmented_count, bytes, and whether
    /// that is worth it.
    struct Kept {
      std::vector<uint64_t> counts;
      uint64_t bytes = 0;
      bool pays = true;
    };
    /// By a launch with these arguments. Known from one before, of any tape, where the same decides on
    /// it as in one of the last few. May be used from several threads.
    Kept kept_with(std::span<const runtime::Argument> arguments, Loc loc);

   private:
    using KeptBy = std::pair<std::vector<uint64_t>, Kept>;  ///< bits of scalars, axes of fields
    std::mutex kept_mutex_;
    std::vector<KeptBy> kept_;  ///< the newest last
  };
  /// `augment`: unless never, something else may be launched in place of the primal. Throws Error with the
  /// line of what has no adjoint.
  std::shared_ptr<Program> program(const runtime::LaunchKey& key, Augment augment);

 private:
  const std::shared_ptr<const ir::Kernel> primal_;
  const std::vector<bool> inputs_;
  const Kind kind_;
  std::mutex mutex_;
  struct Known {
    ir::Premises premises;
    std::vector<runtime::LaunchKey::OnTree> trees;
    Augment augment = Augment::never;
    std::shared_ptr<Program> program;
  };
  std::vector<Known> programs_;
};

/// What goes back through one program's kernel, by its inputs: kept with the program
/// (runtime::Attached), where who asks for the same finds it made. May be used from several
/// threads.
class ReversedByInputs {
 public:
  static std::shared_ptr<ReversedByInputs> of(runtime::Attached& program);
  /// `kernel`: the program's.
  std::shared_ptr<Reversed> by(const std::shared_ptr<const ir::Kernel>& kernel,
                               const std::vector<bool>& inputs,
                               Reversed::Kind kind = Reversed::adjoints);
  /// For launches that pass the companions too that the kernel derives, by these arguments of
  /// theirs.
  std::shared_ptr<Reversed> by_passed(const std::shared_ptr<const ir::Kernel>& kernel,
                                      const std::vector<bool>& inputs);

 private:
  std::shared_ptr<Reversed> find(const std::shared_ptr<const ir::Kernel>& kernel,
                                 const std::vector<bool>& inputs, Reversed::Kind kind);
  struct Known {
    const ir::Kernel* kernel = nullptr;
    std::vector<bool> inputs;
    Reversed::Kind kind = Reversed::adjoints;
    std::shared_ptr<Reversed> reversed;
  };
  std::mutex mutex_;
  std::vector<Known> all_;
  std::shared_ptr<const ir::Kernel> passed_;  ///< takes companions as arguments
};

}  // namespace quern::autodiff

// SPDX-License-Identifier: Apache-2.0
#include "judge/run/workbench.h"

#include <algorithm>

#include "judge/base/fault.h"
#include "judge/base/hash.h"
#include "judge/base/interrupt.h"
#include "judge/run/layout.h"

namespace assay {
namespace {

/// Slots below this one sit at odd offsets; check uses them. The rest are aligned as allocators
/// align.
constexpr int kOddSlots = 3;

std::vector<Tensor> views(const std::vector<TensorSpec>& specs, const Shape& shape) {
  std::vector<Tensor> out;
  for (const TensorSpec& s : specs) out.push_back(s.at(shape));
  return out;
}

std::int64_t total_bytes(const std::vector<Tensor>& tensors) {
  std::int64_t n = 0;
  for (const Tensor& t : tensors) n += (t.bytes() + 255) / 256 * 256;
  return n;
}

/// Private memory for a list of tensors; their data pointers are set.
std::unique_ptr<Buffer> allocate_all(Device& device, std::vector<Tensor>& tensors) {
  auto buffer = device.allocate(std::max<std::int64_t>(total_bytes(tensors), 256));
  auto* at = static_cast<unsigned char*>(buffer->data());
  for (Tensor& t : tensors) {
    t.data = at;
    at += (t.bytes() + 255) / 256 * 256;
  }
  return buffer;
}

/// A 64-bit word whose every 16-bit lane is the same secret NaN, as bf16 and, in pairs, as f32.
std::uint64_t secret_nan_word(std::uint64_t bits) {
  const std::uint64_t lane = 0x7f81u + bits % 0x7f + ((bits >> 8) & 1 ? 0x8000u : 0u);
  return lane * 0x0001000100010001ULL;
}

}  // namespace

class Workbench::Impl {
 public:
  Impl(Device& device, const Problem& problem, const Shape& shape, const SessionOptions& options,
       int slots, std::uint64_t seed)
      : device_(device),
        problem_(problem),
        shape_(shape),
        seed_(seed),
        kernels_(device.kernels(problem.id)),
        session_(device, options) {
    if (kernels_ == nullptr)
      throw JudgeError("problem {} has no code for this device; rebuild Assay", problem.id);
    slots_.resize(static_cast<std::size_t>(std::max(slots, kOddSlots)));
    place_constants();
    place_inputs();
    place_outputs();
    allocate_bases();
    bind_slots();
  }

  struct Slot {
    std::vector<Tensor> inputs, outputs, captured, expected;
    std::vector<wire::TensorRef> input_refs, output_refs;
    std::unique_ptr<Buffer> expected_memory;
    std::uint64_t last_digest = 0;  ///< of the outputs captured from it last
  };
  struct Base {
    std::vector<Tensor> inputs, expected;
    std::unique_ptr<Buffer> input_memory, expected_memory;
  };

  void place_constants() {
    constants_ = views(problem_.constants, shape_);
    if (!constants_.empty()) {
      std::vector<PlacementRequest> want;
      for (const Tensor& t : constants_) want.push_back({t.bytes(), false});
      const Placement p =
          place(want, device_.arena_granularity(), true, derive_seed(seed_, "const"));
      constant_arena_ = device_.allocate_arena(p.arena_bytes, false);
      constant_refs_ =
          point_into(constants_, *constant_arena_, session_.map(*constant_arena_), p.offsets, 0);
    }
    derived_ = views(problem_.derived, shape_);
    if (!derived_.empty()) derived_memory_ = allocate_all(device_, derived_);
  }

  /// Slot 0 is placed last, so that its last input ends where the mapping ends.
  void place_inputs() {
    std::vector<PlacementRequest> want;
    for (int s = slot_count() - 1; s >= 0; --s)
      for (const Tensor& t : views(problem_.inputs, shape_))
        want.push_back({t.bytes(), s < kOddSlots});
    const Placement p =
        place(want, device_.arena_granularity(), true, derive_seed(seed_, "inputs"));
    input_arena_ = device_.allocate_arena(p.arena_bytes, false);
    const std::uint32_t number = session_.map(*input_arena_);
    const std::size_t per_slot = problem_.inputs.size();
    for (int s = 0; s < slot_count(); ++s) {
      Slot& slot = slots_[static_cast<std::size_t>(s)];
      slot.inputs = views(problem_.inputs, shape_);
      slot.input_refs = point_into(slot.inputs, *input_arena_, number, p.offsets,
                                   static_cast<std::size_t>(slot_count() - 1 - s) * per_slot);
    }
    const Range all[] = {{input_arena_->data(), input_arena_->bytes()}};
    device_.fill_word(all, secret_nan_word(derive_seed(seed_, "guard")));
  }

  void place_outputs() {
    std::vector<PlacementRequest> want;
    for (int s = 0; s < slot_count(); ++s)
      for (const Tensor& t : views(problem_.outputs, shape_))
        want.push_back({t.bytes(), s < kOddSlots});
    const Placement p =
        place(want, device_.arena_granularity(), false, derive_seed(seed_, "outputs"));
    output_arena_ = device_.allocate_arena(p.arena_bytes, true);
    captured_ = device_.allocate(p.arena_bytes);
    const std::uint32_t number = session_.map(*output_arena_);
    const std::size_t per_slot = problem_.outputs.size();
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      Slot& slot = slots_[s];
      slot.outputs = views(problem_.outputs, shape_);
      slot.output_refs = point_into(slot.outputs, *output_arena_, number, p.offsets, s * per_slot);
      slot.captured = slot.outputs;
      for (std::size_t o = 0; o < per_slot; ++o)
        slot.captured[o].data =
            static_cast<unsigned char*>(captured_->data()) + p.offsets[s * per_slot + o];
      slot.expected = views(problem_.expected, shape_);
      slot.expected_memory = allocate_all(device_, slot.expected);
    }
  }

  static std::vector<wire::TensorRef> point_into(std::vector<Tensor>& tensors, const Arena& arena,
                                                 std::uint32_t number,
                                                 const std::vector<std::int64_t>& offsets,
                                                 std::size_t first) {
    std::vector<wire::TensorRef> refs;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      Tensor& t = tensors[i];
      const std::int64_t offset = offsets[first + i];
      t.data = static_cast<unsigned char*>(arena.data()) + offset;
      refs.push_back({number, static_cast<std::uint64_t>(offset), t.dtype,
                      std::vector<std::int64_t>(t.shape, t.shape + t.rank)});
    }
    return refs;
  }

  void allocate_bases() {
    const std::int64_t capacity = std::max<std::int64_t>(1, kernels_->rekey_capacity(shape_));
    const std::int64_t wanted = (slot_count() + capacity - 1) / capacity;
    bases_.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(wanted, 2, slot_count())));
    for (Base& b : bases_) {
      b.inputs = views(problem_.inputs, shape_);
      b.input_memory = allocate_all(device_, b.inputs);
      b.expected = views(problem_.expected, shape_);
      b.expected_memory = allocate_all(device_, b.expected);
    }
  }

  void bind_slots() {
    for (std::size_t s = 0; s < slots_.size(); ++s)
      session_.bind(static_cast<std::uint32_t>(s), slots_[s].input_refs, slots_[s].output_refs);
    session_.freeze();
  }

  int slot_count() const { return static_cast<int>(slots_.size()); }

  /// Draws every tensor that problem.yaml gives a distribution.
  void draw(const std::vector<TensorSpec>& specs, Tensors tensors, std::uint64_t seed,
            const CaseSpec& c) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (!specs[i].draw) continue;
      Distribution d = *specs[i].draw;
      if (const auto it = c.scale.find(specs[i].name); it != c.scale.end()) d.scale *= it->second;
      device_.fill(tensors[i], d, derive_seed(seed, specs[i].name));
    }
  }
  /// Tensors the problem's own code fills are scaled afterwards.
  void scale_derived(const std::vector<TensorSpec>& specs, Tensors tensors, const CaseSpec& c) {
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (const auto it = c.scale.find(specs[i].name); it != c.scale.end() && !specs[i].draw)
        device_.scale(tensors[i], it->second);
  }

  void set_constants(std::uint64_t seed, const CaseSpec& c) {
    release();
    if (!constants_.empty()) {
      const Range all[] = {{constant_arena_->data(), constant_arena_->bytes()}};
      device_.fill_word(all, secret_nan_word(derive_seed(seed, "guard")));
      draw(problem_.constants, constants_, seed, c);
      if (kernels_->draw_constants != nullptr)
        kernels_->draw_constants(device_, {shape_, derive_seed(seed, "derived"), constants_});
      scale_derived(problem_.constants, constants_, c);
      if (kernels_->derive != nullptr) kernels_->derive(device_, {shape_, constants_, derived_});
      device_.synchronize();
      constant_digest_ = device_.digest(all)[0];
    }
    session_.prepare(problem_, shape_, constant_refs_, problem_.limits.prepare_s);
    prepared_ = true;
    session_.freeze();
  }

  void release() {
    if (prepared_) session_.release(problem_.limits.prepare_s);
    prepared_ = false;
  }

  void draw_base(Base& b, std::uint64_t seed, const CaseSpec& c) {
    draw(problem_.inputs, b.inputs, seed, c);
    if (kernels_->draw_inputs != nullptr)
      kernels_->draw_inputs(device_, {shape_, derive_seed(seed, "derived"), b.inputs});
    scale_derived(problem_.inputs, b.inputs, c);
    if (c.structural) {
      if (kernels_->structure == nullptr)
        throw JudgeError("problem {} lists structural cases but has no structure()", problem_.id);
      kernels_->structure(device_,
                          {shape_, c.name, derive_seed(seed, c.name), constants_, b.inputs});
    }
    kernels_->oracle(device_, {shape_, constants_, derived_, b.inputs, b.expected});
  }

  void assign(Slot& s, const Base& b, std::uint64_t key) {
    kernels_->rekey(device_, {shape_, key, b.inputs, b.expected, s.inputs, s.expected});
  }

  WindowResult control_window(int calls) {
    std::vector<std::uint32_t> slots;
    for (int i = 0; i < calls; ++i) slots.push_back(static_cast<std::uint32_t>(i));
    get_ready();
    return session_.run_window(slots, true, 30);
  }

  /// Poison everywhere, then nothing of ours left in any cache.
  void get_ready() {
    throw_if_interrupted();
    word_ = secret_nan_word(derive_seed(seed_, "poison", window_++));
    const Range outputs[] = {{output_arena_->data(), output_arena_->bytes()}};
    device_.fill_word(outputs, word_);
    std::vector<Range> live = {{input_arena_->data(), input_arena_->bytes()}, outputs[0]};
    if (constant_arena_) live.push_back({constant_arena_->data(), constant_arena_->bytes()});
    if (!walled()) input_digest_ = device_.digest({&live[0], 1})[0];
    device_.flush_caches(live);
  }

  VerifiedWindow run(const std::vector<std::uint32_t>& order, const Tolerance& tolerance) {
    get_ready();
    VerifiedWindow w;
    const double deadline_s = problem_.limits.call_s + 0.05 * static_cast<double>(order.size());
    w.times = session_.run_window(order, false, deadline_s);
    device_.copy(captured_->data(), output_arena_->data(), output_arena_->bytes());
    verify_untouched(order);
    for (std::size_t i = 0; i < order.size(); ++i) {
      w.slots.push_back(compare(slots_[order[i]], tolerance));
      for (const OutputStats& o : w.slots.back())
        if (!o.stats.ok() && w.wrong_call < 0) w.wrong_call = static_cast<int>(i);
    }
    judge_lateness(order, w);
    return w;
  }

  /// Everything in the output arena but the outputs handed out must still be poison; inputs and
  /// constants must be as they were.
  void verify_untouched(const std::vector<std::uint32_t>& order) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // offset, bytes
    for (std::uint32_t s : order)
      for (const Tensor& t : slots_[s].captured)
        taken.emplace_back(offset_of(t), (t.bytes() + 1) / 2 * 2);
    std::sort(taken.begin(), taken.end());
    taken.emplace_back(captured_->bytes(), 0);
    std::vector<Range> gaps;
    std::vector<std::int64_t> starts;
    std::int64_t at = 0;
    for (const auto& [offset, bytes] : taken) {
      if (offset > at) {
        gaps.push_back({static_cast<unsigned char*>(captured_->data()) + at, offset - at});
        starts.push_back(at);
      }
      at = offset + bytes;
    }
    const std::vector<std::int64_t> changes = device_.find_change(gaps, word_);
    for (std::size_t i = 0; i < changes.size(); ++i)
      if (changes[i] >= 0) report_stray_write(starts[i] + changes[i], order);
    if (walled()) return;
    const Range inputs[] = {{input_arena_->data(), input_arena_->bytes()}};
    if (device_.digest(inputs)[0] != input_digest_)
      throw SubmissionFault(Verdict::kOutOfBounds, "wrote into its inputs");
    if (!constant_arena_) return;
    const Range constants[] = {{constant_arena_->data(), constant_arena_->bytes()}};
    if (device_.digest(constants)[0] != constant_digest_)
      throw SubmissionFault(Verdict::kOutOfBounds, "wrote into its constants");
  }

  std::int64_t offset_of(const Tensor& captured) const {
    return static_cast<unsigned char*>(captured.data) -
           static_cast<unsigned char*>(captured_->data());
  }

  /// Names the tensor the stray byte belongs to or lies beside.
  [[noreturn]] void report_stray_write(std::int64_t offset,
                                       const std::vector<std::uint32_t>& order) {
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      const bool handed_out =
          std::find(order.begin(), order.end(), static_cast<std::uint32_t>(s)) != order.end();
      for (std::size_t o = 0; o < slots_[s].captured.size(); ++o) {
        const Tensor& t = slots_[s].captured[o];
        const std::int64_t from = offset - offset_of(t);
        const std::string& output = problem_.outputs[o].name;
        if (!handed_out && from >= 0 && from < t.bytes())
          throw SubmissionFault(
              Verdict::kOutOfBounds,
              fmt::format("wrote output {} of a slot that was not handed out", output));
        if (handed_out && from >= t.bytes() && from < t.bytes() + kGuardBytes)
          throw SubmissionFault(Verdict::kOutOfBounds,
                                fmt::format("wrote {} bytes past the end of output {}",
                                            from - t.bytes() + 1, output));
        if (handed_out && from < 0 && from >= -kGuardBytes)
          throw SubmissionFault(Verdict::kOutOfBounds,
                                fmt::format("wrote {} bytes before output {}", -from, output));
      }
    }
    throw SubmissionFault(Verdict::kOutOfBounds, "wrote into the judge's memory between buffers");
  }

  std::vector<OutputStats> compare(Slot& slot, const Tolerance& tolerance) {
    std::vector<OutputStats> out;
    std::vector<Range> ranges;
    for (std::size_t o = 0; o < problem_.outputs.size(); ++o) {
      const CompareArgs args{shape_,      static_cast<int>(o), tolerance,
                             slot.inputs, slot.expected,       slot.captured};
      out.push_back({problem_.outputs[o].name, kernels_->compare(device_, args), 0});
      ranges.push_back({slot.captured[o].data, slot.captured[o].bytes()});
    }
    const std::vector<std::uint64_t> digests = device_.digest(ranges);
    for (std::size_t o = 0; o < out.size(); ++o) out[o].digest = digests[o];
    return out;
  }

  /// Three readings of each output: the runner's when run() returned, the runner's after a
  /// device-wide wait, and ours at the capture. And ours once more, now.
  void judge_lateness(const std::vector<std::uint32_t>& order, VerifiedWindow& w) {
    std::vector<Range> live;
    for (std::uint32_t s : order)
      for (const Tensor& t : slots_[s].outputs) live.push_back({t.data, t.bytes()});
    const std::vector<std::uint64_t> now = device_.digest(live);
    std::size_t at = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::uint64_t captured = 0, settled_now = 0;
      for (const OutputStats& o : w.slots[i]) {
        captured = wire::digest_chain(captured, o.digest);
        settled_now = wire::digest_chain(settled_now, now[at++]);
      }
      slots_[order[i]].last_digest = captured;
      const char* what = settled_now != captured          ? "after the judge had captured it"
                         : w.times.settled[i] != captured ? "between the final wait and the capture"
                         : w.times.returned[i] != w.times.settled[i] ? "after run() had returned"
                                                                     : nullptr;
      if (what != nullptr && !w.late_write) {
        w.late_write = true;
        w.late_evidence =
            fmt::format("output of call {} of {} changed {}", i + 1, order.size(), what);
      }
    }
  }

  /// On the cpu the inputs are sealed against writing, so there is nothing to re-read.
  bool walled() const { return device_.info().backend == wire::Backend::kCpu; }

  Device& device_;
  const Problem& problem_;
  const Shape shape_;
  const std::uint64_t seed_;
  const ProblemKernels* kernels_;
  std::unique_ptr<Arena> constant_arena_, input_arena_, output_arena_;
  std::unique_ptr<Buffer> derived_memory_, captured_;
  std::vector<Tensor> constants_, derived_;
  std::vector<wire::TensorRef> constant_refs_;
  std::vector<Slot> slots_;
  std::vector<Base> bases_;
  std::uint64_t word_ = 0, window_ = 0, input_digest_ = 0, constant_digest_ = 0;
  bool prepared_ = false;
  Session session_;  // last: the runner is gone before the memory it maps is
};

Workbench::Workbench(Device& device, const Problem& problem, const Shape& shape,
                     const SessionOptions& options, int slots, std::uint64_t seed)
    : impl_(std::make_unique<Impl>(device, problem, shape, options, slots, seed)) {}
Workbench::~Workbench() = default;

const Problem& Workbench::problem() const {
  return impl_->problem_;
}
const Shape& Workbench::shape() const {
  return impl_->shape_;
}
Device& Workbench::device() {
  return impl_->device_;
}
int Workbench::slot_count() const {
  return impl_->slot_count();
}
int Workbench::first_aligned_slot() const {
  return kOddSlots;
}
int Workbench::base_count() const {
  return static_cast<int>(impl_->bases_.size());
}
WindowResult Workbench::control_window(int calls) {
  return impl_->control_window(calls);
}
void Workbench::load(const Artifact& a) {
  impl_->session_.load(a);
  impl_->session_.freeze();
}
void Workbench::set_constants(std::uint64_t seed, const CaseSpec& c) {
  impl_->set_constants(seed, c);
}
void Workbench::draw_base(int base, std::uint64_t seed, const CaseSpec& c) {
  impl_->draw_base(impl_->bases_.at(static_cast<std::size_t>(base)), seed, c);
}
void Workbench::assign(int slot, int base, std::uint64_t key) {
  impl_->assign(impl_->slots_.at(static_cast<std::size_t>(slot)),
                impl_->bases_.at(static_cast<std::size_t>(base)), key);
}
VerifiedWindow Workbench::run(const std::vector<std::uint32_t>& slots, const Tolerance& t) {
  return impl_->run(slots, t);
}
std::uint64_t Workbench::input_digest(int slot) {
  std::vector<Range> ranges;
  for (const Tensor& t : impl_->slots_.at(static_cast<std::size_t>(slot)).inputs)
    ranges.push_back({t.data, t.bytes()});
  std::uint64_t d = 0;
  for (std::uint64_t v : impl_->device_.digest(ranges)) d = wire::digest_chain(d, v);
  return d;
}
std::uint64_t Workbench::last_digest(int slot) const {
  return impl_->slots_.at(static_cast<std::size_t>(slot)).last_digest;
}
const std::string& Workbench::output() const {
  return impl_->session_.output();
}
void Workbench::release() {
  impl_->release();
}

int fitting_slots(Device& device, const Problem& problem, const Shape& shape, int wanted) {
  // Per slot: inputs, outputs twice (live and captured), expected; and at the worst a base of its
  // own.
  const std::int64_t inputs = total_bytes(views(problem.inputs, shape));
  const std::int64_t outputs = total_bytes(views(problem.outputs, shape));
  const std::int64_t expected = total_bytes(views(problem.expected, shape));
  const std::int64_t per_slot = 2 * inputs + 2 * outputs + 2 * expected + 8 * 4096;
  const bool cuda = device.info().backend == wire::Backend::kCuda;
  const std::int64_t budget =
      cuda ? device.info().memory_bytes / 100 * 35
           : std::min<std::int64_t>(device.info().memory_bytes / 8, std::int64_t{512} << 20);
  return static_cast<int>(
      std::clamp<std::int64_t>(budget / per_slot, 2 + kOddSlots, wanted + kOddSlots));
}

}  // namespace assay

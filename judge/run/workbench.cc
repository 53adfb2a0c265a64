// SPDX-License-Identifier: Apache-2.0
#include "judge/run/workbench.h"

#include <algorithm>

#include "judge/base/fault.h"
#include "judge/base/hash.h"
#include "judge/base/interrupt.h"
#include "judge/run/layout.h"
#include "judge/run/memory.h"

namespace assay {
namespace {

Range whole(const Buffer& b) {
  return {b.data(), b.bytes()};
}

const ProblemKernels* kernels_of(Device& device, const Problem& problem) {
  const ProblemKernels* k = device.kernels(problem.id);
  if (k == nullptr)
    throw JudgeError("problem {} has no code for this device; rebuild Assay", problem.id);
  return k;
}

/// Bases among which the slots are shared out. Where nothing can be re-keyed every assignment draws
/// its own.
int bases_for(const ProblemKernels& k, const Shape& shape, int slots) {
  const std::int64_t capacity = k.rekey_capacity(shape);
  if (capacity <= 1) return 1;
  return static_cast<int>(std::max<std::int64_t>(2, (slots + capacity - 1) / capacity));
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
        written_(problem.written()),
        shape_(shape),
        seed_(seed),
        kernels_(kernels_of(device, problem)),
        m_(device, problem, shape, std::max(slots, WorkbenchMemory::kOddSlots),
           bases_for(*kernels_, shape, slots), seed),
        session_(device, options) {
    const Range all[] = {whole(*m_.input_arena)};
    device_.fill_word(all, secret_nan_word(derive_seed(seed_, "guard")));
    m_.introduce(session_);
  }

  int slot_count() const { return static_cast<int>(m_.slots.size()); }

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
    if (!m_.constants.empty()) {
      const Range all[] = {whole(*m_.constant_arena)};
      device_.fill_word(all, secret_nan_word(derive_seed(seed, "guard")));
      draw(problem_.constants, m_.constants, seed, c);
      if (kernels_->draw_constants != nullptr)
        kernels_->draw_constants(device_, {shape_, derive_seed(seed, "derived"), m_.constants});
      scale_derived(problem_.constants, m_.constants, c);
      if (kernels_->derive != nullptr)
        kernels_->derive(device_, {shape_, m_.constants, m_.derived});
    }
    prepare();
  }

  void prepare() {
    release();
    device_.synchronize();
    if (!m_.constants.empty()) {
      const Range all[] = {whole(*m_.constant_arena)};
      constant_digest_ = device_.digest(all)[0];
    }
    session_.prepare(problem_, shape_, m_.constant_refs, problem_.limits.prepare_s);
    prepared_ = true;
    session_.freeze();
  }

  void release() {
    if (prepared_) session_.release(problem_.limits.prepare_s);
    prepared_ = false;
  }

  void draw_base(Base& b, std::uint64_t seed, const CaseSpec& c) {
    draw(problem_.read(), b.inputs, seed, c);
    if (kernels_->draw_inputs != nullptr)
      kernels_->draw_inputs(device_, {shape_, derive_seed(seed, "derived"), b.inputs});
    scale_derived(problem_.read(), b.inputs, c);
    if (c.structural) {
      if (kernels_->structure == nullptr)
        throw JudgeError("problem {} lists structural cases but has no structure()", problem_.id);
      kernels_->structure(device_,
                          {shape_, c.name, derive_seed(seed, c.name), m_.constants, b.inputs});
    }
    kernels_->oracle(device_, {shape_, m_.constants, m_.derived, b.inputs, b.expected});
  }

  void assign(Slot& s, const Base& b, std::uint64_t key) {
    kernels_->rekey(device_, {shape_, key, b.inputs, b.expected, s.inputs, s.expected});
  }

  WindowResult control_window(int calls, std::uint32_t pace_ns) {
    wire::RunWindow window{{}, true, pace_ns};
    for (int i = 0; i < calls; ++i) window.slots.push_back(static_cast<std::uint32_t>(i));
    get_ready({});
    return session_.run_window(window, 30);
  }

  /// Poison everywhere but in the state these slots are handed, then nothing of ours left in any
  /// cache.
  void get_ready(const std::vector<std::uint32_t>& order) {
    throw_if_interrupted();
    word_ = secret_nan_word(derive_seed(seed_, "poison", window_++));
    const Range outputs[] = {whole(*m_.output_arena)};
    device_.fill_word(outputs, word_);
    for (const std::uint32_t s : order) hand_over_inouts(m_.slots[s]);
    std::vector<Range> live = {whole(*m_.input_arena), outputs[0]};
    if (m_.constant_arena) live.push_back(whole(*m_.constant_arena));
    if (!walled()) input_digest_ = device_.digest({&live[0], 1})[0];
    device_.flush_caches(live);
  }

  void hand_over_inouts(const Slot& slot) {
    for (std::size_t i = 0; i < problem_.inouts.size(); ++i) {
      const Tensor &from = slot.inputs[problem_.inputs.size() + i],
                   &to = slot.outputs[problem_.outputs.size() + i];
      device_.copy(to.data, from.data, from.bytes());
    }
  }

  VerifiedWindow run(const std::vector<std::uint32_t>& order, const Tolerance& tolerance,
                     std::uint32_t pace_ns) {
    get_ready(order);
    VerifiedWindow w;
    const double deadline_s = problem_.limits.call_s + 0.05 * static_cast<double>(order.size());
    w.times = session_.run_window({order, false, pace_ns}, deadline_s);
    device_.copy(m_.captured->data(), m_.output_arena->data(), m_.output_arena->bytes());
    verify_untouched(order);
    for (std::size_t i = 0; i < order.size(); ++i) {
      w.slots.push_back(compare(m_.slots[order[i]], m_.slots[order[i]].captured, tolerance));
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
      for (const Tensor& t : m_.slots[s].captured)
        taken.emplace_back(offset_of(t), (t.bytes() + 1) / 2 * 2);
    std::sort(taken.begin(), taken.end());
    taken.emplace_back(m_.captured->bytes(), 0);
    std::vector<Range> gaps;
    std::vector<std::int64_t> starts;
    std::int64_t at = 0;
    for (const auto& [offset, bytes] : taken) {
      if (offset > at) {
        gaps.push_back({static_cast<unsigned char*>(m_.captured->data()) + at, offset - at});
        starts.push_back(at);
      }
      at = offset + bytes;
    }
    const std::vector<std::int64_t> changes = device_.find_change(gaps, word_);
    for (std::size_t i = 0; i < changes.size(); ++i)
      if (changes[i] >= 0) report_stray_write(starts[i] + changes[i], order);
    if (walled()) return;
    const Range inputs[] = {whole(*m_.input_arena)};
    if (device_.digest(inputs)[0] != input_digest_)
      throw SubmissionFault(Verdict::kOutOfBounds, "wrote into its inputs");
    if (!m_.constant_arena) return;
    const Range constants[] = {whole(*m_.constant_arena)};
    if (device_.digest(constants)[0] != constant_digest_)
      throw SubmissionFault(Verdict::kOutOfBounds, "wrote into its constants");
  }

  std::int64_t offset_of(const Tensor& captured) const {
    return static_cast<unsigned char*>(captured.data) -
           static_cast<unsigned char*>(m_.captured->data());
  }

  /// Names the tensor the stray byte belongs to or lies beside.
  [[noreturn]] void report_stray_write(std::int64_t offset,
                                       const std::vector<std::uint32_t>& order) {
    for (std::size_t s = 0; s < m_.slots.size(); ++s) {
      const bool handed_out =
          std::find(order.begin(), order.end(), static_cast<std::uint32_t>(s)) != order.end();
      for (std::size_t o = 0; o < m_.slots[s].captured.size(); ++o) {
        const Tensor& t = m_.slots[s].captured[o];
        const std::int64_t from = offset - offset_of(t);
        const std::string& output = written_[o].name;
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

  std::vector<OutputStats> compare(const Slot& slot, Tensors outputs, const Tolerance& tolerance) {
    std::vector<OutputStats> out;
    std::vector<Range> ranges;
    for (std::size_t o = 0; o < written_.size(); ++o) {
      const CompareArgs args{shape_,      static_cast<int>(o), tolerance,
                             slot.inputs, slot.expected,       outputs};
      out.push_back({written_[o].name, kernels_->compare(device_, args), 0});
      ranges.push_back({outputs[o].data, outputs[o].bytes()});
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
      for (const Tensor& t : m_.slots[s].outputs) live.push_back({t.data, t.bytes()});
    const std::vector<std::uint64_t> now = device_.digest(live);
    std::size_t at = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::uint64_t captured = 0, settled_now = 0;
      for (const OutputStats& o : w.slots[i]) {
        captured = wire::digest_chain(captured, o.digest);
        settled_now = wire::digest_chain(settled_now, now[at++]);
      }
      m_.slots[order[i]].last_digest = captured;
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
  const std::vector<TensorSpec> written_;  ///< what a slot's outputs are
  const Shape shape_;
  const std::uint64_t seed_;
  const ProblemKernels* kernels_;
  WorkbenchMemory m_;
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
  return WorkbenchMemory::kOddSlots;
}
bool Workbench::rekeys() const {
  return impl_->kernels_->rekey_capacity(impl_->shape_) > 1;
}
int Workbench::base_count() const {
  return static_cast<int>(impl_->m_.bases.size());
}
WindowResult Workbench::control_window(int calls, std::uint32_t pace_ns) {
  return impl_->control_window(calls, pace_ns);
}
void Workbench::load(const Artifact& a) {
  impl_->session_.load(a);
  impl_->session_.freeze();
}
void Workbench::set_constants(std::uint64_t seed, const CaseSpec& c) {
  impl_->set_constants(seed, c);
}
void Workbench::draw_base(int base, std::uint64_t seed, const CaseSpec& c) {
  impl_->draw_base(impl_->m_.bases.at(static_cast<std::size_t>(base)), seed, c);
}
void Workbench::assign(int slot, int base, std::uint64_t key) {
  impl_->assign(impl_->m_.slots.at(static_cast<std::size_t>(slot)),
                impl_->m_.bases.at(static_cast<std::size_t>(base)), key);
}
VerifiedWindow Workbench::run(const std::vector<std::uint32_t>& slots, const Tolerance& t,
                              std::uint32_t pace_ns) {
  return impl_->run(slots, t, pace_ns);
}
const Slot& Workbench::slot(int slot) const {
  return impl_->m_.slots.at(static_cast<std::size_t>(slot));
}
Tensors Workbench::constants() const {
  return impl_->m_.constants;
}
void Workbench::prepare_again() {
  impl_->prepare();
}
std::vector<OutputStats> Workbench::judge(int slot, Tensors outputs, const Tolerance& tolerance) {
  return impl_->compare(this->slot(slot), outputs, tolerance);
}
std::uint64_t Workbench::input_digest(int slot) {
  std::vector<Range> ranges;
  for (const Tensor& t : impl_->m_.slots.at(static_cast<std::size_t>(slot)).inputs)
    ranges.push_back({t.data, t.bytes()});
  std::uint64_t d = 0;
  for (std::uint64_t v : impl_->device_.digest(ranges)) d = wire::digest_chain(d, v);
  return d;
}
std::uint64_t Workbench::last_digest(int slot) const {
  return impl_->m_.slots.at(static_cast<std::size_t>(slot)).last_digest;
}
const std::string& Workbench::output() const {
  return impl_->session_.output();
}
void Workbench::release() {
  impl_->release();
}

int fitting_slots(Device& device, const Problem& problem, const Shape& shape, int wanted) {
  // Per slot: inputs, outputs twice (live and captured), expected.
  const std::int64_t inputs = total_bytes(views(problem.read(), shape));
  const std::int64_t outputs = total_bytes(views(problem.written(), shape));
  const std::int64_t expected = total_bytes(views(problem.expected, shape));
  const std::int64_t per_slot = inputs + 2 * outputs + expected + 8 * 4096;
  const bool cuda = device.info().backend == wire::Backend::kCuda;
  const std::int64_t budget =
      cuda ? device.info().memory_bytes / 100 * 35
           : std::min<std::int64_t>(device.info().memory_bytes / 8, std::int64_t{512} << 20);
  return static_cast<int>(std::clamp<std::int64_t>(
      budget / per_slot, 2 + WorkbenchMemory::kOddSlots, wanted + WorkbenchMemory::kOddSlots));
}

}  // namespace assay

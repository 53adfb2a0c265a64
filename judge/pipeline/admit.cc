// SPDX-License-Identifier: Apache-2.0
#include "judge/pipeline/admit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "judge/base/fault.h"
#include "judge/base/hash.h"
#include "judge/base/log.h"
#include "judge/base/paths.h"
#include "judge/check/check.h"
#include "judge/pipeline/demo.h"
#include "judge/pipeline/fakes.h"
#include "judge/run/workbench.h"

namespace assay {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The nearer of the two gates, as a multiple of where it stands.
double over(const CompareStats& s, const Noise& noise) {
  const double use = s.ok() ? std::min<double>(s.max_use, 1) : std::max<double>(s.max_use, 1.001);
  return std::max(use, noise_ratio(s, noise) / noise.max_ratio);
}

/// A copy of a list of tensors in memory of its own.
struct Copy {
  std::vector<Tensor> tensors;
  std::vector<std::unique_ptr<Buffer>> memory;

  Copy(Device& d, Tensors from) : tensors(from.begin(), from.end()) {
    for (Tensor& t : tensors) {
      memory.push_back(d.allocate(std::max<std::int64_t>(t.bytes(), 256)));
      t.data = memory.back()->data();
    }
    take(d, from);
  }
  void take(Device& d, Tensors from) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      d.copy(tensors[i].data, from[i].data, from[i].bytes());
  }
};

/// Mean and RMS over the finite ones of (at most a million of) the elements.
std::pair<float, float> moments(Device& d, const Tensor& t) {
  Tensor head = t;
  head.rank = 1;
  head.shape[0] = std::min<std::int64_t>(t.size(), 1 << 20);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(head.bytes()));
  d.synchronize();
  d.download(bytes.data(), t.data, head.bytes());
  head.data = bytes.data();
  double sum = 0, squares = 0, count = 0;
  for (std::int64_t i = 0; i < head.size(); ++i) {
    const double v = load_as_float(head, i);
    if (!std::isfinite(v)) continue;
    sum += v;
    squares += v * v;
    count += 1;
  }
  if (count == 0) return {0.0f, 0.0f};
  return {static_cast<float>(sum / count), static_cast<float>(std::sqrt(squares / count))};
}

/// All fakes on one shape.
class Trial {
 public:
  Trial(Device& device, const Problem& problem, const Shape& shape, const Artifact& artifact,
        const GradeOptions& options, std::uint64_t seed, std::vector<FakeRow>& rows)
      : device_(device),
        problem_(problem),
        bench_(device, problem, shape, session_options(device, problem, options.sandbox), 2,
               derive_seed(seed, shape.label())),
        seed_(seed),
        rows_(rows) {
    bench_.load(artifact);
  }

  void run() {
    for (const CaseSpec& c : check_cases(problem_)) {
      progress(fmt::format("admit  {}  {}  {}", problem_.id, bench_.shape().label(), c.name));
      run_case(c);
    }
    bench_.release();
  }

 private:
  static constexpr int kNow = 0, kBefore = 1;

  void run_case(const CaseSpec& c) {
    bench_.set_constants(derive_seed(seed_, "constants"), c);
    const Copy previous = answer(kBefore, c, "before");
    Copy honest = answer(kNow, c, "now");
    std::size_t row = 0;
    for (const Fake& f : fakes()) {
      for (std::size_t o = 0; o < problem_.outputs.size(); ++o) {
        const Tensor& out = honest.tensors[o];
        const auto [mean, rms] = moments(device_, out);
        f.make({device_, out, previous.tensors[o], bench_.slot(kNow).inputs, mean, rms});
        note(rows_[row], c, o, bench_.judge(kNow, honest.tensors, c.tolerance)[o].stats);
        if (c.name == "nominal" && problem_.published_tolerance)
          rows_[row].passes_published +=
              bench_.judge(kNow, honest.tensors, *problem_.published_tolerance)[o].stats.ok();
        honest.take(device_, captured(kNow));
      }
      ++row;
    }
    for (const Degradation& d : degradations()) degrade(c, d, rows_[row++]);
    if (!problem_.inouts.empty()) leave_state_alone(c, honest, rows_[row]);
  }

  Tensors captured(int slot) const { return bench_.slot(slot).captured; }

  /// The honest kernel's, judged right.
  Copy answer(int slot, const CaseSpec& c, const char* draw) {
    bench_.draw_base(0, derive_seed(seed_, bench_.shape().label() + c.name + draw), c);
    bench_.assign(slot, 0, 0);
    const VerifiedWindow w = bench_.run({static_cast<std::uint32_t>(slot)}, c.tolerance);
    if (w.wrong_call >= 0)
      throw JudgeError("{}: the naive submission is wrong at {}, case {}", problem_.id,
                       bench_.shape().label(), c.name);
    return {device_, captured(slot)};
  }

  /// The honest kernel again, on worse data than the expected answer belongs to.
  void degrade(const CaseSpec& c, const Degradation& d, FakeRow& row) {
    bench_.assign(kNow, 0, 0);
    const std::uint64_t before = bench_.input_digest(kNow);
    const Tensors inputs = bench_.slot(kNow).inputs, constants = bench_.constants();
    const auto floating = [](const Tensor& t) { return is_floating(t.dtype); };
    const bool of_inputs = std::any_of(inputs.begin(), inputs.end(), floating);
    for (const Tensor& t : of_inputs ? inputs : constants)
      if (floating(t)) d.apply(device_, t);
    if (!of_inputs) bench_.prepare_again();
    const bool same = of_inputs && bench_.input_digest(kNow) == before;
    // A sum over all outputs: an output that the worse data cannot change is no one's fault.
    CompareStats worst;
    double most = 0;
    const VerifiedWindow w = bench_.run({kNow}, c.tolerance);
    for (const OutputStats& o : w.slots[0])
      if (const double by = over(o.stats, problem_.noise); by >= most) {
        most = by;
        worst = o.stats;
      }
    note(row, c, 0, worst, same);
    if (!of_inputs) bench_.set_constants(derive_seed(seed_, "constants"), c);
  }

  /// Outputs right, state as it was handed over.
  void leave_state_alone(const CaseSpec& c, Copy& honest, FakeRow& row) {
    bench_.assign(kNow, 0, 0);
    const std::size_t in = problem_.inputs.size(), out = problem_.outputs.size();
    for (std::size_t i = 0; i < problem_.inouts.size(); ++i) {
      const Tensor &from = bench_.slot(kNow).inputs[in + i], &to = honest.tensors[out + i];
      device_.copy(to.data, from.data, to.bytes());
      note(row, c, out + i, bench_.judge(kNow, honest.tensors, c.tolerance)[out + i].stats);
      honest.take(device_, captured(kNow));
    }
  }

  /// `may_be_right`: this case has answers that are no work, or data that cannot get worse.
  void note(FakeRow& row, const CaseSpec& c, std::size_t output, const CompareStats& stats,
            bool may_be_right = false) {
    const double by = over(stats, problem_.noise);
    may_be_right = may_be_right || c.structural;
    row.cases += 1;
    if (by > 1)
      row.failed += 1;
    else if (may_be_right)
      row.right += 1;
    else
      row.passed += 1;
    if ((by <= 1 && may_be_right) || by >= row.over) return;
    row.over = by;
    row.weakest =
        fmt::format("{} {} {}", bench_.shape().label(), c.name, problem_.written()[output].name);
  }

  Device& device_;
  const Problem& problem_;
  Workbench bench_;
  const std::uint64_t seed_;
  std::vector<FakeRow>& rows_;
};

std::vector<FakeRow> empty_rows(const Problem& p) {
  std::vector<FakeRow> rows;
  const auto add = [&](std::string_view name, std::string_view what) {
    FakeRow r;
    r.name = name;
    r.what = what;
    r.over = kNever;
    rows.push_back(std::move(r));
  };
  for (const Fake& f : fakes()) add(f.name, f.what);
  for (const Degradation& d : degradations()) add(d.name, d.what);
  if (!p.inouts.empty()) add("state_kept", "state left as it was handed over");
  return rows;
}

struct Honest {
  std::string name;
  bool peer;
  std::filesystem::path folder;
};

/// The shipped submissions for this language, the naive ones first, and the peer.
std::vector<Honest> honest_submissions(const Problem& p, Language language) {
  std::vector<Honest> out;
  for (const Shipped& s : shipped_submissions(language))
    if (s.problem == p.id) out.push_back({s.name, false, s.folder});
  std::stable_partition(out.begin(), out.end(),
                        [](const Honest& h) { return h.name.rfind("naive_", 0) == 0; });
  if (out.empty() || out.front().name.rfind("naive_", 0) != 0)
    throw UsageError("{} ships no naive submission for this device under kernels/{}", p.id, p.id);
  const auto peer = home_dir() / "benchmarks" / "peers" / p.id;
  if (std::filesystem::exists(peer / (language == Language::kCpp ? "kernel.cpp" : "kernel.cu")))
    out.push_back({"library peer", true, peer});
  return out;
}

HonestRow row_of(const Record& r, const Honest& h, const Noise& noise) {
  HonestRow row;
  row.name = h.name;
  row.peer = h.peer;
  row.verdict = r.verdict;
  row.message = r.message;
  for (const CaseResult& c : r.check.cases)
    if (const double by = over(c.stats, noise); by > row.over) {
      row.over = by;
      row.tightest = fmt::format("{} {} {}", c.shape, c.name, c.output);
    }
  for (const ShapeBench& s : r.bench.shapes) row.sol = std::max(row.sol, s.sol);
  return row;
}

void object(AdmitReport& report) {
  for (const FakeRow& f : report.fakes) {
    if (f.passed > 0)
      report.objections.push_back(fmt::format("{} passes {} of {} cases, {} among them", f.name,
                                              f.passed, f.cases, f.weakest));
    if (f.failed == 0) report.objections.push_back(fmt::format("{} never fails", f.name));
  }
  for (const HonestRow& h : report.honest) {
    if (h.verdict != Verdict::kAccepted)
      report.objections.push_back(
          fmt::format("{} is not accepted ({}): {}", h.name, name(h.verdict), h.message));
    if (h.peer && h.sol >= 1)
      report.objections.push_back(
          fmt::format("the library peer reaches {:.2f} of the floor: the floor is too low", h.sol));
  }
}

}  // namespace

double AdmitReport::honest_over() const {
  double most = 0;
  for (const HonestRow& h : honest) most = std::max(most, h.over);
  return most;
}

double AdmitReport::fake_over() const {
  double least = kNever;
  for (const FakeRow& f : fakes) least = std::min(least, f.over);
  return least;
}

AdmitReport admit(Device& device, const Problem& problem, const Ceilings& ceilings,
                  const GradeOptions& options) {
  const Language language =
      device.info().backend == wire::Backend::kCpu ? Language::kCpp : Language::kCuda;
  const std::vector<Honest> honest = honest_submissions(problem, language);
  AdmitReport report;
  report.problem_id = problem.id;
  report.fakes = empty_rows(problem);
  BuildOptions build_options;
  build_options.sandbox = options.sandbox;
  build_options.deadline_s = problem.limits.build_s;
  build_options.arch = device.info().arch;
  try {
    const Artifact naive = build(read_submission(honest.front().folder, language), build_options);
    const std::uint64_t seed = options.seed.value_or(random_u64());
    for (const Shape& s : chosen_shapes(problem, device, options.shapes))
      Trial(device, problem, s, naive, options, seed, report.fakes).run();
  } catch (const SubmissionFault& f) {
    throw JudgeError("{}: the naive submission failed: {}", problem.id, f.what());
  }
  for (const Honest& h : honest)
    report.honest.push_back(
        row_of(grade(device, problem, read_submission(h.folder, language), ceilings, options), h,
               problem.noise));
  object(report);
  clear_progress();
  return report;
}

}  // namespace assay

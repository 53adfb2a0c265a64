// SPDX-License-Identifier: Apache-2.0
#include "judge/pipeline/grade.h"

#include <ctime>

#include "judge/audit/finding.h"
#include "judge/base/clock.h"
#include "judge/base/hash.h"
#include "judge/base/log.h"
#include "judge/build/build.h"
#include "judge/check/check.h"
#include "judge/run/workbench.h"

namespace assay {
namespace {

std::string utc_now() {
  const std::time_t t = std::time(nullptr);
  std::tm tm{};
  gmtime_r(&t, &tm);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
  return text;
}

/// One shape, start to end, in one runner process.
void grade_shape(Device& device, const Problem& problem, const Shape& shape,
                 const Artifact& artifact, const Ceilings& measured, const GradeOptions& options,
                 Record& record) {
  const SessionOptions session = session_options(device, problem, options.sandbox);
  const int wanted = options.bench ? wanted_slots(device, problem, shape, measured) : 2;
  const int slots = fitting_slots(device, problem, shape, wanted);
  Workbench bench(device, problem, shape, session, slots, derive_seed(record.seed, shape.label()));
  try {
    Control control;
    if (options.bench) control = measure_control(bench);
    bench.load(artifact);
    if (options.check) check_shape(bench, record.seed, record.check);
    if (options.bench)
      bench_shape(bench, control, measured, datasheet_peaks(device.info()), options.bench_options,
                  record.seed, record.bench);
    bench.release();
  } catch (...) {
    record.output += bench.output();
    throw;
  }
  record.output += bench.output();
}

/// Findings of all stages in one list, and what they make of the verdict.
void conclude(Record& r) {
  r.findings.insert(r.findings.end(), r.check.findings.begin(), r.check.findings.end());
  r.findings.insert(r.findings.end(), r.bench.findings.begin(), r.bench.findings.end());
  r.audit_verdict = proposed_verdict(r.findings);
  if (r.verdict != Verdict::kAccepted || worst(r.findings) != Severity::kReject) return;
  r.verdict = Verdict::kRefused;
  for (const Finding& f : r.findings)
    if (rule_of(f.code).severity == Severity::kReject) {
      r.message = f.code + ": " + f.evidence;
      break;
    }
}

Artifact build_for(const Device& device, const Problem& problem, const Submission& s,
                   SandboxKind sandbox, Record& r) {
  progress(fmt::format("build  {}", s.label));
  BuildOptions options;
  options.sandbox = sandbox;
  options.deadline_s = problem.limits.build_s;
  options.arch = device.info().arch;
  const double begin_us = now_us();
  const Artifact a = build(s, options);
  r.build_s = (now_us() - begin_us) * 1e-6;
  r.artifact_sha256 = a.sha256;
  r.compiler = a.compiler;
  r.build_command = a.command;
  r.build_log = a.log;
  return a;
}

}  // namespace

std::vector<Shape> chosen_shapes(const Problem& p, const Device& d,
                                 const std::vector<int>& wanted) {
  const std::vector<Shape>& all = p.shapes_for(d.info().backend);
  if (wanted.empty()) return all;
  std::vector<Shape> out;
  for (int i : wanted) {
    if (i < 0 || static_cast<std::size_t>(i) >= all.size())
      throw UsageError("shape {} does not exist: {} has shapes 0 to {}", i, p.id, all.size() - 1);
    out.push_back(all[static_cast<std::size_t>(i)]);
  }
  return out;
}

SessionOptions session_options(const Device& device, const Problem& problem, SandboxKind sandbox) {
  SessionOptions session;
  session.sandbox = sandbox;
  session.threads = device.info().backend == wire::Backend::kCpu ? device.info().units : 4;
  session.memory_bytes = problem.limits.memory_mb << 20;
  return session;
}

Record grade(Device& device, const Problem& problem, const Submission& submission,
             const Ceilings& measured, const GradeOptions& options) {
  Record r;
  r.created_at = utc_now();
  r.kind = options.check && options.bench ? "grade" : options.bench ? "bench" : "check";
  r.problem_id = problem.id;
  r.problem_version = problem.version;
  r.submission = submission;
  r.device = device.info();
  r.ceilings = measured;
  r.assay_version = ASSAY_VERSION;
  r.seed = options.seed.value_or(random_u64());
  const std::vector<Shape> shapes = chosen_shapes(problem, device, options.shapes);
  for (const Shape& s : shapes) r.shapes.push_back(s.label());
  double begin_us = now_us();
  try {
    r.sandbox = name(resolve_sandbox(options.sandbox));
    const Artifact artifact = build_for(device, problem, submission, options.sandbox, r);
    begin_us = now_us();
    for (const Shape& s : shapes) grade_shape(device, problem, s, artifact, measured, options, r);
    summarise(r.bench);
    r.verdict = Verdict::kAccepted;
  } catch (const SubmissionFault& f) {
    // A submission that dies may have taken the device with it; then the fault is not its to carry
    // alone.
    if (!device.healthy()) {
      r.verdict = Verdict::kInternalError;
      r.message = fmt::format("the device is not healthy after: {}", f.what());
    } else {
      r.verdict = f.verdict();
      r.message = f.what();
    }
  } catch (const JudgeError& e) {
    r.verdict = Verdict::kInternalError;
    r.message = e.what();
  }
  r.wall_s = (now_us() - begin_us) * 1e-6;
  conclude(r);
  clear_progress();
  return r;
}

}  // namespace assay

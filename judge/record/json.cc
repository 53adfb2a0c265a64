// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "judge/base/text.h"
#include "judge/record/fields.h"
#include "judge/record/record.h"

namespace assay {
namespace {

/// JSON has no NaN or infinity: they become text, so that they are not lost.
Json number(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}

Json shape_json(const ShapeBench& s) {
  Json j = {{"shape", s.shape}};
  for (const auto& f : kShapeFigures) j[f.name] = number(s.*f.member);
  for (const auto& f : kShapeCounts) j[f.name] = s.*f.member;
  return j;
}

Json case_json(const CaseResult& c) {
  Json j = {
      {"shape", c.shape}, {"seed_index", c.seed_index}, {"case", c.name}, {"output", c.output}};
  for (const auto& f : kCaseCounts) j[f.name] = c.stats.*f.member;
  for (const auto& f : kCaseFigures) j[f.name] = number(c.stats.*f.member);
  for (const auto& f : kCaseValues) j[f.name] = number(c.stats.*f.member);
  j["noise_ratio"] = number(c.noise_ratio);
  j["input_digest"] = hex(c.input_digest);
  j["output_digest"] = hex(c.output_digest);
  return j;
}

Json finding_json(const Finding& f) {
  return {{"code", f.code},
          {"severity", name(severity_of(f))},
          {"shape", f.shape},
          {"evidence", f.evidence}};
}

Json device_json(const DeviceInfo& d) {
  return {{"backend", d.backend == wire::Backend::kCpu ? "cpu" : "cuda"},
          {"name", d.name},
          {"key", d.key},
          {"driver", d.driver},
          {"runtime", d.runtime},
          {"memory_bytes", d.memory_bytes},
          {"cache_bytes", d.cache_bytes},
          {"units", d.units},
          {"arch", d.arch}};
}

Json submission_json(const Submission& s, bool with_source) {
  Json j = {{"label", s.label}, {"language", name(s.language)}, {"sha256", s.sha256}};
  for (const SourceFile& f : s.files) {
    Json file = {{"path", f.path}, {"bytes", f.bytes.size()}};
    if (with_source) file["source"] = f.bytes;
    j["files"].push_back(file);
  }
  return j;
}

template <class T, class F>
Json list(const std::vector<T>& items, F&& make) {
  Json j = Json::array();
  for (const T& item : items) j.push_back(make(item));
  return j;
}

}  // namespace

Severity severity_of(const Finding& f) {
  for (const FindingRule& rule : finding_rules())
    if (rule.code == f.code) return rule.severity;
  return Severity::kNote;
}

Json to_json(const Record& r, bool with_source) {
  Json j = {{"id", r.id},
            {"created_at", r.created_at},
            {"kind", r.kind},
            {"problem", r.problem_id},
            {"problem_version", r.problem_version},
            {"verdict", name(r.verdict)},
            {"message", r.message},
            {"audit_verdict", r.audit_verdict},
            {"frac", number(r.bench.frac)},
            {"sol", number(r.bench.sol)},
            {"seed", hex(r.seed)}};
  j["findings"] = list(r.findings, finding_json);
  j["shapes"] = list(r.bench.shapes, shape_json);
  j["cases"] = list(r.check.cases, case_json);
  j["submission"] = submission_json(r.submission, with_source);
  j["device"] = device_json(r.device);
  j["ceilings"] = r.ceilings;
  j["graded_shapes"] = r.shapes;
  j["sandbox"] = r.sandbox;
  j["compiler"] = r.compiler;
  j["build_command"] = r.build_command;
  j["build_log"] = r.build_log;
  j["artifact_sha256"] = r.artifact_sha256;
  j["assay_version"] = r.assay_version;
  j["output"] = r.output;
  j["wall_s"] = r.wall_s;
  j["build_s"] = r.build_s;
  return j;
}

}  // namespace assay

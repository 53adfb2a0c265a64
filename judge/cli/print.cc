// SPDX-License-Identifier: Apache-2.0
#include "judge/cli/print.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "judge/base/fault.h"
#include "judge/base/text.h"

namespace assay::cli {
namespace {

void write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw JudgeError("cannot write the result: {}", std::strerror(errno));
}

bool numeric(const std::string& cell) {
  return cell.empty() || cell == "-" || std::isdigit(static_cast<unsigned char>(cell[0])) != 0;
}

}  // namespace

void print_line(const std::string& line) {
  write(line + "\n");
}

void print_json(const Json& json) {
  write(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return;
  const std::size_t columns = rows[0].size();
  std::vector<std::size_t> width(columns, 0);
  std::vector<bool> right(columns, rows.size() > 1);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      width[c] = std::max(width[c], rows[r][c].size());
      if (r > 0 && !numeric(rows[r][c])) right[c] = false;
    }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::string pad(width[c] - row[c].size(), ' ');
      line += right[c] ? pad + row[c] : row[c] + pad;
      if (c + 1 < columns) line += "  ";
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    print_line(line);
  }
}

std::string time_text(double us) {
  if (!std::isfinite(us) || us <= 0) return "-";
  const bool ms = us >= 1000;
  const double v = ms ? us / 1000 : us;
  const int decimals = v >= 100 ? 0 : v >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}", v, decimals, ms ? "ms" : "us");
}

std::string share_text(double share) {
  return std::isfinite(share) && share > 0 ? fmt::format("{:.4f}", share) : "-";
}

std::string finding_codes(const std::vector<Finding>& findings, const std::string& shape) {
  std::vector<std::string> codes;
  for (const Finding& f : findings) {
    if (!shape.empty() && !f.shape.empty() && f.shape != shape) continue;
    if (rule_of(f.code).severity == Severity::kNote) continue;
    if (std::find(codes.begin(), codes.end(), f.code) == codes.end()) codes.push_back(f.code);
  }
  return join(codes);
}

void print_record(const Record& r) {
  print_line(
      fmt::format("{}  {}  {}  on {}", r.kind, r.problem_id, r.submission.label, r.device.name));
  print_line(
      fmt::format("verdict   {}{}", name(r.verdict), r.message.empty() ? "" : ": " + r.message));
  if (!r.check.cases.empty()) {
    double worst = 0;
    for (const CaseResult& c : r.check.cases) worst = std::max(worst, c.noise_ratio);
    print_line(fmt::format("checked   {} outputs; largest error {:.2f} times the noise floor",
                           r.check.cases.size(), worst));
  }
  if (!r.bench.shapes.empty()) {
    print_line("");
    std::vector<std::vector<std::string>> rows = {
        {"shape", "median", "p5", "p95", "wall", "frac", "sol", "floor", "windows"}};
    for (const ShapeBench& s : r.bench.shapes)
      rows.push_back({s.shape, time_text(s.median_us), time_text(s.p5_us), time_text(s.p95_us),
                      time_text(s.wall_us), share_text(s.frac), share_text(s.sol),
                      time_text(s.floor_us), std::to_string(s.windows)});
    print_table(rows);
    print_line(fmt::format("\ngeomean   frac {}  sol {}", share_text(r.bench.frac),
                           share_text(r.bench.sol)));
  }
  for (const Finding& f : r.findings)
    print_line(fmt::format("{:<9} {}{}: {}", name(rule_of(f.code).severity), f.code,
                           f.shape.empty() ? "" : " (" + f.shape + ")", f.evidence));
  if (!r.output.empty()) {
    std::string shown = r.output.substr(0, 400);
    for (char& c : shown)
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = ' ';
    print_line("printed   " + shown);
  }
  print_line(fmt::format("seed      {:016x}   {:.1f} s, build {:.1f} s, sandbox {}", r.seed,
                         r.wall_s, r.build_s, r.sandbox));
  if (r.id > 0) print_line(fmt::format("record    {}   (assay replay {})", r.id, r.id));
}

}  // namespace assay::cli

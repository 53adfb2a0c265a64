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

/// Bytes of the UTF-8 character at text[i]; 0 if there is none, or it is a control character.
std::size_t character(const std::string& text, std::size_t i) {
  const auto at = [&](std::size_t k) {
    return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u;
  };
  const unsigned first = at(i);
  if (first < 0x80) return first == '\n' || first == '\t' || (first >= 0x20 && first != 0x7f);
  const std::size_t bytes = first >= 0xf0 && first <= 0xf4   ? 4
                            : first >= 0xe0 && first <= 0xef ? 3
                            : first >= 0xc2 && first <= 0xdf ? 2
                                                             : 0;
  for (std::size_t k = 1; k < bytes; ++k)
    if ((at(i + k) & 0xc0) != 0x80) return 0;
  return first == 0xc2 && at(i + 1) < 0xa0 ? 0 : bytes;  // U+0080 to U+009F
}

/// How many characters a terminal shows.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool numeric(const std::string& cell) {
  return cell.empty() || cell == "-" || std::isdigit(static_cast<unsigned char>(cell[0])) != 0;
}

}  // namespace

std::string harmless(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = character(text, i);
    out += bytes == 0 ? "?" : text.substr(i, bytes);
    i += std::max<std::size_t>(bytes, 1);
  }
  return out;
}

std::string one_line(const std::string& text) {
  std::string out;
  for (const char c : harmless(text)) {
    const bool space = c == '\n' || c == '\t' || c == ' ';
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

void print_text(const std::string& text) {
  write(harmless(text));
}

void print_line(const std::string& line) {
  print_text(line + "\n");
}

bool& json_was_printed() {
  static bool printed = false;
  return printed;
}
bool json_printed() {
  return json_was_printed();
}

void print_json(const Json& json) {
  json_was_printed() = true;
  write(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return;
  const std::size_t columns = rows[0].size();
  std::vector<std::size_t> width(columns, 0);
  std::vector<bool> right(columns, rows.size() > 1);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      width[c] = std::max(width[c], width_of(rows[r][c]));
      if (r > 0 && !numeric(rows[r][c])) right[c] = false;
    }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::string pad(width[c] - width_of(row[c]), ' ');
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
    if (severity_of(f) == Severity::kNote) continue;
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
        {"shape", "median", "p5", "p95", "wall", "frac", "sol", "floor", "physics", "windows"}};
    for (const ShapeBench& s : r.bench.shapes)
      rows.push_back({s.shape, time_text(s.median_us), time_text(s.p5_us), time_text(s.p95_us),
                      time_text(s.wall_us), share_text(s.frac), share_text(s.sol),
                      time_text(s.floor_us), time_text(s.physics_us), std::to_string(s.windows)});
    print_table(rows);
    print_line(fmt::format("\ngeomean   frac {}  sol {}", share_text(r.bench.frac),
                           share_text(r.bench.sol)));
  }
  for (const Finding& f : r.findings)
    print_line(fmt::format("{:<9} {}{}: {}", name(severity_of(f)), f.code,
                           f.shape.empty() ? "" : " (" + f.shape + ")", f.evidence));
  if (finding_codes(r.findings).find("faster_than_measured") != std::string::npos)
    print_line(
        "          was the machine busy when its rates were measured? assay probe does it again");
  if (!r.output.empty()) {
    print_line("printed   " + one_line(r.output.substr(0, 400)));
  }
  print_line(fmt::format("seed      {:016x}   {:.1f} s, build {:.1f} s, sandbox {}", r.seed,
                         r.wall_s, r.build_s, r.sandbox));
  if (r.id == 0) return;
  const bool replays = r.kind != "bench";
  print_line(fmt::format("record    {}{}", r.id,
                         replays ? fmt::format("   (assay replay {})", r.id) : ""));
}

}  // namespace assay::cli

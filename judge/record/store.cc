// SPDX-License-Identifier: Apache-2.0
#include "judge/record/store.h"

#include <charconv>

#include "judge/base/paths.h"
#include "judge/base/text.h"
#include "judge/record/fields.h"
#include "judge/record/migrations.h"
#include "judge/record/sqlite.h"

namespace assay {
namespace {

using sqlite::Database;
using sqlite::Statement;
using sqlite::Transaction;

std::uint64_t from_hex(const std::string& s) {
  std::uint64_t v = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v, 16);
  if (error != std::errc() || end != s.data() + s.size())
    throw JudgeError("'{}' is not a 64-bit number", s);
  return v;
}

template <class T>
std::vector<std::string> names(const T& fields) {
  std::vector<std::string> out;
  for (const auto& f : fields) out.emplace_back(f.name);
  return out;
}
std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<std::string> kRecordText = {"created_at",
                                              "kind",
                                              "problem_id",
                                              "problem_version",
                                              "verdict",
                                              "message",
                                              "audit_verdict",
                                              "seed",
                                              "label",
                                              "language",
                                              "submission_sha256",
                                              "artifact_sha256",
                                              "compiler",
                                              "build_command",
                                              "build_log",
                                              "backend",
                                              "device_name",
                                              "device_key",
                                              "driver",
                                              "runtime",
                                              "ceilings",
                                              "sandbox",
                                              "assay_version",
                                              "shapes",
                                              "output"};
const std::vector<std::string> kRecordNumbers = {"memory_bytes", "cache_bytes", "units", "arch"};
const std::vector<std::string> kRecordFigures = {"frac", "sol", "wall_s", "build_s"};

std::string insert(const std::string& table, const std::vector<std::string>& list) {
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table, join(list),
                     join(std::vector<std::string>(list.size(), "?")));
}
std::string select(const std::string& table, const std::vector<std::string>& list,
                   const std::string& rest) {
  return fmt::format("SELECT {} FROM {} {}", join(list), table, rest);
}

const char* backend_name(wire::Backend b) {
  return b == wire::Backend::kCpu ? "cpu" : "cuda";
}

// ---- the record's own row --------------------------------------------------------------------

void put_record(const Database& db, const Record& r) {
  Statement s(db, insert("record", kRecordText + kRecordNumbers + kRecordFigures));
  s << r.created_at << r.kind << r.problem_id << r.problem_version << name(r.verdict) << r.message
    << r.audit_verdict << hex(r.seed) << r.submission.label << name(r.submission.language)
    << r.submission.sha256 << r.artifact_sha256 << r.compiler << r.build_command << r.build_log
    << backend_name(r.device.backend) << r.device.name << r.device.key << r.device.driver
    << r.device.runtime << Json(r.ceilings).dump() << r.sandbox << r.assay_version
    << Json(r.shapes).dump() << r.output;
  s << r.device.memory_bytes << r.device.cache_bytes << r.device.units << r.device.arch;
  s << r.bench.frac << r.bench.sol << r.wall_s << r.build_s;
  s.step();
}

void read_columns(Statement& s, Record& r) {
  std::string verdict, seed, language, backend, ceilings, shapes;
  s >> r.id;
  s >> r.created_at >> r.kind >> r.problem_id >> r.problem_version >> verdict >> r.message >>
      r.audit_verdict >> seed >> r.submission.label >> language >> r.submission.sha256 >>
      r.artifact_sha256 >> r.compiler >> r.build_command >> r.build_log >> backend >>
      r.device.name >> r.device.key >> r.device.driver >> r.device.runtime >> ceilings >>
      r.sandbox >> r.assay_version >> shapes >> r.output;
  s >> r.device.memory_bytes >> r.device.cache_bytes >> r.device.units >> r.device.arch;
  s >> r.bench.frac >> r.bench.sol >> r.wall_s >> r.build_s;
  r.verdict = verdict_from_name(verdict);
  r.seed = from_hex(seed);
  r.submission.language = language == "cuda" ? Language::kCuda : Language::kCpp;
  r.device.backend = backend == "cuda" ? wire::Backend::kCuda : wire::Backend::kCpu;
  r.ceilings = Json::parse(ceilings).get<Ceilings>();
  r.shapes = Json::parse(shapes).get<std::vector<std::string>>();
}

Record read_record(Statement& s) {
  Record r;
  try {
    read_columns(s, r);
  } catch (const std::exception& e) {
    throw JudgeError("record {} is damaged: {}", r.id, e.what());
  }
  return r;
}

// ---- its children ----------------------------------------------------------------------------

const std::vector<std::string> kChild = {"record_id", "position"};
const std::vector<std::string> kSource = {"path", "bytes"};
const std::vector<std::string> kFinding = {"code", "shape", "evidence"};
const std::vector<std::string> kCaseHead = {"shape",        "seed_index",    "name",       "output",
                                            "input_digest", "output_digest", "noise_ratio"};

std::vector<std::string> shape_columns() {
  return std::vector<std::string>{"shape"} + names(kShapeFigures) + names(kShapeCounts);
}
std::vector<std::string> case_columns() {
  return kCaseHead + names(kCaseCounts) + names(kCaseFigures) + names(kCaseValues);
}

void put_source(Statement& s, const SourceFile& f) {
  (s << f.path).blob(f.bytes);
}
void put_finding(Statement& s, const Finding& f) {
  s << f.code << f.shape << f.evidence;
}
void put_shape(Statement& s, const ShapeBench& b) {
  s << b.shape;
  for (const auto& f : kShapeFigures) s << b.*f.member;
  for (const auto& f : kShapeCounts) s << b.*f.member;
}
void put_case(Statement& s, const CaseResult& c) {
  s << c.shape << c.seed_index << c.name << c.output << hex(c.input_digest) << hex(c.output_digest)
    << c.noise_ratio;
  for (const auto& f : kCaseCounts) s << c.stats.*f.member;
  for (const auto& f : kCaseFigures) s << c.stats.*f.member;
  for (const auto& f : kCaseValues) s << static_cast<double>(c.stats.*f.member);
}

SourceFile read_source(Statement& s) {
  SourceFile f;
  s >> f.path >> f.bytes;
  return f;
}
Finding read_finding(Statement& s) {
  Finding f;
  s >> f.code >> f.shape >> f.evidence;
  return f;
}
ShapeBench read_shape(Statement& s) {
  ShapeBench b;
  s >> b.shape;
  for (const auto& f : kShapeFigures) s >> b.*f.member;
  for (const auto& f : kShapeCounts) s >> b.*f.member;
  return b;
}
CaseResult read_case(Statement& s) {
  CaseResult c;
  std::string input, output;
  s >> c.shape >> c.seed_index >> c.name >> c.output >> input >> output >> c.noise_ratio;
  c.input_digest = from_hex(input);
  c.output_digest = from_hex(output);
  for (const auto& f : kCaseCounts) s >> c.stats.*f.member;
  for (const auto& f : kCaseFigures) s >> c.stats.*f.member;
  for (const auto& f : kCaseValues) s >> c.stats.*f.member;
  return c;
}

template <class T>
void put_children(const Database& db, std::int64_t id, const std::string& table,
                  const std::vector<std::string>& list, const std::vector<T>& items,
                  void (*put)(Statement&, const T&)) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    Statement s(db, insert(table, kChild + list));
    s << id << static_cast<std::int64_t>(i);
    put(s, items[i]);
    s.step();
  }
}
template <class T>
std::vector<T> read_children(const Database& db, std::int64_t id, const std::string& table,
                             const std::vector<std::string>& list, T (*read)(Statement&)) {
  Statement s(db, select(table, list, "WHERE record_id = ? ORDER BY position"));
  s << id;
  std::vector<T> out;
  while (s.step()) out.push_back(read(s));
  return out;
}

}  // namespace

class Store::Impl {
 public:
  explicit Impl(const std::filesystem::path& path) : db(path) {
    refuse_foreign(path);  // before anything is written to it
    db.run_when_free("PRAGMA journal_mode = WAL");
    db.run("PRAGMA synchronous = FULL");  // a record is rare and dear: it outlives a power cut
    db.run("PRAGMA foreign_keys = ON");
    migrate(path);
  }

  Database db;

 private:
  /// Returns the version of a file that is ours, 0 if it is empty.
  int refuse_foreign(const std::filesystem::path& path) const {
    const int known = static_cast<int>(migrations().size());
    int version = 0, tables = 0;
    Statement s(db,
                "SELECT user_version, (SELECT count(*) FROM sqlite_schema) "
                "FROM pragma_user_version");
    if (s.step()) s >> version >> tables;
    if (version > known)
      throw JudgeError(
          "cannot write {}: a newer Assay made it (version {}, this one knows {}); "
          "update, or set ASSAY_STATE",
          path.string(), version, known);
    if (version == 0 && tables > 0)
      throw JudgeError("cannot write {}: it is another program's database; set ASSAY_STATE",
                       path.string());
    return version;
  }

  /// Each version is reached from the one before it, all in one transaction. The version is written
  /// even where it stays: what cannot be written is to be found now, not after an hour of grading.
  void migrate(const std::filesystem::path& path) {
    Transaction t(db);
    for (auto v = static_cast<std::size_t>(refuse_foreign(path)); v < migrations().size(); ++v)
      db.run(migrations()[v]);
    db.run(fmt::format("PRAGMA user_version = {}", migrations().size()));
    t.commit();
  }
};

Store::Store(const std::filesystem::path& database) : impl_(std::make_unique<Impl>(database)) {}
Store::~Store() = default;

std::int64_t Store::add(const Record& r) {
  Database& db = impl_->db;
  Transaction t(db);
  put_record(db, r);
  const std::int64_t id = db.last_id();
  put_children(db, id, "source_file", kSource, r.submission.files, put_source);
  put_children(db, id, "shape_result", shape_columns(), r.bench.shapes, put_shape);
  put_children(db, id, "case_result", case_columns(), r.check.cases, put_case);
  put_children(db, id, "finding", kFinding, r.findings, put_finding);
  t.commit();
  return id;
}

Record Store::get(std::int64_t id) const {
  const Database& db = impl_->db;
  Statement s(db,
              select("record",
                     std::vector<std::string>{"id"} + kRecordText + kRecordNumbers + kRecordFigures,
                     "WHERE id = ?"));
  s << id;
  if (!s.step()) throw UsageError("there is no record {}; `assay records` lists them", id);
  Record r = read_record(s);
  r.submission.files = read_children(db, id, "source_file", kSource, read_source);
  r.bench.shapes = read_children(db, id, "shape_result", shape_columns(), read_shape);
  r.check.cases = read_children(db, id, "case_result", case_columns(), read_case);
  r.findings = read_children(db, id, "finding", kFinding, read_finding);
  return r;
}

std::vector<Record> Store::list(int limit) const {
  Statement s(impl_->db,
              select("record",
                     std::vector<std::string>{"id"} + kRecordText + kRecordNumbers + kRecordFigures,
                     "ORDER BY id DESC LIMIT ?"));
  s << limit;
  std::vector<Record> out;
  while (s.step()) out.push_back(read_record(s));
  return out;
}

std::optional<Ceilings> Store::ceilings(const std::string& hardware_key) const {
  Statement s(impl_->db, "SELECT rate, per_s FROM ceiling WHERE hardware_key = ?");
  s << hardware_key;
  Ceilings c;
  while (s.step()) {
    std::string rate;
    double per_s = 0;
    s >> rate >> per_s;
    c[rate] = per_s;
  }
  if (c.empty()) return std::nullopt;
  return c;
}

void Store::put_ceilings(const std::string& hardware_key, const Ceilings& c) {
  Database& db = impl_->db;
  Transaction t(db);
  Statement remove(db, "DELETE FROM ceiling WHERE hardware_key = ?");
  remove << hardware_key;
  remove.step();
  for (const auto& [rate, per_s] : c) {
    Statement s(db, "INSERT INTO ceiling (hardware_key, rate, per_s) VALUES (?, ?, ?)");
    s << hardware_key << rate << per_s;
    s.step();
  }
  t.commit();
}

std::filesystem::path default_database() {
  return state_dir() / "assay.db";
}

}  // namespace assay

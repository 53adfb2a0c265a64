// SPDX-License-Identifier: Apache-2.0
#include "judge/record/store.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/resource.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <fstream>
#include <thread>

#include "judge/base/fault.h"
#include "judge/base/paths.h"
#include "judge/record/fields.h"
#include "judge/record/migrations.h"
#include "judge/record/sqlite.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::string any_text() {
  return *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
}
double any_double() {
  return *rc::gen::element(0.0, 1.5, -3e300, 1e-310, std::nan(""), INFINITY, -INFINITY);
}
std::int64_t any_integer() {
  return *rc::gen::arbitrary<std::int64_t>();
}
std::uint64_t any_bits() {
  return *rc::gen::arbitrary<std::uint64_t>();
}

ShapeBench any_shape() {
  ShapeBench s;
  s.shape = any_text();
  for (const auto& f : kShapeFigures) s.*f.member = any_double();
  for (const auto& f : kShapeCounts) s.*f.member = *rc::gen::arbitrary<int>();
  return s;
}
CaseResult any_case() {
  CaseResult c;
  c.shape = any_text();
  c.seed_index = *rc::gen::arbitrary<int>();
  c.name = any_text();
  c.output = any_text();
  for (const auto& f : kCaseCounts) c.stats.*f.member = any_integer();
  for (const auto& f : kCaseFigures) c.stats.*f.member = any_double();
  for (const auto& f : kCaseValues) c.stats.*f.member = static_cast<float>(any_double());
  c.noise_ratio = any_double();
  c.input_digest = any_bits();
  c.output_digest = any_bits();
  return c;
}

Record any_record() {
  Record r;
  for (std::string* text :
       {&r.created_at, &r.kind, &r.problem_id, &r.problem_version, &r.message, &r.audit_verdict,
        &r.submission.label, &r.submission.sha256, &r.artifact_sha256, &r.compiler,
        &r.build_command, &r.build_log, &r.device.name, &r.device.key, &r.device.driver,
        &r.device.runtime, &r.sandbox, &r.assay_version, &r.output})
    *text = any_text();
  for (double* figure : {&r.bench.frac, &r.bench.sol, &r.wall_s, &r.build_s})
    *figure = any_double();
  r.verdict = *rc::gen::element(Verdict::kAccepted, Verdict::kRefused, Verdict::kInternalError);
  r.seed = any_bits();
  r.submission.language = *rc::gen::element(Language::kCpp, Language::kCuda);
  r.device.backend = *rc::gen::element(wire::Backend::kCpu, wire::Backend::kCuda);
  r.device.memory_bytes = any_integer();
  r.device.cache_bytes = any_integer();
  r.device.units = *rc::gen::arbitrary<int>();
  r.device.arch = *rc::gen::arbitrary<int>();
  r.ceilings = {{"read", 1.25e12}, {"fp8", *rc::gen::element(1e15, 1.0 / 3)}};
  r.shapes = {"M=1 N=2", "M=3 N=4"};
  const int n = *rc::gen::inRange(0, 4);
  for (int i = 0; i < n; ++i) {
    r.submission.files.push_back({std::to_string(i) + ".cpp", any_text()});
    r.bench.shapes.push_back(any_shape());
    r.check.cases.push_back(any_case());
    r.findings.push_back(
        {*rc::gen::element("content_memo", "unknown_code"), any_text(), any_text()});
  }
  return r;
}

/// Every byte of it, text that is no UTF-8 included.
std::string all_of(const Record& r) {
  return to_json(r, true).dump(1, ' ', true, Json::error_handler_t::replace);
}

TEST(Store, ARecordComesBackAsItWas) {
  const TempDir dir;
  Store store(dir.path() / "assay.db");
  EXPECT_TRUE(rc::check([&] {
    Record r = any_record();
    r.id = store.add(r);
    const Record back = store.get(r.id);
    RC_ASSERT(all_of(back) == all_of(r));
    RC_ASSERT(back.check.digest() == r.check.digest());
    RC_ASSERT(back.submission.files.size() == r.submission.files.size());
    for (std::size_t i = 0; i < r.submission.files.size(); ++i)
      RC_ASSERT(back.submission.files[i].bytes == r.submission.files[i].bytes);
  }));
}

/// Writing and reading in the same wrong order would agree with each other.
TEST(Store, EveryColumnHoldsWhatItsNameSays) {
  const TempDir dir;
  const fs::path path = dir.path() / "assay.db";
  Record r;
  r.problem_version = "version";
  r.submission.sha256 = "submission";
  r.device.driver = "driver";
  r.seed = 0xfedcba9876543210;
  r.sandbox = "bwrap";
  r.build_s = 2.5;
  r.submission.files = {{"a.cpp", "source"}};
  r.bench.shapes.resize(2);
  r.bench.shapes[1].p95_us = 95;
  r.check.cases.resize(1);
  r.check.cases[0].stats.max_rel = 0.25;
  r.check.cases[0].output_digest = 0xffffffffffffffff;
  r.findings = {{"content_memo", "M=1", "seen"}};
  Store(path).add(r);
  const sqlite::Database db(path);
  const auto one = [&](const std::string& sql) {
    sqlite::Statement s(db, "SELECT " + sql);
    std::string v;
    if (s.step()) s >> v;
    return v;
  };
  EXPECT_EQ(one("problem_version FROM record"), "version");
  EXPECT_EQ(one("submission_sha256 FROM record"), "submission");
  EXPECT_EQ(one("driver FROM record"), "driver");
  EXPECT_EQ(one("seed FROM record"), "fedcba9876543210");
  EXPECT_EQ(one("sandbox FROM record"), "bwrap");
  EXPECT_EQ(one("build_s FROM record"), "2.5");
  EXPECT_EQ(one("bytes FROM source_file WHERE path = 'a.cpp'"), "source");
  EXPECT_EQ(one("p95_us FROM shape_result WHERE position = 1"), "95.0");
  EXPECT_EQ(one("max_rel FROM case_result"), "0.25");
  EXPECT_EQ(one("output_digest FROM case_result"), "ffffffffffffffff");
  EXPECT_EQ(one("evidence FROM finding WHERE code = 'content_memo'"), "seen");
}

TEST(Store, AFileOfTheFirstVersionIsBroughtUpToDateWithItsRows) {
  const TempDir dir;
  const fs::path path = dir.path() / "assay.db";
  {
    sqlite::Database db(path);
    db.run(migrations()[0]);
    db.run("PRAGMA user_version = 1");
    db.run("INSERT INTO ceiling (hardware_key, rate, per_s) VALUES ('h200', 'read', 4e12)");
  }
  Store store(path);
  EXPECT_EQ(*store.ceilings("h200"), (Ceilings{{"read", 4e12}}));
  Record r;
  r.bench.shapes.resize(1);
  r.bench.shapes[0].charged_us = 7;
  EXPECT_EQ(store.get(store.add(r)).bench.shapes[0].charged_us, 7);
}

TEST(Store, ADamagedRowIsNamed) {
  const TempDir dir;
  const fs::path path = dir.path() / "assay.db";
  const std::int64_t id = Store(path).add(Record{});
  sqlite::Database(path).run("UPDATE record SET seed = 'what'");
  try {
    Store(path).get(id);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const JudgeError& e) {
    EXPECT_NE(std::string(e.what()).find("record 1 is damaged"), std::string::npos) << e.what();
  }
}

TEST(Store, ListsNewestFirstAndKeepsThemAcrossOpens) {
  const TempDir dir;
  const fs::path path = dir.path() / "deep" / "assay.db";
  for (int i = 0; i < 3; ++i) {
    Record r;
    r.message = std::to_string(i);
    Store(path).add(r);
  }
  const auto all = Store(path).list(2);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].message, "2");
  EXPECT_EQ(all[1].message, "1");
  EXPECT_THROW(Store(path).get(77), UsageError);
}

TEST(Store, CeilingsAreReplacedWhole) {
  const TempDir dir;
  Store store(dir.path() / "assay.db");
  EXPECT_FALSE(store.ceilings("h200"));
  store.put_ceilings("h200", {{"read", 1}, {"fp8", 2}});
  store.put_ceilings("h200", {{"read", 3}});
  EXPECT_EQ(*store.ceilings("h200"), (Ceilings{{"read", 3}}));
}

/// The very first moment included, in which all of them find no file.
TEST(Store, WritersTakeTurns) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    const TempDir dir;
    const fs::path path = dir.path() / "assay.db";
    std::atomic<int> failed = 0;
    std::vector<std::thread> writers;
    for (int w = 0; w < 4; ++w)
      writers.emplace_back([&] {
        try {
          Store store(path);
          for (int i = 0; i < 5; ++i) store.add(Record{});
        } catch (const std::exception& e) {
          failed += 1;
          ADD_FAILURE() << e.what();
        }
      });
    for (std::thread& w : writers) w.join();
    ASSERT_EQ(failed, 0);
    EXPECT_EQ(Store(path).list(100).size(), 20u);
  }
}

std::string error_of(const fs::path& path) {
  try {
    Store store(path);
    return "";
  } catch (const JudgeError& e) {
    return e.what();
  }
}

TEST(Store, WhatCannotBeUsedSaysSoAndIsLeftAlone) {
  const TempDir dir;
  const fs::path text = dir.path() / "text.db";
  std::ofstream(text) << std::string(5000, 'x');
  EXPECT_NE(error_of(text).find("not a database"), std::string::npos) << error_of(text);
  EXPECT_EQ(fs::file_size(text), 5000u);
  EXPECT_FALSE(fs::exists(dir.path() / "text.db-wal"));
  EXPECT_NE(error_of("/proc/nothing/assay.db").find("ASSAY_STATE"), std::string::npos);
  EXPECT_NE(error_of(dir.path()).find("cannot write"), std::string::npos);  // a folder
}

TEST(Store, ANewerFileIsRefusedUntouched) {
  const TempDir dir;
  const fs::path path = dir.path() / "assay.db";
  Store(path).add(Record{});
  const std::string now = std::to_string(migrations().size());
  sqlite::Database(path).run("PRAGMA user_version = 99");
  EXPECT_NE(error_of(path).find("newer Assay"), std::string::npos) << error_of(path);
  sqlite::Database(path).run("PRAGMA user_version = " + now);
  EXPECT_EQ(Store(path).list().size(), 1u);
}

TEST(Store, AnotherProgramsDatabaseIsRefusedUntouched) {
  const TempDir dir;
  const fs::path path = dir.path() / "assay.db";
  sqlite::Database(path).run("CREATE TABLE theirs (x)");
  const std::string before = read_file(path);
  EXPECT_NE(error_of(path).find("another program's"), std::string::npos) << error_of(path);
  EXPECT_EQ(read_file(path), before);
}

/// A file-size limit stands in for a full disk: writes fail the same way, half way through.
TEST(Store, AFullDiskLosesNothingThatWasThere) {
  const TempDir dir;
  const fs::path path = dir.path() / "assay.db";
  Store store(path);
  store.add(Record{});
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{}, tight{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  tight = before;
  tight.rlim_cur = 400'000;
  ::setrlimit(RLIMIT_FSIZE, &tight);
  Record large;
  large.submission.files = {{"kernel.cpp", std::string(3'000'000, 'x')}};
  EXPECT_THROW(store.add(large), JudgeError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(store.list().size(), 1u);
  EXPECT_GT(store.add(large), 1);
  EXPECT_EQ(Store(path).get(2).submission.files[0].bytes.size(), 3'000'000u);
}

}  // namespace
}  // namespace assay

// SPDX-License-Identifier: Apache-2.0
#include "judge/record/store.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <thread>

#include "judge/base/fault.h"
#include "judge/base/paths.h"
#include "judge/record/sqlite.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::string any_text() {
  return *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
}
double any_double() {
  return *rc::gen::element(0.0, 1.5, -3e300, 1e-310, std::nan(""), INFINITY);
}

Record any_record() {
  Record r;
  r.created_at = "2026-01-01T00:00:00Z";
  r.kind = "grade";
  r.problem_id = any_text();
  r.verdict = *rc::gen::element(Verdict::kAccepted, Verdict::kRefused, Verdict::kInternalError);
  r.message = any_text();
  r.seed = *rc::gen::arbitrary<std::uint64_t>();
  r.submission.label = any_text();
  r.submission.language = *rc::gen::element(Language::kCpp, Language::kCuda);
  r.device.backend = *rc::gen::element(wire::Backend::kCpu, wire::Backend::kCuda);
  r.device.key = "key";
  r.device.memory_bytes = *rc::gen::arbitrary<std::int64_t>();
  r.ceilings = {{"read", 1.25e12}, {"fp8", 1e15}};
  r.shapes = {"M=1 N=2", any_text()};
  const int n = *rc::gen::inRange(0, 4);
  for (int i = 0; i < n; ++i) {
    std::string bytes = any_text();
    bytes.push_back('\0');  // source is bytes, not text
    r.submission.files.push_back({std::to_string(i) + ".cpp", bytes});
    ShapeBench s;
    s.shape = any_text();
    s.median_us = any_double();
    s.sol = any_double();
    s.windows = *rc::gen::arbitrary<int>();
    r.bench.shapes.push_back(s);
    CaseResult c;
    c.shape = any_text();
    c.name = "nominal";
    c.stats.count = *rc::gen::arbitrary<std::int64_t>();
    c.stats.sum_sq_error = any_double();
    c.stats.worst_got = static_cast<float>(any_double());
    c.input_digest = *rc::gen::arbitrary<std::uint64_t>();
    c.output_digest = *rc::gen::arbitrary<std::uint64_t>();
    r.check.cases.push_back(c);
    r.findings.push_back({"content_memo", any_text(), any_text()});
  }
  return r;
}

TEST(Store, ARecordComesBackAsItWas) {
  const TempDir dir;
  Store store(dir.path() / "assay.db");
  rc::check([&] {
    Record r = any_record();
    r.id = store.add(r);
    const Record back = store.get(r.id);
    RC_ASSERT(to_json(back, true).dump() == to_json(r, true).dump());
    RC_ASSERT(back.check.digest() == r.check.digest());
    RC_ASSERT(back.submission.files.size() == r.submission.files.size());
    for (std::size_t i = 0; i < r.submission.files.size(); ++i)
      RC_ASSERT(back.submission.files[i].bytes == r.submission.files[i].bytes);
  });
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

TEST(Store, TwoWritersTakeTurns) {
  const TempDir dir;
  const fs::path path = dir.path() / "assay.db";
  Store(path).list();
  const auto write = [&] {
    Store store(path);
    for (int i = 0; i < 20; ++i) store.add(Record{});
  };
  std::thread a(write), b(write);
  a.join();
  b.join();
  EXPECT_EQ(Store(path).list(100).size(), 40u);
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
  EXPECT_NE(error_of("/proc/nothing/assay.db").find("ASSAY_STATE"), std::string::npos);
  EXPECT_NE(error_of(dir.path()).find("cannot write"), std::string::npos);  // a folder
}

TEST(Store, ANewerFileIsRefused) {
  const TempDir dir;
  const fs::path path = dir.path() / "assay.db";
  Store(path).add(Record{});
  sqlite::Database(path).run("PRAGMA user_version = 99");
  EXPECT_NE(error_of(path).find("newer Assay"), std::string::npos);
  sqlite::Database(path).run("PRAGMA user_version = 1");
  EXPECT_EQ(Store(path).list().size(), 1u);
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

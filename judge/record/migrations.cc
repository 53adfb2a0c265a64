// SPDX-License-Identifier: Apache-2.0
#include "judge/record/migrations.h"

namespace assay {
namespace {

// A REAL is NULL where the figure is not a number, or was not measured yet by the version that
// wrote the row. 64-bit seeds and digests are hexadecimal text: SQLite's integers are signed.
constexpr const char* kFirst = R"sql(
CREATE TABLE record (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  created_at TEXT NOT NULL, kind TEXT NOT NULL,
  problem_id TEXT NOT NULL, problem_version TEXT NOT NULL,
  verdict TEXT NOT NULL, message TEXT NOT NULL, audit_verdict TEXT NOT NULL, seed TEXT NOT NULL,
  label TEXT NOT NULL, language TEXT NOT NULL, submission_sha256 TEXT NOT NULL,
  artifact_sha256 TEXT NOT NULL, compiler TEXT NOT NULL, build_command TEXT NOT NULL,
  build_log TEXT NOT NULL,
  backend TEXT NOT NULL, device_name TEXT NOT NULL, device_key TEXT NOT NULL, driver TEXT NOT NULL,
  runtime TEXT NOT NULL, ceilings TEXT NOT NULL, sandbox TEXT NOT NULL,
  assay_version TEXT NOT NULL, shapes TEXT NOT NULL, output TEXT NOT NULL,
  memory_bytes INTEGER NOT NULL, cache_bytes INTEGER NOT NULL, units INTEGER NOT NULL,
  arch INTEGER NOT NULL,
  frac REAL, sol REAL, wall_s REAL, build_s REAL
) STRICT;
CREATE INDEX record_by_board ON record (problem_id, device_key, verdict);

CREATE TABLE source_file (
  record_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE, position INTEGER NOT NULL,
  path TEXT NOT NULL, bytes BLOB NOT NULL,
  PRIMARY KEY (record_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE shape_result (
  record_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE, position INTEGER NOT NULL,
  shape TEXT NOT NULL,
  median_us REAL, p5_us REAL, p95_us REAL, ci_low_us REAL, ci_high_us REAL, wall_us REAL,
  unseen_us REAL, unseen_low_us REAL, single_us REAL, fresh_us REAL, rekeyed_us REAL,
  repeat_us REAL, empty_pair_us REAL, published_flops REAL, published_bytes REAL, frac REAL,
  floor_us REAL, sol REAL, physics_us REAL, core_mhz REAL, temperature_c REAL, power_w REAL,
  windows INTEGER NOT NULL, calls INTEGER NOT NULL, dropped_windows INTEGER NOT NULL,
  PRIMARY KEY (record_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE case_result (
  record_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE, position INTEGER NOT NULL,
  shape TEXT NOT NULL, seed_index INTEGER NOT NULL, name TEXT NOT NULL, output TEXT NOT NULL,
  input_digest TEXT NOT NULL, output_digest TEXT NOT NULL, noise_ratio REAL,
  count INTEGER NOT NULL, bad INTEGER NOT NULL, non_finite INTEGER NOT NULL,
  excused INTEGER NOT NULL, worst_index INTEGER NOT NULL,
  max_abs REAL, max_rel REAL, sum_sq_error REAL, sum_sq_expected REAL, sum_sq_noise REAL,
  worst_expected REAL, worst_got REAL,
  PRIMARY KEY (record_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE finding (
  record_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE, position INTEGER NOT NULL,
  code TEXT NOT NULL, shape TEXT NOT NULL, evidence TEXT NOT NULL,
  PRIMARY KEY (record_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE ceiling (
  hardware_key TEXT NOT NULL, measured_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  rate TEXT NOT NULL, per_s REAL NOT NULL,
  PRIMARY KEY (hardware_key, rate)
) STRICT, WITHOUT ROWID;
)sql";

// What only the judge's clock sees.
constexpr const char* kUnseen = R"sql(
ALTER TABLE shape_result ADD COLUMN unseen_high_us REAL;
ALTER TABLE shape_result ADD COLUMN charged_us REAL;
ALTER TABLE shape_result ADD COLUMN writeback_us REAL;
)sql";

// How well the control that is subtracted is known.
constexpr const char* kControlError = R"sql(
ALTER TABLE shape_result ADD COLUMN control_error_us REAL;
)sql";

// Both clocks are set to zero on calls of known length; a steady pace hides the writing back.
constexpr const char* kPace = R"sql(
ALTER TABLE shape_result RENAME COLUMN empty_pair_us TO stamp_offset_us;
ALTER TABLE shape_result DROP COLUMN writeback_us;
)sql";

constexpr const char* kMigrations[] = {kFirst, kUnseen, kControlError, kPace};

}  // namespace

std::span<const char* const> migrations() {
  return kMigrations;
}

}  // namespace assay

// SPDX-License-Identifier: Apache-2.0
// Records in SQLite: one file, WAL, foreign keys, STRICT tables, numbered migrations. A record is
// written in one transaction: all of it or nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "judge/record/record.h"

namespace assay {

class Store {
 public:
  /// Opens or creates. JudgeError "cannot write PATH: reason; ..." if the folder or file is
  /// unwritable, the disk is full, the file is not a database or is from a newer version.
  explicit Store(const std::filesystem::path& database);
  ~Store();

  /// Returns the new id. JudgeError on failure; no earlier row is lost.
  std::int64_t add(const Record&);
  /// UsageError if there is none with that id.
  Record get(std::int64_t id) const;
  /// Newest first, without sources.
  std::vector<Record> list(int limit = 100) const;

  /// Ceilings measured on a machine (DeviceInfo::key), newest; nullopt if never probed.
  std::optional<Ceilings> ceilings(const std::string& hardware_key) const;
  void put_ceilings(const std::string& hardware_key, const Ceilings&);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// state_dir()/assay.db
std::filesystem::path default_database();

}  // namespace assay

// SPDX-License-Identifier: Apache-2.0
// SQLite's C interface with owners and exceptions. Every failure is a JudgeError that names the
// file.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace assay::sqlite {

class Database {
 public:
  explicit Database(const std::filesystem::path& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const std::string& sql);
  /// For what SQLite does not wait for by itself: asks again for as long as it would.
  void run_when_free(const std::string& sql);
  std::int64_t last_id() const { return ::sqlite3_last_insert_rowid(handle_); }
  sqlite3* handle() const { return handle_; }
  [[noreturn]] void fail() const;

 private:
  std::filesystem::path path_;
  sqlite3* handle_ = nullptr;
};

/// Parameters are bound and columns read in order, by operators << and >>.
class Statement {
 public:
  Statement(const Database& db, const std::string& sql);
  ~Statement() { ::sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& operator<<(const std::string& text);
  Statement& operator<<(const char* text) { return *this << std::string(text); }
  Statement& operator<<(double v);
  Statement& operator<<(std::int64_t v);
  Statement& operator<<(int v) { return *this << std::int64_t{v}; }
  Statement& blob(const std::string& bytes);

  /// The next row; false at the end.
  bool step();

  Statement& operator>>(std::string& v);
  Statement& operator>>(double& v);
  Statement& operator>>(float& v);
  Statement& operator>>(std::int64_t& v);
  Statement& operator>>(int& v);

 private:
  void check(int code) const;
  const Database& db_;
  sqlite3_stmt* handle_ = nullptr;
  int parameter_ = 0, column_ = 0;
};

/// Rolls back unless commit() was reached.
class Transaction {
 public:
  explicit Transaction(Database& db) : db_(db) { db_.run("BEGIN IMMEDIATE"); }
  ~Transaction() {
    if (!done_) ::sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    db_.run("COMMIT");
    done_ = true;
  }

 private:
  Database& db_;
  bool done_ = false;
};

}  // namespace assay::sqlite

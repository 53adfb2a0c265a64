// SPDX-License-Identifier: Apache-2.0
#include "judge/record/sqlite.h"

#include <cmath>
#include <limits>

#include "judge/base/clock.h"
#include "judge/base/fault.h"

namespace assay::sqlite {
namespace {

constexpr int kPatience_ms = 10'000;

}  // namespace

Database::Database(const std::filesystem::path& path) : path_(path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error)
    throw JudgeError("cannot write {}: {}; set ASSAY_STATE to a folder that can be written",
                     path.string(), error.message());
  if (::sqlite3_open_v2(path.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                        nullptr) != SQLITE_OK) {
    try {
      fail();
    } catch (...) {
      ::sqlite3_close(handle_);
      throw;
    }
  }
  ::sqlite3_busy_timeout(handle_, kPatience_ms);
}

Database::~Database() {
  ::sqlite3_close(handle_);
}

void Database::run(const std::string& sql) {
  if (::sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

void Database::run_when_free(const std::string& sql) {
  const double begin_us = now_us();
  while (::sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    const bool busy = (::sqlite3_errcode(handle_) & 0xff) == SQLITE_BUSY;
    if (!busy || now_us() - begin_us > kPatience_ms * 1e3) fail();
    sleep_us(5'000);
  }
}

void Database::fail() const {
  const int code = ::sqlite3_errcode(handle_) & 0xff;
  // SQLITE_ERROR: the tables are not what their version says.
  const bool foreign = code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_ERROR;
  const char* remedy = code == SQLITE_FULL   ? "free some space"
                       : foreign             ? "move the file away, or set ASSAY_STATE"
                       : code == SQLITE_BUSY ? "another program holds it; try again"
                                             : "set ASSAY_STATE to a folder that can be written";
  throw JudgeError("cannot write {}: {}; {}", path_.string(), ::sqlite3_errmsg(handle_), remedy);
}

Statement::Statement(const Database& db, const std::string& sql) : db_(db) {
  check(::sqlite3_prepare_v2(db.handle(), sql.c_str(), -1, &handle_, nullptr));
}

void Statement::check(int code) const {
  if (code != SQLITE_OK) db_.fail();
}

Statement& Statement::operator<<(const std::string& text) {
  check(::sqlite3_bind_text64(handle_, ++parameter_, text.data(), text.size(), SQLITE_TRANSIENT,
                              SQLITE_UTF8));
  return *this;
}
Statement& Statement::operator<<(double v) {
  check(std::isnan(v) ? ::sqlite3_bind_null(handle_, ++parameter_)  // reads back as NaN
                      : ::sqlite3_bind_double(handle_, ++parameter_, v));
  return *this;
}
Statement& Statement::operator<<(std::int64_t v) {
  check(::sqlite3_bind_int64(handle_, ++parameter_, v));
  return *this;
}
Statement& Statement::blob(const std::string& bytes) {
  check(::sqlite3_bind_blob64(handle_, ++parameter_, bytes.data(), bytes.size(), SQLITE_TRANSIENT));
  return *this;
}

bool Statement::step() {
  column_ = 0;
  const int code = ::sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) db_.fail();
  return false;
}

Statement& Statement::operator>>(std::string& v) {
  const int c = column_++;
  const void* bytes = ::sqlite3_column_blob(handle_, c);
  const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(handle_, c));
  v = bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
  return *this;
}
Statement& Statement::operator>>(double& v) {
  const int c = column_++;
  v = ::sqlite3_column_type(handle_, c) == SQLITE_NULL ? std::numeric_limits<double>::quiet_NaN()
                                                       : ::sqlite3_column_double(handle_, c);
  return *this;
}
Statement& Statement::operator>>(float& v) {
  double d = 0;
  *this >> d;
  v = static_cast<float>(d);
  return *this;
}
Statement& Statement::operator>>(std::int64_t& v) {
  v = ::sqlite3_column_int64(handle_, column_++);
  return *this;
}
Statement& Statement::operator>>(int& v) {
  v = ::sqlite3_column_int(handle_, column_++);
  return *this;
}

}  // namespace assay::sqlite

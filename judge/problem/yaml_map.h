// SPDX-License-Identifier: Apache-2.0
// Strict reading of YAML: every message is "path:line: what", unknown keys are refused.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace assay {

/// A YAML map of one file. Every key that is asked for counts as known; finish() refuses the rest.
class YamlMap {
 public:
  YamlMap(std::filesystem::path file, YAML::Node node, std::string what);

  bool has(const std::string& key);
  /// UsageError if the key is missing.
  YAML::Node at(const std::string& key);
  YamlMap map(const std::string& key);
  std::string text(const std::string& key);
  double number(const std::string& key);
  double number(const std::string& key, double fallback);
  std::vector<std::string> words(const std::string& key);

  /// UsageError for the first key nobody asked for, with the nearest known one.
  void finish() const;

  /// The entries in file order; marks all keys as known.
  std::vector<std::pair<std::string, YAML::Node>> entries();

  [[noreturn]] void fail(const YAML::Node& where, const std::string& message) const;
  /// Runs `read` and turns an error of its own into one at `where`.
  template <class F>
  auto located(const YAML::Node& where, F&& read) const;

  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  YAML::Node node_;
  std::string what_;
  std::set<std::string> known_;
};

/// Parses a file whose top is a map.
YamlMap load_yaml_map(const std::filesystem::path& file);

}  // namespace assay

#include "judge/base/fault.h"

namespace assay {

template <class F>
auto YamlMap::located(const YAML::Node& where, F&& read) const {
  try {
    return read();
  } catch (const UsageError& e) {
    fail(where, e.what());
  } catch (const YAML::Exception& e) {
    fail(where, e.msg);
  }
}

}  // namespace assay

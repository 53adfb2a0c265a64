// SPDX-License-Identifier: Apache-2.0
#include "judge/problem/yaml_map.h"

#include <cmath>

#include "judge/base/paths.h"
#include "judge/base/text.h"

namespace assay {
namespace {

[[noreturn]] void fail_at(const std::filesystem::path& file, const YAML::Mark& mark,
                          const std::string& message) {
  throw UsageError("{}:{}: {}", file.string(), mark.is_null() ? 1 : mark.line + 1, message);
}

}  // namespace

YamlMap::YamlMap(std::filesystem::path file, YAML::Node node, std::string what)
    : file_(std::move(file)), node_(std::move(node)), what_(std::move(what)) {
  if (!node_.IsMap()) fail(node_, what_ + " must be a map of keys to values");
  std::set<std::string> seen;
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar()) fail(entry.first, "a key must be a word");
    if (!seen.insert(entry.first.Scalar()).second)
      fail(entry.first, fmt::format("key '{}' is given twice", entry.first.Scalar()));
  }
}

bool YamlMap::has(const std::string& key) {
  known_.insert(key);
  return static_cast<bool>(node_[key]);
}

YAML::Node YamlMap::at(const std::string& key) {
  if (!has(key)) fail(node_, fmt::format("{} lacks the key '{}'", what_, key));
  return node_[key];
}

YamlMap YamlMap::map(const std::string& key) {
  return {file_, at(key), key};
}

std::string YamlMap::text(const std::string& key) {
  const YAML::Node n = at(key);
  if (!n.IsScalar()) fail(n, fmt::format("'{}' must be text", key));
  return n.Scalar();
}

double YamlMap::number(const std::string& key) {
  const YAML::Node n = at(key);
  double v = 0;
  if (!n.IsScalar() || !YAML::convert<double>::decode(n, v) || !std::isfinite(v))
    fail(n, fmt::format("'{}' must be a number", key));
  return v;
}

double YamlMap::number(const std::string& key, double fallback) {
  return has(key) ? number(key) : fallback;
}

std::vector<std::string> YamlMap::words(const std::string& key) {
  const YAML::Node n = at(key);
  if (!n.IsSequence()) fail(n, fmt::format("'{}' must be a list", key));
  std::vector<std::string> out;
  for (const auto& item : n) {
    if (!item.IsScalar()) fail(item, fmt::format("'{}' must be a list of words", key));
    out.push_back(item.Scalar());
  }
  return out;
}

void YamlMap::finish() const {
  for (const auto& entry : node_) {
    const std::string key = entry.first.Scalar();
    if (known_.contains(key)) continue;
    fail(entry.first, fmt::format("unknown key '{}' in {}{}", key, what_,
                                  suggestion(key, {known_.begin(), known_.end()})));
  }
}

std::vector<std::pair<std::string, YAML::Node>> YamlMap::entries() {
  std::vector<std::pair<std::string, YAML::Node>> out;
  for (const auto& entry : node_) {
    known_.insert(entry.first.Scalar());
    out.emplace_back(entry.first.Scalar(), entry.second);
  }
  return out;
}

void YamlMap::fail(const YAML::Node& where, const std::string& message) const {
  fail_at(file_, where.Mark(), message);
}

YamlMap load_yaml_map(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  try {
    return {file, YAML::Load(bytes), "the file"};
  } catch (const YAML::Exception& e) {
    fail_at(file, e.mark, e.msg);
  }
}

}  // namespace assay

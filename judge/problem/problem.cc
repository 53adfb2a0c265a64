// SPDX-License-Identifier: Apache-2.0
#include "judge/problem/problem.h"

#include <algorithm>
#include <cmath>

#include "judge/base/fault.h"
#include "judge/base/hash.h"
#include "judge/base/paths.h"
#include "judge/base/text.h"
#include "judge/problem/distribution.h"
#include "judge/problem/yaml_map.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

DType dtype_from_name(const std::string& word) {
  std::vector<std::string> all;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    if (word == name(t)) return t;
    all.emplace_back(name(t));
  }
  throw UsageError("unknown dtype '{}': there are {}", word, join(all));
}

/// Reads one problem.yaml into `p`; the member functions follow the file from top to bottom.
class Loader {
 public:
  explicit Loader(const fs::path& folder) : yaml_(load_yaml_map(folder / "problem.yaml")) {
    p_.folder = folder;
  }

  Problem load() {
    read_identity();
    read_tensors();
    read_shapes();
    read_checks();
    read_formulas();
    read_limits();
    yaml_.finish();
    check_extents();
    return std::move(p_);
  }

 private:
  void read_identity() {
    p_.id = yaml_.text("id");
    if (p_.id != p_.folder.filename().string())
      yaml_.fail(yaml_.at("id"), fmt::format("id '{}' differs from the folder's name '{}'", p_.id,
                                             p_.folder.filename().string()));
    p_.title = yaml_.text("title");
    p_.deck = yaml_.text("deck");
    p_.summary = yaml_.text("summary");
    p_.axes = yaml_.words("axes");
    if (p_.axes.empty() || p_.axes.size() > wire::kMaxAxes)
      yaml_.fail(yaml_.at("axes"), fmt::format("there must be 1 to {} axes", wire::kMaxAxes));
    p_.regime = yaml_.text("regime");
    if (p_.regime != "compute" && p_.regime != "memory")
      yaml_.fail(yaml_.at("regime"), "regime is compute or memory");
    p_.peak = yaml_.text("peak");
    if (yaml_.has("forbidden")) p_.forbidden = yaml_.words("forbidden");
  }

  Formula formula(YamlMap& map, const std::string& key) {
    const std::string text = map.text(key);
    return map.located(map.at(key), [&] { return Formula(text, p_.axes); });
  }

  TensorSpec tensor(YamlMap map, const std::string& tensor_name, bool drawn) {
    TensorSpec t;
    t.name = tensor_name;
    t.dtype =
        map.located(map.at("dtype"), [&] { return dtype_from_name(map.at("dtype").Scalar()); });
    for (const std::string& extent : map.words("shape"))
      t.shape.push_back(map.located(map.at("shape"), [&] { return Formula(extent, p_.axes); }));
    if (t.shape.empty() || t.shape.size() > wire::kMaxRank)
      map.fail(map.at("shape"), fmt::format("a tensor has 1 to {} axes", wire::kMaxRank));
    if (drawn)
      t.draw = map.located(map.at("draw"), [&] { return parse_distribution(map.text("draw")); });
    map.finish();
    return t;
  }

  std::vector<TensorSpec> tensors(const std::string& key, bool required, bool drawn) {
    std::vector<TensorSpec> out;
    if (!required && !yaml_.has(key)) return out;
    for (const auto& [tensor_name, node] : yaml_.map(key).entries()) {
      if (std::any_of(out.begin(), out.end(),
                      [&, &n = tensor_name](auto& t) { return t.name == n; }))
        yaml_.fail(node, fmt::format("tensor '{}' is given twice", tensor_name));
      out.push_back(tensor(YamlMap(yaml_.file(), node, tensor_name), tensor_name, drawn));
    }
    if (required && out.empty())
      yaml_.fail(yaml_.at(key), fmt::format("'{}' must not be empty", key));
    if (out.size() > wire::kMaxTensors)
      yaml_.fail(yaml_.at(key),
                 fmt::format("'{}' holds more than {} tensors", key, wire::kMaxTensors));
    return out;
  }

  void read_tensors() {
    p_.constants = tensors("constants", false, true);
    p_.inputs = tensors("inputs", true, true);
    p_.outputs = tensors("outputs", true, false);
    p_.inouts = tensors("inouts", false, true);
    p_.derived = tensors("derived", false, false);
    p_.expected = tensors("expected", true, false);
    for (const TensorSpec& t : p_.read())
      if (named(p_.constants, t.name))
        yaml_.fail(yaml_.at("inputs"), fmt::format("'{}' is a constant and an input", t.name));
    for (const TensorSpec& t : p_.inouts)
      if (named(p_.inputs, t.name) || named(p_.outputs, t.name))
        yaml_.fail(yaml_.at("inouts"),
                   fmt::format("'{}' is an inout and an input or an output", t.name));
    if (p_.read().size() > wire::kMaxTensors || p_.written().size() > wire::kMaxTensors)
      yaml_.fail(yaml_.at("inouts"), fmt::format("together with 'inputs' or 'outputs' more than {} "
                                                 "tensors",
                                                 wire::kMaxTensors));
  }

  static bool named(const std::vector<TensorSpec>& list, const std::string& tensor_name) {
    return std::any_of(list.begin(), list.end(),
                       [&](const TensorSpec& t) { return t.name == tensor_name; });
  }

  Shape shape(const YAML::Node& node) {
    if (!node.IsSequence() || node.size() != p_.axes.size())
      yaml_.fail(node,
                 fmt::format("a shape is a list of {} sizes: {}", p_.axes.size(), join(p_.axes)));
    Shape s;
    for (std::size_t i = 0; i < p_.axes.size(); ++i) {
      std::int64_t v = 0;
      if (!YAML::convert<std::int64_t>::decode(node[i], v) || v < 1)
        yaml_.fail(node, fmt::format("{} must be a positive whole number", p_.axes[i]));
      s.axes.emplace_back(p_.axes[i], v);
    }
    return s;
  }

  void read_shapes() {
    YamlMap by_device = yaml_.map("shapes");
    for (const char* device : {"cuda", "cpu"}) {
      if (!by_device.has(device)) continue;
      const YAML::Node list = by_device.at(device);
      if (!list.IsSequence() || list.size() == 0)
        by_device.fail(list, fmt::format("shapes of {} must be a list that is not empty", device));
      for (const auto& node : list) {
        const Shape s = shape(node);
        std::vector<Shape>& out = p_.shapes[device];
        if (std::find(out.begin(), out.end(), s) != out.end())
          by_device.fail(node, fmt::format("shape {} is given twice", s.label()));
        out.push_back(s);
      }
    }
    by_device.finish();
    if (p_.shapes.empty()) yaml_.fail(yaml_.at("shapes"), "no shapes for any device");
  }

  static Tolerance tolerance(YamlMap& map) {
    const Tolerance t{static_cast<float>(map.number("atol")),
                      static_cast<float>(map.number("rtol"))};
    if (t.atol < 0 || t.rtol < 0) map.fail(map.at("atol"), "a tolerance cannot be negative");
    return t;
  }

  StressCase stress(YamlMap map) {
    StressCase c;
    c.name = map.text("name");
    c.tolerance = tolerance(map);
    for (const auto& [tensor_name, node] : map.map("scale").entries()) {
      if (!named(p_.read(), tensor_name) && !named(p_.constants, tensor_name))
        map.fail(node, fmt::format("no input or constant is called '{}'", tensor_name));
      float factor = 0;
      if (!YAML::convert<float>::decode(node, factor) || !std::isfinite(factor))
        map.fail(node, "a scale is a number");
      c.scale[tensor_name] = factor;
    }
    map.finish();
    return c;
  }

  void read_checks() {
    YamlMap t = yaml_.map("tolerance");
    p_.tolerance = tolerance(t);
    t.finish();
    p_.seeds = static_cast<int>(yaml_.number("seeds", 3));
    if (p_.seeds < 1 || p_.seeds > 16) yaml_.fail(yaml_.at("seeds"), "seeds must be 1 to 16");
    if (yaml_.has("stress")) {
      if (!yaml_.at("stress").IsSequence()) yaml_.fail(yaml_.at("stress"), "stress is a list");
      for (const auto& node : yaml_.at("stress"))
        p_.stress.push_back(stress(YamlMap(yaml_.file(), node, "stress case")));
    }
    if (yaml_.has("structural")) p_.structural = yaml_.words("structural");
    std::vector<std::string> names = p_.structural;
    for (const StressCase& s : p_.stress) names.push_back(s.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      yaml_.fail(yaml_.at("tolerance"), fmt::format("two cases are called '{}'", *twice));
  }

  void read_formulas() {
    YamlMap published = yaml_.map("published");
    p_.published_flops = formula(published, "flops");
    p_.published_bytes = formula(published, "bytes");
    if (published.has("atol") || published.has("rtol"))
      p_.published_tolerance = {static_cast<float>(published.number("atol", 0)),
                                static_cast<float>(published.number("rtol", 0))};
    published.finish();
    YamlMap floor = yaml_.map("floor");
    p_.floor = {formula(floor, "flops"), floor.text("rate"), formula(floor, "read_bytes"),
                formula(floor, "write_bytes")};
    floor.finish();
    YamlMap noise = yaml_.map("noise");
    p_.noise = {noise.number("accumulate_relative"), noise.number("max_ratio")};
    noise.finish();
  }

  void read_limits() {
    if (!yaml_.has("limits")) return;
    YamlMap l = yaml_.map("limits");
    const Limits d;
    p_.limits = {
        l.number("build_s", d.build_s), l.number("prepare_s", d.prepare_s),
        l.number("call_s", d.call_s),
        static_cast<std::int64_t>(l.number("memory_mb", static_cast<double>(d.memory_mb)))};
    if (!(p_.limits.build_s > 0 && p_.limits.prepare_s > 0 && p_.limits.call_s > 0 &&
          p_.limits.memory_mb > 0))
      yaml_.fail(yaml_.at("limits"), "limits must be positive");
    l.finish();
  }

  /// Every tensor must have whole, positive extents at every shape; every formula a value.
  void check_extents() {
    for (const auto& [device, shapes] : p_.shapes)
      for (const Shape& s : shapes)
        yaml_.located(yaml_.at("shapes"), [&] {
          try {
            for (const auto* list :
                 {&p_.constants, &p_.inputs, &p_.outputs, &p_.inouts, &p_.derived, &p_.expected})
              for (const TensorSpec& t : *list) t.at(s);
            for (const Formula* f : {&p_.published_flops, &p_.published_bytes, &p_.floor.flops,
                                     &p_.floor.read_bytes, &p_.floor.write_bytes})
              f->evaluate(s);
          } catch (const JudgeError& e) {
            throw UsageError("{}", e.what());
          }
        });
  }

  YamlMap yaml_;
  Problem p_;
};

/// Names and bytes of every file, in a fixed order.
std::string folder_hash(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& e : fs::recursive_directory_iterator(folder))
    if (e.is_regular_file()) files.push_back(e.path());
  std::sort(files.begin(), files.end());
  std::string all;
  for (const fs::path& f : files) {
    const std::string bytes = read_file(f);
    all += fmt::format("{}\n{}\n", f.lexically_relative(folder).generic_string(), bytes.size());
    all += bytes;
  }
  return sha256_hex(all);
}

std::vector<fs::path> problem_folders() {
  std::vector<fs::path> out;
  for (const auto& e : fs::directory_iterator(home_dir() / "problems"))
    if (fs::exists(e.path() / "problem.yaml")) out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

Tensor TensorSpec::at(const Shape& s) const {
  Tensor t;
  t.dtype = dtype;
  t.rank = static_cast<int>(shape.size());
  double bytes = static_cast<double>(size_bytes(dtype));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const double v = shape[i].evaluate(s);
    if (v < 1 || v != std::floor(v))
      throw JudgeError("extent {} of '{}' is {} at {}", shape[i].text(), name, v, s.label());
    bytes *= v;
    t.shape[i] = static_cast<std::int64_t>(v);
  }
  if (bytes > 1e12) throw JudgeError("tensor '{}' is too large at {}", name, s.label());
  return t;
}

std::vector<TensorSpec> Problem::read() const {
  std::vector<TensorSpec> all = inputs;
  all.insert(all.end(), inouts.begin(), inouts.end());
  return all;
}

std::vector<TensorSpec> Problem::written() const {
  std::vector<TensorSpec> all = outputs;
  all.insert(all.end(), inouts.begin(), inouts.end());
  return all;
}

const std::vector<Shape>& Problem::shapes_for(wire::Backend backend) const {
  const char* device = backend == wire::Backend::kCpu ? "cpu" : "cuda";
  const auto it = shapes.find(device);
  if (it == shapes.end()) throw UsageError("problem {} has no shapes for device {}", id, device);
  return it->second;
}

Problem load_problem(const fs::path& folder) {
  Problem p = Loader(folder).load();
  p.version = folder_hash(folder);
  return p;
}

std::vector<Problem> load_problems() {
  std::vector<Problem> out;
  for (const fs::path& folder : problem_folders()) out.push_back(load_problem(folder));
  return out;
}

Problem find_problem(const std::string& id) {
  std::vector<std::string> known;
  for (const fs::path& folder : problem_folders()) {
    if (folder.filename() == id) return load_problem(folder);
    known.push_back(folder.filename());
  }
  throw UsageError("unknown problem '{}'{} known: {}", id,
                   suggestion(id, known).empty() ? ";" : suggestion(id, known), join(known));
}

}  // namespace assay

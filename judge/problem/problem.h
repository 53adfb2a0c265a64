// SPDX-License-Identifier: Apache-2.0
// A problem as its folder states it: problems/<id>/problem.yaml plus the C++ in the same folder
// (ops.h). docs/problem-format.md describes every key.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "judge/device/device.h"
#include "judge/problem/formula.h"
#include "judge/problem/shape.h"

namespace assay {

/// A tensor as declared: dtype and extents as formulas over the axes.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<Formula> shape;
  std::optional<Distribution>
      draw;  ///< nullopt: filled by the problem's code ("derived"), or an output

  /// A view without data.
  Tensor at(const Shape&) const;
};

/// Multiplies drawn tensors before they are rounded to their dtype; the tolerance that goes with
/// it.
struct StressCase {
  std::string name;
  std::map<std::string, float> scale;  ///< tensor name -> factor
  Tolerance tolerance;
};

struct Floor {
  Formula flops;     ///< operations this shape really needs
  std::string rate;  ///< key of Ceilings that does them ("fp8")
  Formula read_bytes;
  Formula write_bytes;
};

struct Noise {
  /// Error of an honest implementation besides rounding its output, as a share of the RMS output
  /// (accumulation in the declared units, named intermediate roundings). Its source is in the yaml.
  double accumulate_relative = 0;
  /// A ratio of RMS error to noise floor above this is the finding `precision_downgrade`.
  double max_ratio = 3;
};

struct Limits {
  double build_s = 120;
  double prepare_s = 60;
  double call_s = 10;             ///< wall clock for one call, window overheads included
  std::int64_t memory_mb = 4096;  ///< host memory of the runner besides the judge's buffers
};

struct Problem {
  std::string id;
  std::string title;
  std::string deck;
  std::string summary;
  std::string regime;  ///< "compute" or "memory": which published formula gives frac
  std::string peak;    ///< key of the datasheet for frac: "fp8", "bf16", "dram"
  std::vector<std::string> axes;
  std::vector<TensorSpec> constants, inputs, outputs;
  std::vector<TensorSpec> inouts;    ///< state: handed over filled, updated in place by the call
  std::vector<TensorSpec> derived;   ///< judge-only, computed once per set of constants
  std::vector<TensorSpec> expected;  ///< judge-only, what the oracle writes
  std::map<std::string, std::vector<Shape>> shapes;  ///< by device: "cpu", "cuda"
  Tolerance tolerance;
  std::vector<StressCase> stress;
  std::vector<std::string> structural;  ///< names understood by the problem's structure()
  int seeds = 3;
  Formula published_flops, published_bytes;
  std::optional<Tolerance> published_tolerance;  ///< kept to show what it would let through
  Floor floor;
  Noise noise;
  Limits limits;
  std::vector<std::string> forbidden;  ///< shown to users; enforced by the audit
  std::filesystem::path folder;
  std::string version;  ///< SHA-256 over the folder's files (names and bytes), 64 hex

  const std::vector<Shape>& shapes_for(wire::Backend) const;  ///< UsageError if there are none
  /// What a call is given bytes in, and what it leaves bytes in: inputs, or outputs, then inouts.
  std::vector<TensorSpec> read() const;
  std::vector<TensorSpec> written() const;
};

/// Reads and validates one folder. UsageError "path:line: message" on anything malformed: unknown
/// or missing keys, wrong types, bad formulas, empty shape lists, duplicate names, ids that differ
/// from the folder's name.
Problem load_problem(const std::filesystem::path& folder);

/// Every folder under home_dir()/problems that has a problem.yaml, sorted by id.
std::vector<Problem> load_problems();
/// UsageError naming the nearest known ids when there is none such.
Problem find_problem(const std::string& id);

}  // namespace assay

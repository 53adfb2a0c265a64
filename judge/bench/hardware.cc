// SPDX-License-Identifier: Apache-2.0
#include "judge/base/paths.h"
#include "judge/bench/bench.h"
#include "judge/problem/yaml_map.h"

namespace assay {

Ceilings datasheet_peaks(const DeviceInfo& device) {
  if (device.backend == wire::Backend::kCpu) return cpu_bounds(device.units);
  const std::filesystem::path file = home_dir() / "data" / "hardware.yaml";
  Ceilings best;
  std::size_t longest = 0;
  try {
    for (const YAML::Node& node : YAML::Load(read_file(file))) {
      YamlMap row(file, node, "hardware");
      const std::string match = row.text("match");
      Ceilings peaks;
      for (const char* key : {"dram", "bf16", "fp8", "int8", "fp32"}) peaks[key] = row.number(key);
      row.text("source");
      row.finish();
      if (match.size() <= longest || device.name.find(match) == std::string::npos) continue;
      longest = match.size();
      best = peaks;
    }
  } catch (const YAML::Exception& e) {
    throw UsageError("{}:{}: {}", file.string(), e.mark.line + 1, e.msg);
  }
  return best;
}

}  // namespace assay

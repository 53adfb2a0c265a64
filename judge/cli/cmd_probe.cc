// SPDX-License-Identifier: Apache-2.0
#include "judge/base/interrupt.h"
#include "judge/base/log.h"
#include "judge/bench/bench.h"
#include "judge/cli/cli.h"
#include "judge/cli/print.h"

namespace assay::cli {
namespace {

bool is_memory(const std::string& key) {
  return key == "read" || key == "write" || key == "copy" || key == "dram";
}
std::string rate_text(const std::string& key, double per_s) {
  return is_memory(key) ? fmt::format("{:.1f} GB/s", per_s * 1e-9)
                        : fmt::format("{:.2f} Top/s", per_s * 1e-12);
}

}  // namespace

void add_probe(Parser& parser, Context& context) {
  Command c =
      parser.add(context, "probe", "Measures what this machine reaches; sol is relative to it");
  add_device_option(c, context);
  const auto quick = std::make_shared<bool>(false);
  c.flag("--quick", *quick, "less precise, under a second");
  c.run([&context, quick] {
    set_quiet(context.quiet || context.json);
    Store store(default_database());
    const auto device = context.open_device();
    progress("probe  " + device->info().name + " ...");
    const Ceilings measured = device->probe(*quick);
    throw_if_interrupted();
    clear_progress();
    store.put_ceilings(device->info().key, measured);
    const Ceilings peaks = datasheet_peaks(device->info());
    if (context.json) {
      print_json({{"device", device->info().name},
                  {"key", device->info().key},
                  {"measured_per_s", measured},
                  {"peak_per_s", peaks}});
      return;
    }
    print_line(device->info().name);
    std::vector<std::vector<std::string>> rows = {{"rate", "measured", "peak", "share"}};
    for (const auto& [key, per_s] : measured) {
      const auto peak = peaks.find(is_memory(key) ? "dram" : key);
      const bool known = peak != peaks.end();
      rows.push_back({key, rate_text(key, per_s), known ? rate_text(key, peak->second) : "-",
                      known ? share_text(per_s / peak->second) : "-"});
    }
    print_table(rows);
  });
}

}  // namespace assay::cli

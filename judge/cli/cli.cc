// SPDX-License-Identifier: Apache-2.0
#include "judge/cli/cli.h"

#include "judge/base/log.h"

namespace assay::cli {

std::unique_ptr<Device> Context::open_device() const {
  if (device == "cuda" || (device == "auto" && cuda_available())) return open_cuda_device(0);
  return open_cpu_device();
}

CLI::App* add_command(CLI::App& app, Context& context, const std::string& name,
                      const std::string& what) {
  CLI::App* c = app.add_subcommand(name, what);
  c->add_flag("--json", context.json, "print JSON on stdout");
  c->add_flag("--quiet", context.quiet, "no progress on stderr");
  return c;
}

void add_device_option(CLI::App* command, Context& context) {
  command->add_option("--device", context.device, "cpu, cuda or auto (cuda if there is one)")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
}

void add_sandbox_option(CLI::App* command, Context& context) {
  command->add_option("--sandbox", context.sandbox, "auto, bwrap, namespaces or none")
      ->check(CLI::IsMember({"auto", "bwrap", "namespaces", "none"}));
}

Ceilings ceilings_for(Device& device, Store& store) {
  if (const auto known = store.ceilings(device.info().key)) return *known;
  progress("probe  measuring what this machine can do (once) ...");
  const Ceilings measured = device.probe(true);
  store.put_ceilings(device.info().key, measured);
  clear_progress();
  return measured;
}

int exit_of(Verdict verdict) {
  if (verdict == Verdict::kAccepted) return kAccepted;
  return verdict == Verdict::kInternalError ? kFault : kNotAccepted;
}

}  // namespace assay::cli

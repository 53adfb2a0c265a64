// SPDX-License-Identifier: Apache-2.0
// The command line. One cmd_<name>.cc per command; each adds itself to the parser and leaves the
// exit code in the context.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "judge/base/json.h"
#include "judge/device/device.h"
#include "judge/record/store.h"
#include "judge/sandbox/sandbox.h"

namespace assay::cli {

enum Exit { kAccepted = 0, kNotAccepted = 1, kUsage = 2, kFault = 3, kInterrupted = 130 };

/// What every command shares.
struct Context {
  bool json = false;
  bool quiet = false;
  std::string device = "auto";
  std::string sandbox = "auto";
  int exit_code = kAccepted;

  std::unique_ptr<Device> open_device() const;
  SandboxKind sandbox_kind() const { return sandbox_kind_from_name(sandbox); }
};

void add_list(CLI::App& app, Context& context);
void add_grade(CLI::App& app, Context& context);  // grade, check, bench
void add_replay(CLI::App& app, Context& context);
void add_probe(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_corpus(CLI::App& app, Context& context);
void add_records(CLI::App& app, Context& context);  // records, show
void add_demo(CLI::App& app, Context& context);
void add_version(CLI::App& app, Context& context);

/// A command with the options every command has.
CLI::App* add_command(CLI::App& app, Context& context, const std::string& name,
                      const std::string& what);
void add_device_option(CLI::App* command, Context& context);
void add_sandbox_option(CLI::App* command, Context& context);

/// The stored ceilings of this machine; probed (quickly) and stored if there are none.
Ceilings ceilings_for(Device& device, Store& store);

/// Exit code of a verdict.
int exit_of(Verdict verdict);

}  // namespace assay::cli

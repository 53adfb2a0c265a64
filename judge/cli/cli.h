// SPDX-License-Identifier: Apache-2.0
// The command line. One cmd_<name>.cc per command; each adds itself to the parser and leaves the
// exit code in the context.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "judge/base/json.h"
#include "judge/device/device.h"
#include "judge/record/store.h"
#include "judge/sandbox/sandbox.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

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

/// One command's arguments. Values are written where the references point before run's function is
/// called; they must outlive the parser. (The library behind it takes seconds to compile: cli.cc
/// alone includes it.)
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command& argument(const std::string& name, std::string& value, const std::string& help,
                    bool required = true);
  Command& argument(const std::string& name, std::int64_t& value, const std::string& help);
  Command& arguments(const std::string& name, std::vector<std::string>& values,
                     const std::string& help);
  Command& option(const std::string& name, std::vector<int>& comma_separated,
                  const std::string& help);
  Command& option(const std::string& name, double& value, double low, double high,
                  const std::string& help);
  Command& option(const std::string& name, std::int64_t& value, std::int64_t low, std::int64_t high,
                  const std::string& help);
  /// 1 to 16 hexadecimal digits, with or without 0x.
  Command& hex_option(const std::string& name, std::optional<std::uint64_t>& value,
                      const std::string& help);
  Command& choice(const std::string& name, std::string& value,
                  const std::vector<std::string>& among, const std::string& help);
  Command& flag(const std::string& name, bool& value, const std::string& help);
  Command& run(std::function<void()> action);

 private:
  Command& parsed_option(const std::string& name, const std::string& help,
                         std::function<void(const std::string&)> read);
  CLI::App* app_;
};

class Parser {
 public:
  Parser(const std::string& what, const std::string& version);
  ~Parser();
  /// A command with the options every command has.
  Command add(Context& context, const std::string& name, const std::string& what);
  /// Runs the command that was asked for. UsageError on anything it does not understand.
  void parse(int argc, char** argv);

 private:
  std::string complaint(const CLI::ParseError& e, int argc, char** argv) const;
  std::unique_ptr<CLI::App> app_;
};

void add_device_option(Command& command, Context& context);
void add_sandbox_option(Command& command, Context& context);

void add_list(Parser& parser, Context& context);
void add_grade(Parser& parser, Context& context);  // grade, check, bench
void add_replay(Parser& parser, Context& context);
void add_probe(Parser& parser, Context& context);
void add_doctor(Parser& parser, Context& context);
void add_corpus(Parser& parser, Context& context);
void add_admit(Parser& parser, Context& context);
void add_records(Parser& parser, Context& context);  // records, show
void add_demo(Parser& parser, Context& context);
void add_version(Parser& parser, Context& context);

/// "assay 1.2, with CUDA"
std::string version_text();

/// The stored ceilings of this machine; probed (quickly) and stored if there are none.
Ceilings ceilings_for(Device& device, Store& store);

/// Stores what was graded. A record that cannot be stored must not take its result with it: the
/// failure waits for complain(), which is called once the result has been shown.
class Keeper {
 public:
  explicit Keeper(Store* store) : store_(store) {}  ///< null: keeps nothing
  void keep(Record& record);                        ///< assigns its id
  void note(Json&) const;                           ///< adds "not_kept" if a record was lost
  void complain() const;                            ///< JudgeError if a record was lost

 private:
  Store* store_;
  std::string lost_;
};

/// Exit code of a verdict.
int exit_of(Verdict verdict);

}  // namespace assay::cli

// SPDX-License-Identifier: Apache-2.0
#include "judge/cli/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <sstream>

#include "judge/base/fault.h"
#include "judge/base/interrupt.h"
#include "judge/base/log.h"
#include "judge/base/text.h"
#include "judge/cli/print.h"

namespace assay::cli {

namespace {

/// All of `text`, which the argument library's own conversion does not insist on.
template <class Number>
std::optional<Number> whole_number(const std::string& text, int base) {
  Number v = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, v, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return v;
}

}  // namespace

std::unique_ptr<Device> Context::open_device() const {
  if (device == "cuda" || (device == "auto" && cuda_available())) return open_cuda_device(0);
  return open_cpu_device();
}

Command& Command::argument(const std::string& name, std::string& value, const std::string& help,
                           bool required) {
  app_->add_option(name, value, help)->required(required);
  return *this;
}
Command& Command::argument(const std::string& name, std::int64_t& value, const std::string& help) {
  app_->add_option(name, value, help)->required();
  return *this;
}
Command& Command::arguments(const std::string& name, std::vector<std::string>& values,
                            const std::string& help) {
  app_->add_option(name, values, help);
  return *this;
}
Command& Command::option(const std::string& name, std::vector<int>& comma_separated,
                         const std::string& help) {
  return parsed_option(name, help, [name, &comma_separated](const std::string& text) {
    comma_separated.clear();
    for (std::size_t at = 0; at <= text.size();) {
      const std::string word = text.substr(at, text.find(',', at) - at);
      const auto number = whole_number<int>(word, 10);
      if (!number) throw UsageError("{}: '{}' is not a list like 0,2", name, text);
      comma_separated.push_back(*number);
      at += word.size() + 1;
    }
  });
}
Command& Command::option(const std::string& name, double& value, double low, double high,
                         const std::string& help) {
  app_->add_option(name, value, help)->check(CLI::Range(low, high));
  return *this;
}
Command& Command::option(const std::string& name, std::int64_t& value, std::int64_t low,
                         std::int64_t high, const std::string& help) {
  app_->add_option(name, value, help)->check(CLI::Range(low, high));
  return *this;
}
Command& Command::hex_option(const std::string& name, std::optional<std::uint64_t>& value,
                             const std::string& help) {
  return parsed_option(name, help, [name, &value](const std::string& text) {
    value = whole_number<std::uint64_t>(text.substr(text.starts_with("0x") ? 2 : 0), 16);
    if (!value) throw UsageError("{}: '{}' is not 1 to 16 hexadecimal digits", name, text);
  });
}
Command& Command::parsed_option(const std::string& name, const std::string& help,
                                std::function<void(const std::string&)> read) {
  app_->add_option_function<std::string>(name, std::move(read), help);
  return *this;
}
Command& Command::choice(const std::string& name, std::string& value,
                         const std::vector<std::string>& among, const std::string& help) {
  app_->add_option(name, value, help)->check(CLI::IsMember(among));
  return *this;
}
Command& Command::flag(const std::string& name, bool& value, const std::string& help) {
  app_->add_flag(name, value, help);
  return *this;
}
Command& Command::run(std::function<void()> action) {
  app_->callback(std::move(action));
  return *this;
}

Parser::Parser(const std::string& what, const std::string& version)
    : app_(std::make_unique<CLI::App>(what, "assay")) {
  app_->require_subcommand(1);
  app_->set_version_flag("--version", version);
}
Parser::~Parser() = default;

Command Parser::add(Context& context, const std::string& name, const std::string& what) {
  Command c(app_->add_subcommand(name, what));
  c.flag("--json", context.json, "print JSON on stdout");
  c.flag("--quiet", context.quiet, "no progress on stderr");
  return c;
}

/// The library says that a command is missing where it does not know the one given.
std::string Parser::complaint(const CLI::ParseError& e, int argc, char** argv) const {
  std::vector<std::string> known;
  for (const CLI::App* c : app_->get_subcommands({})) known.push_back(c->get_name());
  const bool given = argc > 1 && argv[1][0] != '-';
  if (!given || std::find(known.begin(), known.end(), argv[1]) != known.end()) return e.what();
  return fmt::format("unknown command '{}'{}", argv[1], suggestion(argv[1], known));
}

void Parser::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0) throw UsageError("{} (see assay --help)", complaint(e, argc, argv));
    std::ostringstream text;  // --help, --version
    app_->exit(e, text, text);
    print_text(text.str());
  }
}

void add_device_option(Command& command, Context& context) {
  command.choice("--device", context.device, {"auto", "cpu", "cuda"},
                 "what to grade on; auto: cuda if there is one");
}

void add_sandbox_option(Command& command, Context& context) {
  command.choice("--sandbox", context.sandbox, {"auto", "bwrap", "namespaces", "none"},
                 "walls around the submission");
}

Ceilings ceilings_for(Device& device, Store& store) {
  if (const auto known = store.ceilings(device.info().key)) return *known;
  progress("probe  measuring what this machine can do (once) ...");
  const Ceilings measured = device.probe(true);
  throw_if_interrupted();
  store.put_ceilings(device.info().key, measured);
  clear_progress();
  return measured;
}

void Keeper::keep(Record& record) {
  if (store_ == nullptr) return;
  try {
    record.id = store_->add(record);
  } catch (const JudgeError& e) {
    lost_ = e.what();
  }
}

void Keeper::note(Json& json) const {
  if (!lost_.empty()) json["not_kept"] = lost_;
}

void Keeper::complain() const {
  if (!lost_.empty()) throw JudgeError("the record is not kept: {}", lost_);
}

int exit_of(Verdict verdict) {
  if (verdict == Verdict::kAccepted) return kAccepted;
  return verdict == Verdict::kInternalError ? kFault : kNotAccepted;
}

}  // namespace assay::cli

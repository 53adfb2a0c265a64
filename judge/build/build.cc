// SPDX-License-Identifier: Apache-2.0
#include "judge/build/build.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include "judge/base/clock.h"
#include "judge/base/fault.h"
#include "judge/base/hash.h"
#include "judge/base/interrupt.h"
#include "judge/base/json.h"
#include "judge/base/paths.h"
#include "judge/base/text.h"
#include "judge/build/compiler.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownBytes = 4000;  // of the compiler's output, in a fault

/// -march=native means another binary on another processor.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string all;
  for (std::string line; std::getline(file, line) && !line.empty();)
    if (line.rfind("model name", 0) == 0 || line.rfind("flags", 0) == 0) all += line + "\n";
  return all;
}

std::string abi_header() {
  return read_file(home_dir() / "runner" / "abi" / "assay" / "kernel.h");
}

std::string cache_key(const Submission& s, const Compiler& c) {
  return sha256_hex(s.sha256 + "\n" + c.path.string() + "\n" + c.version + "\n" +
                    join(c.flags, " ") + "\n" + (s.language == Language::kCpp ? processor() : "") +
                    sha256_hex(abi_header()));
}

/// The folders of one compilation, and what they are called inside the sandbox.
struct Workspace {
  explicit Workspace(bool walled) : walled_(walled) {
    fs::permissions(dir_.path(), fs::perms(0755));
    fs::create_directory(source());
    fs::create_directory(output());
    fs::create_directory(include());
    fs::permissions(output(), fs::perms(0777));  // the compiler runs as somebody else
  }
  fs::path source() const { return dir_.path() / "source"; }
  fs::path output() const { return dir_.path() / "output"; }
  fs::path include() const { return dir_.path() / "include"; }
  std::string source_inside() const { return walled_ ? "/assay/source" : source().string(); }
  std::string output_inside() const { return walled_ ? "/assay/output" : output().string(); }
  std::string include_inside() const { return walled_ ? "/assay/include" : include().string(); }

 private:
  bool walled_;
  TempDir dir_{"assay-build"};
};

void write_files(const std::vector<SourceFile>& files, const fs::path& folder) {
  for (const SourceFile& f : files) {
    const fs::path p = folder / f.path;
    if (f.path.empty() || fs::path(f.path).is_absolute() || f.path.find("..") != std::string::npos)
      throw UsageError("'{}' is not a name for a source file", f.path);
    fs::create_directories(p.parent_path());
    write_file_atomically(p, f.bytes);
  }
}

bool is_unit(const std::string& path, Language l) {
  const std::string e = fs::path(path).extension();
  return (l == Language::kCuda && e == ".cu") || e == ".cpp" || e == ".cc" || e == ".cxx";
}

std::vector<std::string> command_line(const Submission& s, const Compiler& c, const Workspace& w) {
  std::vector<std::string> argv = {c.path.string()};
  for (const SourceFile& f : s.files)
    if (is_unit(f.path, s.language)) argv.push_back(w.source_inside() + "/" + f.path);
  argv.insert(argv.end(), {"-I" + w.include_inside(), "-I" + w.source_inside()});
  argv.insert(argv.end(), c.flags.begin(), c.flags.end());
  argv.insert(argv.end(), {"-o", w.output_inside() + "/kernel.so"});
  return argv;
}

std::string without(std::string text, const std::string& prefix) {
  for (std::size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;)
    text.erase(at, prefix.size());
  return text;
}

/// From the first line with an error in it, cut to a readable length.
std::string telling_part(const std::string& log) {
  std::size_t at = log.find("error");
  at = at == std::string::npos ? 0 : log.rfind('\n', at) + 1;  // npos + 1 = 0
  std::string part = log.substr(at, kShownBytes);
  if (log.size() - at > kShownBytes) part += "\n...";
  while (!part.empty() && part.back() == '\n') part.pop_back();
  return part;
}

[[noreturn]] void report_failure(const ExitStatus& end, const std::string& log,
                                 const BuildOptions& o) {
  if (end.deadline_passed)
    throw SubmissionFault(Verdict::kTimeLimit,
                          fmt::format("compiling took more than {:g} s", o.deadline_s));
  if (end.memory_exceeded)
    throw SubmissionFault(Verdict::kMemoryLimit, "compiling used more memory than allowed");
  if (end.output_exceeded)
    throw SubmissionFault(Verdict::kOutputLimit, "the compiler printed more than allowed");
  if (end.tasks_exceeded || end.forbidden_call)
    throw SubmissionFault(Verdict::kSandboxViolation, "compiling: " + end.describe());
  throw SubmissionFault(
      Verdict::kCompileError,
      log.empty() ? "the compiler " + end.describe() + " and said nothing" : telling_part(log));
}

ExitStatus wait_for(Sandbox& sandbox, double deadline_s) {
  const double until = now_us() + deadline_s * 1e6;
  while (sandbox.poll()) {
    throw_if_interrupted();
    if (now_us() > until) {
      ExitStatus end = sandbox.finish();
      end.deadline_passed = true;
      return end;
    }
    sleep_us(2000);
  }
  return sandbox.finish();
}

/// Compiles; fills command and log; returns the bytes of the shared object.
std::string compile(const Submission& s, const Compiler& c, const BuildOptions& o, Artifact& a) {
  const SandboxKind kind = resolve_sandbox(o.sandbox);
  const Workspace w(kind != SandboxKind::kNone);
  write_files(s.files, w.source());
  // A copy: the compiler's user need not be able to read where Assay lies.
  write_files({{"assay/kernel.h", abi_header()}}, w.include());
  const std::vector<std::string> argv = command_line(s, c, w);
  a.command = join(argv, " ");
  SandboxPolicy policy;
  policy.program = SandboxPolicy::Program::kCompiler;
  policy.binds = {{w.source(), w.source_inside(), false},
                  {w.output(), w.output_inside(), true},
                  {w.include(), w.include_inside(), false}};
  const auto sandbox = start_sandboxed(kind, policy, argv, -1);
  const ExitStatus end = wait_for(*sandbox, o.deadline_s);
  a.log = without(sandbox->output(), w.source_inside() + "/");
  const fs::path object = w.output() / "kernel.so";
  if (!end.exited || end.code != 0 || end.output_exceeded) report_failure(end, a.log, o);
  if (fs::is_symlink(object) || !fs::is_regular_file(object))
    throw SubmissionFault(Verdict::kCompileError, "the compiler produced no shared object");
  return read_file(object);
}

/// What is in the cache under this key, if it is whole.
bool read_cached(const fs::path& object, Artifact& a) {
  const fs::path notes = fs::path(object).replace_extension(".json");
  if (!fs::exists(object) || !fs::exists(notes)) return false;
  const Json j = Json::parse(read_file(notes), nullptr, false);
  if (!j.is_object()) return false;
  a.sha256 = j.value("sha256", "");
  a.command = j.value("command", "");
  a.log = j.value("log", "");
  a.cached = true;
  return sha256_hex(read_file(object)) == a.sha256;
}

}  // namespace

Artifact build(const Submission& s, const BuildOptions& o) {
  const double begin_us = now_us();
  const Compiler compiler = find_compiler(s.language, o.arch);
  Artifact a;
  a.compiler = compiler.version;
  a.shared_object = cache_dir() / "build" / (cache_key(s, compiler) + ".so");
  if (!read_cached(a.shared_object, a)) {
    a.cached = false;
    const std::string bytes = compile(s, compiler, o, a);
    a.sha256 = sha256_hex(bytes);
    const Json notes = {{"sha256", a.sha256}, {"command", a.command}, {"log", a.log}};
    write_file_atomically(a.shared_object, bytes);
    write_file_atomically(fs::path(a.shared_object).replace_extension(".json"),
                          notes.dump(1, ' ', false, Json::error_handler_t::replace));
  }
  a.build_s = (now_us() - begin_us) * 1e-6;
  return a;
}

}  // namespace assay

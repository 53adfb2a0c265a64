// SPDX-License-Identifier: Apache-2.0
// The built program, as a person or a script meets it: bad input is one clear line and the right
// exit code, and nothing is lost or left behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

#include "judge/base/clock.h"
#include "judge/base/json.h"
#include "judge/base/paths.h"
#include "judge/cli/print.h"
#include "judge/record/sqlite.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;  ///< as a shell tells it: 128 + the signal that killed it
  bool exited = false;
  std::string out, err;
};

class Program : public testing::Test {
 protected:
  /// Everything it writes goes below a folder of its own, temporary files included; processes it
  /// leaves behind become children of this one.
  Program() {
    fs::create_directory(dir_.path() / "tmp");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }

  pid_t start(const std::vector<std::string>& args, const std::string& outputs = "") {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::setenv("ASSAY_STATE", state_.c_str(), 1);
    ::setenv("ASSAY_CACHE", (dir_.path() / "cache").c_str(), 1);
    ::setenv("ASSAY_HOME", home_.c_str(), 1);
    ::setenv("TMPDIR", (dir_.path() / "tmp").c_str(), 1);
    redirect(outputs + "out", STDOUT_FILENO);
    redirect(outputs + "err", STDERR_FILENO);
    if (before_exec_) before_exec_();
    std::vector<char*> argv;
    std::vector<std::string> all = {ASSAY_BUILD_DIR "/assay"};
    all.insert(all.end(), args.begin(), args.end());
    for (std::string& a : all) argv.push_back(a.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  Outcome finish(pid_t pid, const std::string& outputs = "") {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), WIFEXITED(status),
            read_file(dir_.path() / (outputs + "out")), read_file(dir_.path() / (outputs + "err"))};
  }
  Outcome run(const std::vector<std::string>& args) { return finish(start(args)); }
  /// While another one runs.
  Outcome other(const std::vector<std::string>& args) {
    return finish(start(args, "other_"), "other_");
  }

  /// One line on stderr that begins with the program's name and holds `part`.
  static void expect_one_line(const Outcome& o, int code, const std::string& part) {
    EXPECT_EQ(o.code, code) << o.err << o.out;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
    EXPECT_EQ(o.err.rfind("assay: ", 0), 0u) << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  }
  void expect_nothing_left() {
    // An orphan that was killed may still be dying.
    const double begin_us = now_us();
    pid_t orphan = 0;
    while ((orphan = ::waitpid(-1, nullptr, WNOHANG)) >= 0 && now_us() - begin_us < 5e6)
      if (orphan == 0) sleep_us(1'000);
    EXPECT_TRUE(orphan == -1 && errno == ECHILD) << "a process is left";
    EXPECT_TRUE(fs::is_empty(dir_.path() / "tmp"))
        << fs::directory_iterator(dir_.path() / "tmp")->path();
  }
  std::string shipped(const std::string& problem) const {
    return std::string(ASSAY_SOURCE_DIR "/kernels/") + problem + "/naive_cpp";
  }

  TempDir dir_{"assay-cli"};
  fs::path state_ = dir_.path() / "state";
  fs::path home_ = ASSAY_SOURCE_DIR;
  std::function<void()> before_exec_;  ///< in the child

 private:
  void redirect(const std::string& name, int fd) {
    const int file = ::open((dir_.path() / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(file, fd);
    ::close(file);
  }
};

TEST_F(Program, UsageErrorsAreOneLineAndExit2) {
  expect_one_line(run({}), 2, "subcommand is required");
  expect_one_line(run({"grad"}), 2, "unknown command 'grad', did you mean 'grade'?");
  expect_one_line(run({"grade", "topk"}), 2, "PATH is required");
  expect_one_line(run({"grade", "topkk", shipped("topk")}), 2, "did you mean 'topk'?");
  expect_one_line(run({"check", "topk", "/no/such"}), 2, "/no/such: no such file or folder");
  expect_one_line(run({"check", "topk", shipped("topk"), "--device", "gpu"}), 2, "--device");
  expect_one_line(run({"check", "topk", shipped("topk"), "--device", "cpu", "--shapes", "9"}), 2,
                  "shape 9 does not exist");
  expect_one_line(run({"check", "topk", shipped("topk"), "--device", "cpu", "--seed", "xyz"}), 2,
                  "'xyz' is not 1 to 16 hexadecimal digits");
  expect_one_line(run({"list", "--frobnicate"}), 2, "--frobnicate");
  expect_one_line(run({"corpus", "hag", "--device", "cpu"}), 2, "no corpus case 'hag'");
  expect_one_line(run({"replay", "12"}), 2, "there is no record 12");
}

TEST_F(Program, NumbersAreReadStrictly) {
  const auto check = [&](const std::string& option, const std::string& value) {
    return run({"check", "topk", shipped("topk"), "--device", "cpu", option, value});
  };
  for (const char* shapes : {"", "0,", "0,,1", "0 1", "1.5", "99999999999"})
    expect_one_line(check("--shapes", shapes), 2, "--shapes");
  for (const char* seed : {"", "-1", "0x", "+1", "12345678901234567"})
    expect_one_line(check("--seed", seed), 2, "--seed");
  for (const char* limit : {"0", "2.5", "many"})
    expect_one_line(run({"records", "--limit", limit}), 2, "--limit");
  expect_one_line(run({"bench", "topk", shipped("topk"), "--budget", "-1"}), 2, "--budget");
  expect_one_line(run({"show", "x"}), 2, "RECORD");
}

TEST_F(Program, OptionsMayStandBeforeArguments) {
  const Outcome o = run({"check", "--device", "cpu", "--quiet", "--seed", "0xAB", "--shapes", "2,3",
                         "topk", shipped("topk")});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("00000000000000ab"), std::string::npos) << o.out;
}

TEST_F(Program, ASubmissionWithoutSourceForTheDeviceSaysWhichOneItIsFor) {
  const fs::path folder = dir_.path() / "cuda_only";
  fs::create_directory(folder);
  std::ofstream(folder / "kernel.cu") << "// nothing\n";
  expect_one_line(run({"check", "topk", folder.string(), "--device", "cpu"}), 2, "--device cuda");
}

TEST_F(Program, AnAbsentGpuIsTheMachinesFault) {
  const Outcome o =
      run({"check", "topk", ASSAY_SOURCE_DIR "/kernels/topk/naive_cuda", "--device", "cuda"});
  if (o.code == 0) GTEST_SKIP() << "there is a GPU here";
  expect_one_line(o, 3, "no CUDA device: ");
}

TEST_F(Program, MalformedYamlIsNamedWithFileAndLine) {
  home_ = dir_.path() / "home";
  fs::create_directories(home_ / "runner" / "abi");
  fs::create_directories(home_ / "problems" / "broken");
  std::ofstream(home_ / "problems" / "broken" / "problem.yaml") << "id: broken\ntitle: [\n";
  expect_one_line(run({"list"}), 2, "problem.yaml:");
  fs::remove_all(home_ / "problems" / "broken");
  fs::create_directories(home_ / "corpus" / "one");
  std::ofstream(home_ / "corpus" / "one" / "expect.yaml") << "problem: x\nwhat: y\n";
  expect_one_line(run({"corpus", "--device", "cpu"}), 2, "expect.yaml:2: unknown key 'what'");
}

TEST_F(Program, AMissingInstallationSaysWhatToSet) {
  home_ = dir_.path() / "nowhere";
  expect_one_line(run({"list"}), 2, "ASSAY_HOME");
}

TEST_F(Program, AnUnwritableDatabaseStopsItBeforeTheWork) {
  state_ = "/proc/no/such/place";
  const double begin_us = now_us();
  expect_one_line(run({"grade", "topk", shipped("topk"), "--device", "cpu"}), 3, "ASSAY_STATE");
  EXPECT_LT(now_us() - begin_us, 20e6);
  state_ = dir_.path() / "a_file";
  std::ofstream(state_) << "x";
  expect_one_line(run({"check", "topk", shipped("topk"), "--device", "cpu"}), 3, "a_file");
  expect_nothing_left();
}

TEST_F(Program, AResultThatCannotBeWrittenIsALineAndExit3) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP();
  before_exec_ = [] { ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO); };
  for (const char* word : {"list", "records", "version", "--version", "--help"})
    expect_one_line(run({word}), 3, "cannot write the result: No space left");
  before_exec_ = [] {  // nobody reads
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(126);
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
  };
  expect_one_line(run({"list"}), 3, "cannot write the result: Broken pipe");
  before_exec_ = [] { ::close(STDOUT_FILENO); };
  expect_one_line(run({"list"}), 3, "cannot write the result: Bad file descriptor");
}

/// A limit on the size of files is met like a full disk, not with death by a signal.
TEST_F(Program, ADatabaseThatMayNotGrowIsALineAndExit3) {
  before_exec_ = [] {
    const rlimit tight{20'000, 20'000};
    ::setrlimit(RLIMIT_FSIZE, &tight);
  };
  expect_one_line(run({"grade", "topk", shipped("topk"), "--device", "cpu"}), 3, "assay.db");
}

/// The disk fills up while it works: the result is shown all the same, earlier records stay.
TEST_F(Program, ARecordThatCannotBeKeptDoesNotTakeItsResultWithIt) {
  const fs::path folder = dir_.path() / "large";
  fs::create_directories(folder);
  fs::create_directories(state_);
  std::ofstream(folder / "kernel.cpp")
      << read_file(shipped("topk") + "/kernel.cpp") << "// " << std::string(1'000'000, 'x') << "\n";
  constexpr int kCannotMount = 77;
  before_exec_ = [&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, "") != 0 ||
        ::mount("none", state_.c_str(), "tmpfs", 0, "size=512k") != 0)
      ::_exit(kCannotMount);
  };
  const Outcome o =
      run({"check", "topk", folder.string(), "--device", "cpu", "--shapes", "2", "--quiet"});
  if (o.code == kCannotMount) GTEST_SKIP() << "needs root to mount a small disk";
  expect_one_line(o, 3, "the record is not kept: cannot write");
  EXPECT_NE(o.err.find("free some space"), std::string::npos) << o.err;
  EXPECT_NE(o.out.find("verdict   accepted"), std::string::npos) << o.out;
  EXPECT_EQ(o.out.find("replay"), std::string::npos) << o.out;
  expect_nothing_left();
}

TEST_F(Program, ErrorsAreJsonTooWhenAskedFor) {
  const Outcome o = run({"grade", "nope", "x", "--json"});
  EXPECT_EQ(o.code, 2);
  const Json j = Json::parse(o.out);
  EXPECT_EQ(j["error"]["kind"], "usage");
  EXPECT_NE(std::string(j["error"]["message"]).find("unknown problem"), std::string::npos);
}

TEST_F(Program, AnAcceptedCheckIsRecordedShownAndReplayed) {
  const Outcome o =
      run({"check", "topk", shipped("topk"), "--device", "cpu", "--shapes", "2", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  const Json j = Json::parse(o.out);
  EXPECT_EQ(j["verdict"], "accepted");
  EXPECT_EQ(j["id"], 1);
  EXPECT_EQ(run({"replay", "1", "--quiet"}).code, 0);
  EXPECT_EQ(Json::parse(run({"records", "--json"}).out).size(), 1u);
  EXPECT_EQ(Json::parse(run({"show", "1", "--json"}).out)["seed"], j["seed"]);
  EXPECT_NE(run({"show", "1", "--source"}).out.find("ASSAY_EXPORT"), std::string::npos);
  expect_nothing_left();
}

TEST_F(Program, AReplayThatDiffersIsExit1AndOneThatCannotBeIsExit2) {
  ASSERT_EQ(run({"check", "topk", shipped("topk"), "--device", "cpu", "--shapes", "2"}).code, 0);
  const auto change = [&](const char* sql) { sqlite::Database(state_ / "assay.db").run(sql); };
  change("UPDATE case_result SET output_digest = '0123456789abcdef' WHERE position = 3");
  const Outcome o = run({"replay", "1", "--quiet"});
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.out.find("output 0123456789abcdef, now"), std::string::npos) << o.out;
  EXPECT_EQ(Json::parse(run({"replay", "1", "--json"}).out)["identical"], false);
  change("UPDATE record SET problem_version = 'an older one'");
  expect_one_line(run({"replay", "1", "--quiet"}), 2, "version an older one of topk");
  change("UPDATE record SET kind = 'bench'");
  expect_one_line(run({"replay", "1", "--quiet"}), 2, "no check to repeat");
  change("UPDATE record SET verdict = 'unheard_of'");
  expect_one_line(run({"show", "1"}), 3, "record 1 is damaged");
}

TEST_F(Program, AWrongSubmissionIsExit1) {
  const Outcome o = run({"check", "topk", ASSAY_SOURCE_DIR "/corpus/input_copied_to_output",
                         "--device", "cpu", "--shapes", "0", "--quiet"});
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.out.find("wrong_answer"), std::string::npos) << o.out;
}

TEST_F(Program, EveryCommandHasHelp) {
  EXPECT_EQ(run({"--version"}).out.rfind("assay ", 0), 0u);
  for (const char* c : {"list", "grade", "check", "bench", "replay", "probe", "doctor", "corpus",
                        "records", "show", "demo", "version"}) {
    const Outcome o = run({c, "--help"});
    EXPECT_EQ(o.code, 0) << c;
    EXPECT_NE(o.out.find("--json"), std::string::npos) << c;
  }
}

TEST_F(Program, EveryCommandSpeaksJson) {
  const auto json = [&](const std::vector<std::string>& args) {
    const Outcome o = run(args);
    EXPECT_EQ(o.code, 0) << args[0] << ": " << o.err << o.out;
    EXPECT_EQ(o.err, "") << args[0];
    return Json::parse(o.out);
  };
  EXPECT_EQ(json({"list", "--json"})[0]["id"], "fp8_gemm");
  EXPECT_EQ(json({"list", "topk", "--json"})["tensors"][0]["shape"], "[B, n]");
  EXPECT_TRUE(json({"version", "--json"}).contains("assay"));
  EXPECT_GT(json({"probe", "--quick", "--device", "cpu", "--json"})["measured_per_s"]["read"], 0);
  EXPECT_EQ(json({"records", "--json"}).size(), 0u);
  const Json corpus = json({"corpus", "input_copied_to_output", "--device", "cpu", "--json"});
  for (const char* key : {"cases", "caught", "missed", "false_alarms", "left_behind", "skipped"})
    EXPECT_TRUE(corpus.contains(key)) << key;
  EXPECT_EQ(corpus["caught"], 1);
  EXPECT_EQ(corpus["rows"][0]["outcome"], "caught");
  // Not accepted, perhaps, on a machine that does other things.
  const Json bench = Json::parse(run({"bench", "topk", shipped("topk"), "--device", "cpu",
                                      "--shapes", "2", "--budget", "0.1", "--json"})
                                     .out);
  for (const char* key : {"median_us", "p5_us", "p95_us", "wall_us", "frac", "sol", "physics_us"})
    EXPECT_TRUE(bench["shapes"][0].contains(key)) << key;
}

TEST_F(Program, TheDoctorNamesWhatDoesNotWorkAndWhatToDo) {
  state_ = dir_.path() / "a_file";
  std::ofstream(state_) << "x";
  const Outcome o = run({"doctor", "--json"});
  EXPECT_EQ(o.code, 3);
  std::vector<std::string> names;
  for (const Json& row : Json::parse(o.out)) {
    names.push_back(row["name"]);
    EXPECT_TRUE(row["name"] != "records" || row["works"] == false);
    EXPECT_TRUE(row["works"] == true || row["remedy"] != "") << row["name"];
    EXPECT_NE(row["detail"], "") << row["name"];
  }
  for (const char* name : {"namespaces", "seccomp", "cgroup", "GPU", "driver", "CUPTI", "nvdisasm"})
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
}

TEST_F(Program, SeveralMayStartAtOnceWithoutADatabase) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    state_ = dir_.path() / ("state" + std::to_string(attempt));
    std::vector<pid_t> pids;
    for (int i = 0; i < 6; ++i) pids.push_back(start({"records"}));
    for (const pid_t pid : pids) EXPECT_EQ(finish(pid).code, 0);
  }
}

/// Ctrl-C at many moments of a grade: it ends soon, says so, records nothing, leaves nothing. A
/// terminal sends it to the whole group.
TEST_F(Program, CtrlCInTheMiddleLeavesNothing) {
  before_exec_ = [] { ::setpgid(0, 0); };
  for (const double after_us : {30e3, 200e3, 700e3, 1500e3, 2500e3}) {
    const pid_t pid =
        start({"grade", "topk", shipped("topk"), "--device", "cpu", "--budget", "30"});
    sleep_us(after_us);
    ::kill(-pid, SIGINT);
    const Outcome o = finish(pid);
    EXPECT_EQ(o.code, 130) << "after " << after_us << " us: " << o.err;
    // Before main() a signal kills, which leaves nothing either.
    EXPECT_TRUE(o.exited || after_us < 500e3) << "after " << after_us << " us";
    EXPECT_TRUE(!o.exited || o.err.find("interrupted") != std::string::npos) << o.err;
    expect_nothing_left();
  }
  EXPECT_EQ(Json::parse(run({"records", "--json"}).out).size(), 0u);
}

/// Of a long command, what was finished is kept; the signal of a batch system is a Ctrl-C, too.
TEST_F(Program, ATerminatedDemoKeepsWhatWasFinished) {
  const pid_t pid = start({"demo", "--device", "cpu", "--budget", "0.05", "--json"});
  const auto records = [&] {
    std::error_code error;
    if (!fs::exists(state_ / "assay.db", error)) return Json(Json::array());
    const Outcome o = other({"records", "--json"});
    return o.code == 0 ? Json::parse(o.out) : Json(Json::array());
  };
  const double begin_us = now_us();
  while (records().empty() && now_us() - begin_us < 60e6) sleep_us(100'000);
  ::kill(pid, SIGTERM);
  const Outcome o = finish(pid);
  EXPECT_EQ(o.code, 130) << o.err;
  EXPECT_EQ(Json::parse(o.out)["error"]["kind"], "interrupted");
  EXPECT_GE(records().size(), 1u);
  expect_nothing_left();
}

TEST(Print, ATerminalIsNotMadeToObeyASubmission) {
  using namespace cli;
  EXPECT_EQ(harmless("a\tb\n"), "a\tb\n");
  EXPECT_EQ(harmless("\x1b[2J\r\x07\x7f"), "?[2J???");
  EXPECT_EQ(harmless("\u00e9 \u20ac \U0001f600"), "\u00e9 \u20ac \U0001f600");
  EXPECT_EQ(harmless("\xc2\x9b"
                     "31m"),
            "??31m");  // CSI as one character
  EXPECT_EQ(harmless("\x9b"
                     "31m \xff \xe2\x82"),
            "?31m ? ??");  // no UTF-8
  EXPECT_EQ(one_line("yaml:3:\n  bad\n\n"), "yaml:3: bad");
}

TEST(Print, TablesLineUpByCharactersNotBytes) {
  testing::internal::CaptureStdout();
  cli::print_table({{"name", "us"}, {"\u00e9\u00e9\u00e9\u00e9\u00e9", "7"}, {"b", "12"}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "name   us\n\u00e9\u00e9\u00e9\u00e9\u00e9   7\nb      12\n");
}

}  // namespace
}  // namespace assay

// SPDX-License-Identifier: Apache-2.0
// The built program, as a person or a script meets it: bad input is one clear line and the right
// exit code, and nothing is lost or left behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "judge/base/clock.h"
#include "judge/base/json.h"
#include "judge/base/paths.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string out, err;
};

class Program : public testing::Test {
 protected:
  /// Everything it writes goes below a folder of its own, temporary files included.
  Program() { fs::create_directory(dir_.path() / "tmp"); }

  pid_t start(const std::vector<std::string>& args) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::setenv("ASSAY_STATE", state_.c_str(), 1);
    ::setenv("ASSAY_CACHE", (dir_.path() / "cache").c_str(), 1);
    ::setenv("ASSAY_HOME", home_.c_str(), 1);
    ::setenv("TMPDIR", (dir_.path() / "tmp").c_str(), 1);
    redirect("out", STDOUT_FILENO);
    redirect("err", STDERR_FILENO);
    std::vector<char*> argv;
    std::vector<std::string> all = {ASSAY_BUILD_DIR "/assay"};
    all.insert(all.end(), args.begin(), args.end());
    for (std::string& a : all) argv.push_back(a.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  Outcome finish(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            read_file(dir_.path() / "out"), read_file(dir_.path() / "err")};
  }
  Outcome run(const std::vector<std::string>& args) { return finish(start(args)); }

  /// One line on stderr that begins with the program's name and holds `part`.
  static void expect_one_line(const Outcome& o, int code, const std::string& part) {
    EXPECT_EQ(o.code, code) << o.err << o.out;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
    EXPECT_EQ(o.err.rfind("assay: ", 0), 0u) << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  }
  void expect_nothing_left() {
    EXPECT_TRUE(fs::is_empty(dir_.path() / "tmp"))
        << fs::directory_iterator(dir_.path() / "tmp")->path();
  }
  std::string shipped(const std::string& problem) const {
    return std::string(ASSAY_SOURCE_DIR "/kernels/") + problem + "/naive_cpp";
  }

  TempDir dir_{"assay-cli"};
  fs::path state_ = dir_.path() / "state";
  fs::path home_ = ASSAY_SOURCE_DIR;

 private:
  void redirect(const char* name, int fd) {
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
                  "'xyz' is not a seed");
  expect_one_line(run({"list", "--frobnicate"}), 2, "--frobnicate");
  expect_one_line(run({"corpus", "hag", "--device", "cpu"}), 2, "no corpus case 'hag'");
  expect_one_line(run({"replay", "12"}), 2, "there is no record 12");
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

TEST_F(Program, AFullDiskIsALineAndExit3) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int full = ::open("/dev/full", O_WRONLY);
    ::dup2(full, STDOUT_FILENO);
    ::close(STDERR_FILENO);
    ::setenv("ASSAY_HOME", home_.c_str(), 1);
    ::execl(ASSAY_BUILD_DIR "/assay", "assay", "list", nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
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

TEST_F(Program, AWrongSubmissionIsExit1) {
  const Outcome o = run({"check", "topk", ASSAY_SOURCE_DIR "/corpus/input_copied_to_output",
                         "--device", "cpu", "--shapes", "0", "--quiet"});
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.out.find("wrong_answer"), std::string::npos) << o.out;
}

TEST_F(Program, EveryCommandHasHelp) {
  for (const char* c : {"list", "grade", "check", "bench", "replay", "probe", "doctor", "corpus",
                        "records", "show", "demo", "version"}) {
    const Outcome o = run({c, "--help"});
    EXPECT_EQ(o.code, 0) << c;
    EXPECT_NE(o.out.find("--json"), std::string::npos) << c;
  }
}

/// Ctrl-C at many moments of a grade: it ends soon, says so, records nothing, leaves nothing.
TEST_F(Program, CtrlCInTheMiddleLeavesNothing) {
  for (const double after_us : {30e3, 200e3, 700e3, 1500e3, 2500e3}) {
    const pid_t pid =
        start({"grade", "topk", shipped("topk"), "--device", "cpu", "--budget", "30"});
    sleep_us(after_us);
    ::kill(pid, SIGINT);
    const Outcome o = finish(pid);
    EXPECT_EQ(o.code, 130) << "after " << after_us << " us: " << o.err;
    EXPECT_NE(o.err.find("interrupted"), std::string::npos) << o.err;
    expect_nothing_left();
  }
  EXPECT_EQ(Json::parse(run({"records", "--json"}).out).size(), 0u);
}

}  // namespace
}  // namespace assay

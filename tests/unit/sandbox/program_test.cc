// SPDX-License-Identifier: Apache-2.0
// Ordinary programs (compilers) in the sandbox: how they end, what they see, and that nothing of
// them is left.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "judge/base/fault.h"
#include "tests/unit/sandbox/fixture.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class Program : public SandboxTest {};
ASSAY_EVERY_SANDBOX(Program);

TEST_P(Program, ExitCodeAndBothStreamsArrive) {
  const ExitStatus end = shell("echo to stdout; echo to stderr >&2; exit 7");
  EXPECT_TRUE(end.exited);
  EXPECT_EQ(7, end.code);
  EXPECT_EQ("to stdout\nto stderr\n", printed_);
  EXPECT_EQ("exited with code 7", end.describe());
}

TEST_P(Program, SignalArrives) {
  const ExitStatus end = shell("kill -SEGV $$");
  EXPECT_FALSE(end.exited);
  EXPECT_EQ(SIGSEGV, end.code);
  EXPECT_EQ("killed by signal 11 (SIGSEGV)", end.describe());
}

TEST_P(Program, AnExitCodeIsNotASignal) {
  const ExitStatus end = program("forged_exit");
  EXPECT_TRUE(end.exited);
  EXPECT_FALSE(end.forbidden_call);
}

TEST_P(Program, ForbiddenCallsAreTold) {
  for (const char* action : {"socket", "ptrace", "mount", "unshare", "bpf", "keyctl"}) {
    const ExitStatus end = program(action);
    EXPECT_TRUE(end.forbidden_call) << action << ": " << end.describe() << " " << printed_;
  }
}

TEST_P(Program, MayStartOthers) {
  EXPECT_EQ(0, program("fork").code) << printed_;
  EXPECT_NE(std::string::npos, printed_.find("fork: done"));
  EXPECT_EQ(0, shell("echo 'int main(){}' > /tmp/" + marker_ + ".cc && g++ -o /tmp/" + marker_ +
                     " /tmp/" + marker_ + ".cc && /tmp/" + marker_ + "; r=$?; rm -f /tmp/" +
                     marker_ + "*; exit $r")
                   .code)
      << printed_;
}

TEST_P(Program, SeesNothingOfTheJudge) {
  if (!walled()) GTEST_SKIP() << "no walls";
  const std::string outside = folder_.path().string();
  shell("ls -d " + outside +
        " /root /home /etc/passwd /var /proc/sys/kernel/../../1/root/root 2>/dev/null; ls /tmp");
  EXPECT_EQ("", printed_);
  shell("ps() { ls -d /proc/[0-9]* | wc -l; }; ps");
  EXPECT_LE(std::stoi(printed_), 6);
}

TEST_P(Program, HasNoNetwork) {
  if (!walled()) GTEST_SKIP() << "no walls";
  shell("tail -n +3 /proc/net/dev | grep -v ' lo:'; cat /proc/net/route | tail -n +2");
  EXPECT_EQ("", printed_);
}

TEST_P(Program, CannotWriteTheSystem) {
  if (!walled()) GTEST_SKIP() << "no walls";
  shell(
      "for d in / /usr /dev /etc /assay /bin/; do echo x > $d/x && echo wrote $d; done "
      "2>/dev/null");
  EXPECT_EQ("", printed_);
  EXPECT_EQ(0, shell("echo x > /tmp/x && echo x > /dev/shm/x && echo x > /assay/folder/x").code);
  EXPECT_TRUE(fs::exists(folder_.path() / "x"));
}

TEST_P(Program, HasNoPrivilegesAndNothingOfTheEnvironment) {
  ::setenv("ASSAY_SECRET", "secret", 1);
  shell("env; grep -E 'Cap(Eff|Prm|Amb)|NoNewPrivs|Seccomp:' /proc/self/status; ls /proc/self/fd");
  ::unsetenv("ASSAY_SECRET");
  EXPECT_EQ(std::string::npos, printed_.find("secret"));
  EXPECT_NE(std::string::npos, printed_.find("CapEff:\t0000000000000000")) << printed_;
  EXPECT_NE(std::string::npos, printed_.find("CapPrm:\t0000000000000000")) << printed_;
  EXPECT_NE(std::string::npos, printed_.find("NoNewPrivs:\t1")) << printed_;
  EXPECT_NE(std::string::npos, printed_.find("Seccomp:\t2")) << printed_;
  EXPECT_NE(std::string::npos, printed_.find("\n3\n")) << printed_;
  EXPECT_EQ(std::string::npos, printed_.find("\n5\n")) << printed_;  // 4 is the folder ls reads
}

TEST_P(Program, OrphansDoNotOutliveIt) {
  const ExitStatus end = shell("(setsid sh -c 'sleep 1000; : " + marker_ + "' &); exit 3");
  EXPECT_EQ(3, end.code);
  EXPECT_EQ(std::vector<std::string>{}, survivors());
}

TEST_P(Program, DeadlineKillsTheTree) {
  const auto sandbox = start_shell("sh -c 'sleep 1000; : " + marker_ + "' & sleep 1000");
  const ExitStatus end = sandbox->wait(milliseconds(200));
  EXPECT_TRUE(end.deadline_passed);
  EXPECT_FALSE(end.exited);
  EXPECT_EQ(std::vector<std::string>{}, survivors());
  EXPECT_FALSE(sandbox->poll());
  EXPECT_TRUE(sandbox->finish().deadline_passed);  // says the same again
}

TEST_P(Program, ForkBombIsKilled) {
  policy_.limits.threads = 40;
  const auto sandbox = start_shell("f() { f & f & wait; }; f; sleep 1000");
  const ExitStatus end = sandbox->wait(seconds(20));
  EXPECT_TRUE(end.tasks_exceeded) << end.describe() << " " << sandbox->output();
  EXPECT_EQ(std::vector<std::string>{}, survivors());
}

TEST_P(Program, MemoryOfAllProcessesCountsTogether) {
  const std::string hog = folder_inside() + "/hostile memory " + marker_ + " & ";
  policy_.limits.memory_bytes = std::int64_t{1200} << 20;  // each alone, of 1 GiB, would pass
  const auto sandbox = start_shell(hog + hog + "wait");
  EXPECT_TRUE(sandbox->wait(seconds(20)).memory_exceeded);
  EXPECT_EQ(std::vector<std::string>{}, survivors());
}

TEST_P(Program, OutputIsCapped) {
  policy_.limits.output_bytes = 100'000;
  const auto sandbox = start({folder_inside() + "/hostile", "flood"});
  EXPECT_TRUE(sandbox->wait(seconds(20)).output_exceeded);
  EXPECT_EQ(100'000u, sandbox->output().size());
}

TEST_P(Program, FilesAreCapped) {
  policy_.limits.file_bytes = 8 << 20;
  const ExitStatus end = program("big_file");
  EXPECT_TRUE(!end.exited && end.code == SIGXFSZ) << end.describe() << " " << printed_;
  if (!walled()) fs::remove("/tmp/big");
}

TEST_P(Program, NothingIsLeftBehind) {
  const auto mounts = [] { return read_file("/proc/self/mountinfo"); };
  const auto descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const std::string mounts_before = mounts();
  const auto descriptors_before = descriptors();
  for (int i = 0; i < 3; ++i) start_shell("sleep 1000");
  EXPECT_EQ(std::vector<std::string>{}, survivors());
  EXPECT_EQ(mounts_before, mounts());
  EXPECT_EQ(descriptors_before, descriptors());
  EXPECT_EQ(-1, ::waitpid(-1, nullptr, WNOHANG)) << "a child was not reaped";
}

TEST_P(Program, DiesWithTheJudge) {
  const pid_t judge = ::fork();
  if (judge == 0) {
    const auto sandbox = start_shell("sleep 1000 & sleep 1000");
    for (int i = 0; i < 1000 && survivors().empty(); ++i)
      std::this_thread::sleep_for(milliseconds(10));
    ::_exit(survivors().empty() ? 1 : 0);  // without a destructor
  }
  int status = 0;
  ::waitpid(judge, &status, 0);
  ASSERT_EQ(0, status) << "it did not run in the first place";
  for (int i = 0; i < 1000 && !survivors().empty(); ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(std::vector<std::string>{}, survivors());
}

TEST_P(Program, WhatCannotStartIsTheJudgesFault) {
  try {
    start({"/no/such/compiler"});
    FAIL();
  } catch (const JudgeError& e) {
    EXPECT_NE(std::string::npos, std::string(e.what()).find("/no/such/compiler: No such file"))
        << e.what();
  }
  policy_.binds.push_back({"/no/such/folder", "/assay/other"});
  if (walled()) {
    EXPECT_THROW(start({"/bin/true"}), JudgeError);
  }
}

}  // namespace
}  // namespace assay

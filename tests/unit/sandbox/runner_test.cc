// SPDX-License-Identifier: Apache-2.0
// Hostile code inside the runner: which system calls kill, which are refused, what the watchdog
// sees.
#include <sys/mman.h>

#include "tests/unit/sandbox/fixture.h"

namespace assay {
namespace {

class Runner : public SandboxTest {};
ASSAY_EVERY_SANDBOX(Runner);

TEST_P(Runner, HonestCodeRuns) {
  const ExitStatus end = runner("honest");
  EXPECT_EQ("exited with code 0", end.describe());
  EXPECT_EQ("honest: done\n", printed_);
}

TEST_P(Runner, ForbiddenCallsKill) {
  for (const char* action :
       {"fork", "vfork", "clone", "execve", "ptrace", "process_vm_readv", "process_vm_writev",
        "socket", "socket_unix", "connect", "bind", "mount", "unshare", "setns", "bpf",
        "userfaultfd", "keyctl", "pidfd_getfd", "old_abi"}) {
    const ExitStatus end = runner(action);
    EXPECT_TRUE(end.forbidden_call) << action << ": " << end.describe() << " " << printed_;
    EXPECT_EQ(SIGSYS, end.code) << action;
  }
}

TEST_P(Runner, WaysOutOfBeingStoppedKillOrAreRefused) {
  for (const char* action : {"kill_parent", "kill_all", "continue_self", "continue_self_wide",
                             "continue_thread", "continue_by_io"}) {
    const ExitStatus end = runner(action);
    EXPECT_TRUE(end.forbidden_call) << action << ": " << end.describe() << " " << printed_;
  }
  EXPECT_EQ(0, runner("continue_by_timer").code);
  EXPECT_EQ("timer: Operation not permitted\n", printed_);
}

TEST_P(Runner, WhatLibrariesTryIsRefusedKindly) {
  const struct {
    const char *action, *answer;
  } kCases[] = {{"memfd", "memfd: Function not implemented\n"},
                {"clone3", "clone3: Function not implemented\n"},
                {"io_uring", "io_uring: Function not implemented\n"},
                {"chown", "chown: Operation not permitted\n"},
                {"perf", "perf: Operation not permitted\n"}};
  for (const auto& c : kCases) {
    EXPECT_EQ("exited with code 0", runner(c.action).describe()) << c.action;
    EXPECT_EQ(c.answer, printed_);
  }
}

TEST_P(Runner, EndsAreToldApart) {
  EXPECT_EQ("killed by signal 11 (SIGSEGV)", runner("segv").describe());
  EXPECT_EQ("killed by signal 6 (SIGABRT)", runner("abort").describe());
  EXPECT_EQ("exited with code 42", runner("exit").describe());
  EXPECT_FALSE(runner("forged_exit").forbidden_call);
}

TEST_P(Runner, ADeadRunnersSocketCloses) {
  const auto sandbox = start_runner("abort");
  EXPECT_EQ(wire::Receive::kClosed, receive());
}

TEST_P(Runner, MemoryIsWatched) {
  policy_.limits.memory_bytes = std::int64_t{256} << 20;
  for (const char* action : {"memory", "shared_memory"}) {
    const auto sandbox = start_runner(action);
    const ExitStatus end = sandbox->wait(seconds(20));
    EXPECT_TRUE(end.memory_exceeded) << action << ": " << end.describe();
    EXPECT_FALSE(end.exited);
  }
}

TEST_P(Runner, ArenasDoNotCount) {
  policy_.limits.memory_bytes = std::int64_t{64} << 20;
  constexpr std::size_t kArena = 128 << 20;
  const UniqueFd arena(::memfd_create("arena", MFD_CLOEXEC));
  ASSERT_EQ(0, ::ftruncate(arena.get(), kArena));
  const auto sandbox = start_empty_runner();
  send(wire::MapArena{0, kArena, true}, arena.get());
  ASSERT_EQ(wire::Receive::kMessage, receive());
  EXPECT_TRUE(sandbox->poll());
  load("shared_memory");  // on top of it
  EXPECT_TRUE(sandbox->wait(seconds(20)).memory_exceeded);
}

TEST_P(Runner, ThreadsAreWatched) {
  policy_.limits.threads = 20;
  const auto sandbox = start_runner("threads");
  EXPECT_TRUE(sandbox->wait(seconds(20)).tasks_exceeded);
}

TEST_P(Runner, OutputIsWatched) {
  policy_.limits.output_bytes = 10'000;
  const auto sandbox = start_runner("flood");
  EXPECT_TRUE(sandbox->wait(seconds(20)).output_exceeded);
  EXPECT_EQ(10'000u, sandbox->output().size());
}

TEST_P(Runner, FilesAreCapped) {
  policy_.limits.file_bytes = 8 << 20;
  for (const char* action : {"big_file", "big_shm"}) {
    const ExitStatus end = runner(action);
    EXPECT_TRUE(!end.exited && end.code == SIGXFSZ) << end.describe() << " " << printed_;
  }
  if (!walled())
    for (const char* file : {"/tmp/big", "/dev/shm/big"}) std::filesystem::remove(file);
}

}  // namespace
}  // namespace assay

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "judge/base/fault.h"
#include "judge/sandbox/sandbox.h"

namespace assay {
namespace {

TEST(SandboxKind, NamesGoBothWays) {
  for (const SandboxKind kind :
       {SandboxKind::kAuto, SandboxKind::kBubblewrap, SandboxKind::kNamespaces, SandboxKind::kNone})
    EXPECT_EQ(kind, sandbox_kind_from_name(name(kind)));
}

TEST(SandboxKind, AnUnknownNameGetsASuggestion) {
  try {
    sandbox_kind_from_name("bwarp");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string::npos, std::string(e.what()).find("did you mean 'bwrap'")) << e.what();
  }
}

TEST(SandboxKind, OnlyAutoIsResolved) {
  EXPECT_EQ(SandboxKind::kNone, resolve_sandbox(SandboxKind::kNone));
  EXPECT_EQ(SandboxKind::kBubblewrap, resolve_sandbox(SandboxKind::kBubblewrap));
}

TEST(SandboxKind, AMissingBubblewrapSaysWhatToDo) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  try {
    start_sandboxed(SandboxKind::kBubblewrap, {}, {"/assay/runner", "serve"}, -1);
    ADD_FAILURE();
  } catch (const JudgeError& e) {
    EXPECT_NE(std::string::npos, std::string(e.what()).find("install bubblewrap")) << e.what();
  }
  ::setenv("PATH", path.c_str(), 1);
}

TEST(ExitStatus, SaysWhatHappened) {
  EXPECT_EQ("exited with code 3", (ExitStatus{.exited = true, .code = 3}.describe()));
  EXPECT_EQ("killed by signal 31 (SIGSYS), a forbidden system call",
            (ExitStatus{.code = SIGSYS, .forbidden_call = true}.describe()));
  EXPECT_EQ("killed by signal 9 (SIGKILL), used more memory than allowed",
            (ExitStatus{.code = SIGKILL, .memory_exceeded = true}.describe()));
}

TEST(Probes, NameTheirMechanismAndRemedy) {
  const auto probes = probe_sandbox();
  ASSERT_EQ(4u, probes.size());
  for (const SandboxProbe& p : probes) {
    EXPECT_FALSE(p.detail.empty()) << p.name;
    EXPECT_EQ(p.works, p.remedy.empty()) << p.name;
  }
}

}  // namespace
}  // namespace assay

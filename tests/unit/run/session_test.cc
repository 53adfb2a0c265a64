// SPDX-License-Identifier: Apache-2.0
// A real runner process on the cpu, with small submissions that behave and misbehave.
#include "judge/run/session.h"

#include <dirent.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "judge/base/clock.h"
#include "judge/base/fault.h"
#include "judge/base/paths.h"

namespace assay {
namespace {

std::string source(const std::string& run, const std::string& before = "") {
  return "#include <assay/kernel.h>\n#include <unistd.h>\n#include <cstdlib>\n" + before +
         "ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, "
         "void**) { "
         "return 0; }\n"
         "ASSAY_EXPORT int assay_run(void*, const assay_tensor* in, int32_t, const assay_tensor* "
         "out, "
         "int32_t, void*) {\n  (void)in; auto* y = static_cast<int64_t*>(out[0].data); (void)y;\n" +
         run + "\n  return 0;\n}\nASSAY_EXPORT void assay_release(void*) {}\n";
}

class SessionTest : public testing::Test {
 protected:
  /// One slot: 8 bytes in, 8 bytes out.
  void open(const std::string& code, std::int64_t memory_bytes = std::int64_t{1} << 30) {
    input_ = device_->allocate_arena(device_->arena_granularity(), false);
    output_ = device_->allocate_arena(device_->arena_granularity(), true);
    session_ =
        std::make_unique<Session>(*device_, SessionOptions{SandboxKind::kAuto, 1, memory_bytes});
    const std::uint32_t in = session_->map(*input_), out = session_->map(*output_);
    session_->bind(0, {{in, 0, DType::kI64, {1}}}, {{out, 64, DType::kI64, {1}}});
    session_->bind(1, {{in, 0, DType::kI64, {1}}}, {{out, 128, DType::kI64, {1}}});
    session_->load(build(make_submission("t", Language::kCpp, {{"kernel.cpp", code}}), {}));
    problem_.id = "t";
    session_->prepare(problem_, Shape{{{"n", 1}}}, {}, 10);
  }
  std::int64_t output(int slot) const {
    return static_cast<const std::int64_t*>(output_->data())[slot == 0 ? 8 : 16];
  }
  Verdict verdict_of(const std::string& code, double deadline_s = 10) {
    try {
      open(code);
      session_->run_window({{0}}, deadline_s);
    } catch (const SubmissionFault& f) {
      message_ = f.what();
      return f.verdict();
    }
    return Verdict::kAccepted;
  }

  std::unique_ptr<Device> device_ = open_cpu_device();
  std::unique_ptr<Arena> input_, output_;
  std::unique_ptr<Session> session_;
  Problem problem_;
  std::string message_;
};

TEST_F(SessionTest, ACallSeesItsBuffers) {
  open(source("  *y = *static_cast<const int64_t*>(in[0].data) + 1;"));
  *static_cast<std::int64_t*>(input_->data()) = 41;
  const WindowResult r = session_->run_window({{0, 1, 0}}, 10);
  EXPECT_EQ(output(0), 42);
  EXPECT_EQ(output(1), 42);
  EXPECT_EQ(r.call_us.size(), 3u);
  EXPECT_GT(r.wall_us, 0);
  EXPECT_EQ(r.returned, r.settled);
}

TEST_F(SessionTest, BetweenWindowsNothingOfTheRunnerMoves) {
  open(source(
      "  static pthread_t t; static volatile int64_t* p; p = y;\n"
      "  pthread_create(&t, nullptr, [](void*) -> void* { for (;;) *p = *p + 1; }, nullptr);",
      "#include <pthread.h>\n"));
  session_->run_window({{0}}, 10);
  const std::int64_t before = output(0);
  sleep_us(30e3);
  EXPECT_EQ(output(0), before);
  session_->thaw();
  sleep_us(30e3);
  session_->freeze();
  EXPECT_NE(output(0), before);
}

TEST_F(SessionTest, EndsAreTheSubmissionsFaultInTheRightWords) {
  EXPECT_EQ(verdict_of(source("  *(volatile int*)8 = 1;")), Verdict::kRuntimeError);
  EXPECT_NE(message_.find("SIGSEGV"), std::string::npos) << message_;
  EXPECT_EQ(verdict_of(source("  _exit(0);")), Verdict::kRuntimeError);
  EXPECT_EQ(verdict_of(source("  if (fork() == 0) _exit(0);")), Verdict::kSandboxViolation);
  EXPECT_EQ(verdict_of(source("  for (;;) {}"), 0.5), Verdict::kTimeLimit);
  EXPECT_EQ(verdict_of(source("  return 7;")), Verdict::kRuntimeError);
  EXPECT_EQ(verdict_of(source("  return ASSAY_UNSUPPORTED;")), Verdict::kRefused);
  EXPECT_EQ(verdict_of(source("  throw 3;")), Verdict::kRuntimeError);
}

TEST_F(SessionTest, WritingAnInputFaults) {
  EXPECT_EQ(verdict_of(source("  *static_cast<int64_t*>(in[0].data) = 1;")),
            Verdict::kRuntimeError);
  EXPECT_EQ(verdict_of(source("  (void)static_cast<volatile char*>(in[0].data)[4096];")),
            Verdict::kRuntimeError);
}

TEST_F(SessionTest, LiesOnTheWireAreViolations) {
  for (const char* lie :
       {"  write(3, \"\", 1);", "  char b[2000] = {}; write(3, b, sizeof b);", "  close(3);",
        "  unsigned char b[14] = {1, 1, 0, 0, 0}; write(3, b, sizeof b);"})
    EXPECT_NE(verdict_of(source(lie)), Verdict::kAccepted) << lie;
}

TEST_F(SessionTest, MemoryIsBounded) {
  open(
      source("  for (int i = 0; i < 400; ++i) { char* p = (char*)malloc(1 << 20); "
             "for (int j = 0; j < 1 << 20; j += 4096) ((volatile char*)p)[j] = 1; usleep(1000); }"),
      std::int64_t{128} << 20);
  try {
    session_->run_window({{0}}, 20);
    FAIL() << "it was let go on";
  } catch (const SubmissionFault& f) {
    EXPECT_EQ(f.verdict(), Verdict::kMemoryLimit) << f.what();
  }
}

TEST_F(SessionTest, AMissingFunctionIsNamed) {
  EXPECT_EQ(verdict_of("extern \"C\" int nothing() { return 0; }\n"), Verdict::kRuntimeError);
  EXPECT_NE(message_.find("assay_prepare"), std::string::npos) << message_;
}

TEST_F(SessionTest, WhatItPrintsIsKept) {
  open(source("  puts(\"hello\"); fflush(stdout);", "#include <cstdio>\n"));
  session_->run_window({{0}}, 10);
  EXPECT_EQ(session_->output(), "hello\n");
}

/// No process, no shared memory, no descriptor of a session outlives it, however it ended.
TEST_F(SessionTest, NothingIsLeft) {
  const auto descriptors = [] {
    int n = 0;
    DIR* d = ::opendir("/proc/self/fd");
    while (::readdir(d) != nullptr) ++n;
    ::closedir(d);
    return n;
  };
  verdict_of(source("  *y = 1;"));
  session_.reset();
  const int before = descriptors();
  for (const char* code : {"  *y = 1;", "  abort();", "  for (;;) {}"}) {
    verdict_of(source(code), 0.3);
    session_.reset();
    input_.reset();
    output_.reset();
  }
  EXPECT_LE(descriptors(), before);
}

}  // namespace
}  // namespace assay

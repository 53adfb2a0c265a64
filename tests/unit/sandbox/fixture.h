// SPDX-License-Identifier: Apache-2.0
// Programs in every kind of sandbox that works on this machine.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "judge/base/fd.h"
#include "judge/base/hash.h"
#include "judge/base/paths.h"
#include "judge/sandbox/sandbox.h"
#include "wire/channel.h"
#include "wire/codec.h"

namespace assay {

/// In the names of tests that fail.
inline void PrintTo(SandboxKind kind, std::ostream* out) {
  *out << name(kind);
}

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A folder that every sandbox shows at folder_inside(), writable, with the hostile code in it.
class SandboxTest : public ::testing::TestWithParam<SandboxKind> {
 protected:
  static void SetUpTestSuite() {
    build("hostile", "-DAS_PROGRAM");
    build("hostile.so", "-fPIC -shared");
  }

  void SetUp() override {
    if (walled() && !works(GetParam())) GTEST_SKIP() << name(GetParam()) << " does not work here";
    namespace fs = std::filesystem;
    fs::permissions(folder_.path(), fs::perms(0777));
    for (const char* file : {"hostile", "hostile.so"})
      fs::copy_file(fs::path(kBuilt) / file, folder_.path() / file);
    std::ofstream(folder_.path() / "counter") << std::string(4096, '\0');
    fs::permissions(folder_.path() / "counter", fs::perms(0666));
    policy_.binds = {{folder_.path(), "/assay/folder", true}, {runner_path(), "/assay/runner"}};
  }

  bool walled() const { return GetParam() != SandboxKind::kNone; }
  std::string folder_inside() const { return walled() ? "/assay/folder" : folder_.path().string(); }

  static bool works(SandboxKind kind) {
    for (const SandboxProbe& p : probe_sandbox())
      if (p.name == (kind == SandboxKind::kBubblewrap ? "bubblewrap" : "namespaces"))
        return p.works;
    return false;
  }

  // ---- under the compilers' filter

  std::unique_ptr<Sandbox> start(const std::vector<std::string>& argv) {
    policy_.program = SandboxPolicy::Program::kCompiler;
    return start_sandboxed(GetParam(), policy_, argv, -1);
  }
  /// `marker_` is in the command line of every process of it.
  std::unique_ptr<Sandbox> start_shell(const std::string& script) {
    return start({"/bin/sh", "-c", script + " # " + marker_});
  }
  ExitStatus shell(const std::string& script) {
    const auto sandbox = start_shell(script);
    const ExitStatus end = sandbox->wait(seconds(20));
    printed_ = sandbox->output();
    return end;
  }
  ExitStatus program(const std::string& action) {
    const auto sandbox = start({folder_inside() + "/hostile", action, marker_});
    const ExitStatus end = sandbox->wait(seconds(20));
    printed_ = sandbox->output();
    return end;
  }

  // ---- in the runner

  /// The runner, told to load an object whose constructor does `action`.
  std::unique_ptr<Sandbox> start_runner(const std::string& action) {
    auto sandbox = start_empty_runner();
    load(action);
    return sandbox;
  }
  std::unique_ptr<Sandbox> start_empty_runner() {
    policy_.program = SandboxPolicy::Program::kRunner;
    int ends[2];
    EXPECT_EQ(0, ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    socket_ = UniqueFd(ends[0]);
    const UniqueFd other(ends[1]);
    auto sandbox = start_sandboxed(GetParam(), policy_,
                                   {walled() ? "/assay/runner" : runner_path().string(), "serve"},
                                   other.get());
    send(wire::Hello{});
    EXPECT_EQ(wire::Receive::kMessage, receive());
    return sandbox;
  }
  void load(const std::string& action) {
    std::filesystem::copy_file(folder_.path() / "hostile.so", folder_.path() / (action + ".so"));
    send(wire::Load{folder_inside() + "/" + action + ".so"});
  }
  void send(const wire::Request& request, int fd = -1) {
    wire::Channel(socket_.get()).send(wire::encode(request), fd);
  }
  wire::Receive receive() {
    std::vector<std::byte> message;
    return wire::Channel(socket_.get()).receive(message, 20'000);
  }
  ExitStatus runner(const std::string& action) {
    const auto sandbox = start_runner(action);
    if (receive() == wire::Receive::kMessage) send(wire::Shutdown{});
    const ExitStatus end = sandbox->wait(seconds(20));
    printed_ = sandbox->output();
    return end;
  }

  /// Processes on this machine with the marker in their command line.
  std::vector<std::string> survivors() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string pid = entry.path().filename();
      if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream file(entry.path() / "cmdline");
      const std::string command(std::istreambuf_iterator<char>(file), {});
      if (command.find(marker_) != std::string::npos) found.push_back(pid + " " + command);
    }
    return found;
  }

  SandboxPolicy policy_;
  TempDir folder_{"assay-test-sandbox"};
  UniqueFd socket_;
  std::string printed_;
  std::string marker_ = fmt::format("marker-{:016x}", random_u64());

 private:
  static constexpr const char* kBuilt = ASSAY_BUILD_DIR "/sandbox_test_code";

  /// Every case is a process of its own under ctest: compiled by the first one.
  static void build(const std::string& file, const std::string& flags) {
    namespace fs = std::filesystem;
    const fs::path source = ASSAY_SOURCE_DIR "/tests/unit/sandbox/hostile.cc";
    const fs::path made = fs::path(kBuilt) / file;
    if (fs::exists(made) && fs::last_write_time(made) > fs::last_write_time(source)) return;
    fs::create_directories(kBuilt);
    const fs::path fresh = made.string() + fmt::format(".{:x}", random_u64());
    ASSERT_EQ(0, std::system(fmt::format("g++ -std=gnu++20 -O1 -pthread {} {} -o {}",
                                         source.string(), flags, fresh.string())
                                 .c_str()));
    fs::rename(fresh, made);
  }
};

inline std::string kind_name(const ::testing::TestParamInfo<SandboxKind>& info) {
  return name(info.param);
}

#define ASSAY_EVERY_SANDBOX(suite)                                                               \
  INSTANTIATE_TEST_SUITE_P(                                                                      \
      Every, suite,                                                                              \
      ::testing::Values(SandboxKind::kBubblewrap, SandboxKind::kNamespaces, SandboxKind::kNone), \
      kind_name)

}  // namespace assay

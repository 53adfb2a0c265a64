// SPDX-License-Identifier: Apache-2.0
#include "judge/run/session.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "judge/base/clock.h"
#include "judge/base/interrupt.h"
#include "judge/base/paths.h"
#include "judge/run/ending.h"
#include "judge/run/reply.h"
#include "wire/channel.h"
#include "wire/codec.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr double kSetupDeadline_s = 60;  ///< our own code and the driver's start
constexpr double kLoadDeadline_s = 60;   ///< dlopen runs the submission's constructors
constexpr int kSliceMs = 20;             ///< how often the watchdog looks while the judge waits
constexpr double kDyingTime_us = 5e5;    ///< from closing its socket to being gone

constexpr const char* kRunnerInside = "/assay/runner";
constexpr const char* kSubmissionInside = "/assay/submission";
constexpr const char* kObject = "kernel.so";

/// One exchange: what it is called in messages, how long it may take, what may come back.
struct Step {
  std::string what;
  double deadline_s = 0;
  ExpectedReply expected;
};

Step setup(const char* what) {
  return {what, kSetupDeadline_s, {}};
}

/// The last words of a program, for a message.
std::string tail(const std::string& output) {
  constexpr std::size_t kMost = 400;
  if (output.empty()) return "";
  const std::size_t from = output.size() > kMost ? output.size() - kMost : 0;
  return "; it printed: " + printable(output.substr(from));
}

}  // namespace

class Session::Impl {
 public:
  Impl(Device& device, const SessionOptions& options)
      : awake_(device.info().backend == wire::Backend::kCuda) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      throw JudgeError("cannot make a socket pair: {}", std::strerror(errno));
    socket_ = UniqueFd(ends[0]);
    channel_ = wire::Channel(ends[0]);
    {
      const UniqueFd runner_end(
          ends[1]);  // ours must go, or a dead runner's socket would stay open
      start(device.info(), options, runner_end.get());
    }
    exchange(wire::Hello{wire::kVersion, device.info().backend, device.info().ordinal,
                         options.threads, static_cast<std::uint64_t>(device.runner_flush_bytes())},
             setup("opening the device"));
  }

  std::uint32_t map(const Arena& arena) {
    const std::uint32_t number = next_arena_++;
    exchange(
        wire::MapArena{number, static_cast<std::uint64_t>(arena.bytes()), arena.runner_writable()},
        setup("mapping memory"), arena.fd());
    return number;
  }

  void load(const Artifact& artifact) {
    std::error_code error;
    const fs::path object = submission_dir_.path() / kObject;
    fs::copy_file(artifact.shared_object, object, error);
    // The runner may be another user; its directory entry is read-only inside anyway.
    if (!error) fs::permissions(object, fs::perms(0555), error);
    if (error)
      throw JudgeError("cannot copy {} to {}: {}", artifact.shared_object.string(), object.string(),
                       error.message());
    loaded_ = true;  // before the first hostile instruction can run
    exchange(wire::Load{(submission_inside_ / kObject).string()},
             {"loading", kLoadDeadline_s, {wire::Stage::kLoad, false, 0}});
  }

  WindowResult run_window(const wire::RunWindow& window, double deadline_s) {
    freeze();
    Step step{
        window.control ? "a control window" : "assay_run",
        deadline_s,
        {window.control ? wire::Stage::kSetup : wire::Stage::kRun, true, window.slots.size()}};
    auto done = std::get<wire::WindowDone>(exchange(window, step));
    return {wall_us_, std::move(done.call_us), std::move(done.returned), std::move(done.settled)};
  }

  void freeze() {
    if (frozen_ || over_) return;
    sandbox_->freeze();
    frozen_ = true;
  }
  void thaw() {
    if (!frozen_ || over_) return;
    sandbox_->thaw();
    frozen_ = false;
  }

  const std::string& output() {
    if (!over_) sandbox_->poll();
    return sandbox_->output();
  }

  /// One request, its one honest reply; anything else ends the session and throws.
  wire::Reply exchange(const wire::Request& request, const Step& step, int fd = -1) {
    throw_if_interrupted();
    if (over_) throw JudgeError("the runner has ended; {} is not possible", step.what);
    expect_silence(step);
    const std::vector<std::byte> bytes = wire::encode(request);
    const bool window = step.expected.window;
    const double begin = now_us();
    if (!channel_.send(bytes, fd)) ended(step);
    thaw();
    receive(step, begin);
    wall_us_ = now_us() - begin;
    if (loaded_ || window) freeze();  // before anything else: late work must be caught in the act
    watch(step);
    return judge_reply(step);
  }

 private:
  void start(const DeviceInfo& device, const SessionOptions& options, int runner_end) {
    const SandboxKind kind = resolve_sandbox(options.sandbox);
    fs::permissions(submission_dir_.path(), fs::perms(0755));
    SandboxPolicy policy;
    policy.program = SandboxPolicy::Program::kRunner;
    policy.gpu = device.backend == wire::Backend::kCuda;
    policy.limits.memory_bytes = options.memory_bytes;
    policy.binds = {{runner_path(), kRunnerInside, false},
                    {submission_dir_.path(), kSubmissionInside, false}};
    // Without a sandbox there is no other view of the file system either.
    const bool none = kind == SandboxKind::kNone;
    submission_inside_ = none ? submission_dir_.path() : fs::path(kSubmissionInside);
    sandbox_ = start_sandboxed(
        kind, policy, {none ? runner_path().string() : kRunnerInside, "serve"}, runner_end);
  }

  /// A runner that has something to say before it is asked has lied or is lying in wait.
  void expect_silence(const Step& step) {
    switch (channel_.receive(message_, 0)) {
      case wire::Receive::kTimeout:
        return;
      case wire::Receive::kClosed:
        ended(step);
      case wire::Receive::kMessage:
      case wire::Receive::kViolation:
        lied(step, "it spoke without having been asked");
    }
  }

  void receive(const Step& step, double begin_us) {
    const double end_us = begin_us + step.deadline_s * 1e6;
    for (bool alive = true;;) {
      switch (receive_slice(step)) {
        case wire::Receive::kMessage:
          return;
        case wire::Receive::kClosed:
          ended(step);
        case wire::Receive::kViolation:
          lied(step, "its message was too large, empty or carried descriptors");
        case wire::Receive::kTimeout:
          break;
      }
      if (interrupted()) {
        finish();
        throw Interrupted();
      }
      if (!alive) ended(step);
      alive = sandbox_->poll();  // once more around: its last word may have arrived since
      watched_us_ = now_us();
      if (watched_us_ > end_us) too_late(step);
    }
  }

  /// One slice of waiting. While a GPU works on a window the judge's core has nothing better to do
  /// than to stay awake, and being woken would be in the window's time.
  wire::Receive receive_slice(const Step& step) {
    if (!awake_ || !step.expected.window) return channel_.receive(message_, kSliceMs);
    const double end_us = now_us() + kSliceMs * 1e3;
    for (;;) {
      const wire::Receive r = channel_.receive(message_, 0);
      if (r != wire::Receive::kTimeout || now_us() > end_us) return r;
    }
  }

  /// The watchdog must also see runners whose every answer is quick.
  void watch(const Step& step) {
    const double now = now_us();
    if (now - watched_us_ < kSliceMs * 1e3) return;
    watched_us_ = now;
    if (!sandbox_->poll()) ended(step);
  }

  wire::Reply judge_reply(const Step& step) {
    auto reply = wire::decode_reply(message_);
    if (!reply) lied(step, "its message was malformed");
    if (const auto why = invalid(*reply, step.expected)) lied(step, *why);
    if (const auto* ack = std::get_if<wire::Ack>(&*reply);
        ack && ack->stage != wire::Stage::kNone) {
      finish();
      if (loaded_) throw fault_of(*ack);
      throw JudgeError("the runner failed at {}: {}", step.what, printable(ack->text));
    }
    return std::move(*reply);
  }

  ExitStatus finish() {
    over_ = true;
    return sandbox_->finish();
  }

  /// The connection is closed or the program gone. Lets a dying process die of its own cause first.
  [[noreturn]] void ended(const Step& step) {
    thaw();
    const double until = now_us() + kDyingTime_us;
    bool alive = sandbox_->poll();
    while (alive && now_us() < until) {
      sleep_us(500);
      alive = sandbox_->poll();
    }
    if (alive) lied(step, "it closed its connection and lived on");
    const ExitStatus status = finish();
    if (loaded_) throw fault_of(status, step.what);
    throw JudgeError("the runner ended at {}: {}{}", step.what, status.describe(),
                     tail(sandbox_->output()));
  }

  [[noreturn]] void too_late(const Step& step) {
    finish();
    if (loaded_)
      throw SubmissionFault(Verdict::kTimeLimit,
                            fmt::format("{} took more than {:g} s", step.what, step.deadline_s));
    throw JudgeError("the runner did not answer within {:g} s at {}{}", step.deadline_s, step.what,
                     tail(sandbox_->output()));
  }

  [[noreturn]] void lied(const Step& step, const std::string& how) {
    finish();
    if (loaded_)
      throw SubmissionFault(Verdict::kSandboxViolation,
                            fmt::format("lied on the wire in {}: {}", step.what, how));
    throw JudgeError("the runner misbehaved at {} though no submission is loaded: {}{}", step.what,
                     how, tail(sandbox_->output()));
  }

  const bool awake_;
  UniqueFd socket_;
  wire::Channel channel_{-1};
  TempDir submission_dir_{"assay-submission"};  // empty until load(): the runner sees it read-only
  fs::path submission_inside_;
  std::unique_ptr<Sandbox> sandbox_;  // destroyed first: nothing may live on
  std::vector<std::byte> message_;
  std::uint32_t next_arena_ = 0;
  bool loaded_ = false, frozen_ = false, over_ = false;
  double wall_us_ = 0, watched_us_ = 0;
};

Session::Session(Device& device, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(device, options)) {}
Session::~Session() = default;

std::uint32_t Session::map(const Arena& arena) {
  return impl_->map(arena);
}

void Session::bind(std::uint32_t slot, const std::vector<wire::TensorRef>& inputs,
                   const std::vector<wire::TensorRef>& outputs) {
  impl_->exchange(wire::Bind{slot, inputs, outputs}, setup("handing out buffers"));
}

void Session::load(const Artifact& artifact) {
  impl_->load(artifact);
}

void Session::prepare(const Problem& problem, const Shape& shape,
                      const std::vector<wire::TensorRef>& constants, double deadline_s) {
  wire::Prepare request{problem.id, {}, constants};
  for (const auto& [name, value] : shape.axes) request.axes.push_back({name, value});
  impl_->exchange(request, {"assay_prepare", deadline_s, {wire::Stage::kPrepare, false, 0}});
}

void Session::release(double deadline_s) {
  impl_->exchange(wire::Release{}, {"assay_release", deadline_s, {wire::Stage::kRun, false, 0}});
}

WindowResult Session::run_window(const wire::RunWindow& window, double deadline_s) {
  return impl_->run_window(window, deadline_s);
}

void Session::freeze() {
  impl_->freeze();
}
void Session::thaw() {
  impl_->thaw();
}
const std::string& Session::output() const {
  return impl_->output();
}

}  // namespace assay

// SPDX-License-Identifier: Apache-2.0
#include "runner/serve.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "runner/backend.h"
#include "runner/submission.h"
#include "wire/channel.h"
#include "wire/codec.h"

namespace assay::runner {
namespace {

using wire::Stage;

/// Closes the descriptor that came with a request, whatever becomes of the request.
struct ReceivedFd {
  int fd = -1;
  ~ReceivedFd() {
    if (fd >= 0) ::close(fd);
  }
};

struct Mapping {
  unsigned char* data = nullptr;
  std::size_t bytes = 0;
  bool writable = false;
};

struct Slot {
  std::vector<assay_tensor> inputs, outputs;  ///< never shown to the submission: it gets copies
  std::vector<OutputRange> ranges;            ///< of the outputs
  std::vector<std::uint32_t> arenas;
};

[[noreturn]] void refuse(const std::string& why) {
  throw RequestFailed(Stage::kSetup, 1, why);
}

/// The tensor as the ABI states it, without an address.
assay_tensor describe(const wire::TensorRef& ref) {
  assay_tensor t{};
  t.dtype = static_cast<std::int32_t>(ref.dtype);
  t.rank = static_cast<std::int32_t>(ref.shape.size());
  std::copy(ref.shape.begin(), ref.shape.end(), t.shape);
  std::int64_t stride = 1;
  for (std::size_t i = ref.shape.size(); i-- > 0;) {
    t.stride[i] = stride;
    if (ref.shape[i] < 0 || __builtin_mul_overflow(stride, ref.shape[i], &stride))
      refuse("a tensor with an impossible shape");
  }
  return t;
}

std::size_t bytes_of(const assay_tensor& t) {
  std::int64_t n = size_bytes(static_cast<DType>(t.dtype));
  for (int i = 0; i < t.rank; ++i)
    if (__builtin_mul_overflow(n, t.shape[i], &n)) refuse("a tensor with an impossible shape");
  return static_cast<std::size_t>(n);
}

class Server final : private SlotCaller {
 public:
  explicit Server(int socket) : channel_(socket) {}
  int run();

 private:
  wire::Reply answer(const wire::Request& request, int fd);

  void on(const wire::Hello&, int fd);
  void on(const wire::MapArena&, int fd);
  void on(const wire::UnmapArena&, int fd);
  void on(const wire::Load&, int fd);
  void on(const wire::Prepare&, int fd);
  void on(const wire::Release&, int fd);
  void on(const wire::Bind&, int fd);
  void on(const wire::Shutdown&, int) { done_ = true; }
  wire::WindowDone window(const wire::RunWindow&);

  RunnerBackend& backend() {
    if (!backend_) refuse("the first request must be Hello");
    return *backend_;
  }
  assay_tensor place(const wire::TensorRef& ref, bool written) const;
  const Slot& bound(std::uint32_t slot) const { return slots_.at(slot); }

  std::span<const OutputRange> outputs(std::uint32_t slot) const override {
    return bound(slot).ranges;
  }
  void arrange(std::uint32_t slot) override {
    inputs_ = bound(slot).inputs;
    outputs_ = bound(slot).outputs;
  }
  int call(std::uint32_t) override { return submission_.run(inputs_, outputs_, stream_); }

  wire::Channel channel_;
  bool done_ = false;
  int threads_ = 1;
  std::unique_ptr<RunnerBackend> backend_;
  void* stream_ = nullptr;
  std::map<std::uint32_t, Mapping> arenas_;
  std::vector<Slot> slots_;
  std::vector<assay_tensor> inputs_, outputs_;  // of the call at hand; the submission may scribble
  Submission submission_;
};

void Server::on(const wire::Hello& hello, int) {
  if (hello.version != wire::kVersion)
    refuse("judge and runner are of different versions; build both from one checkout");
  if (backend_) refuse("a second Hello");
  if (hello.backend == wire::Backend::kCpu) backend_ = make_cpu_backend();
#if defined(ASSAY_HAVE_CUDA)
  if (hello.backend == wire::Backend::kCuda) backend_ = make_cuda_backend();
#endif
  if (!backend_) refuse("this runner was built without CUDA; build with nvcc in reach");
  threads_ = hello.threads;
  backend_->open(hello);
  stream_ = backend_->stream();
}

void Server::on(const wire::MapArena& m, int fd) {
  if (fd < 0) refuse("an arena came without its descriptor");
  if (arenas_.contains(m.arena)) refuse("this arena is already mapped");
  arenas_[m.arena] = {static_cast<unsigned char*>(backend().map(fd, m.bytes, m.writable)), m.bytes,
                      m.writable};
}

void Server::on(const wire::UnmapArena& m, int) {
  const auto it = arenas_.find(m.arena);
  if (it == arenas_.end()) refuse("this arena is not mapped");
  for (Slot& s : slots_)
    if (std::count(s.arenas.begin(), s.arenas.end(), m.arena) > 0) s = Slot{};
  backend().synchronize();
  backend().unmap(it->second.data);
  arenas_.erase(it);
}

assay_tensor Server::place(const wire::TensorRef& ref, bool written) const {
  assay_tensor t = describe(ref);
  const std::size_t bytes = bytes_of(t);
  const auto it = arenas_.find(ref.arena);
  if (it == arenas_.end()) refuse("a tensor in an arena that is not mapped");
  if (ref.offset_bytes > it->second.bytes || bytes > it->second.bytes - ref.offset_bytes)
    refuse("a tensor past the end of its arena");
  if (written && !it->second.writable) refuse("an output in a read-only arena");
  t.data = it->second.data + ref.offset_bytes;
  return t;
}

void Server::on(const wire::Bind& b, int) {
  if (b.slot >= wire::kMaxCalls) refuse("a slot number that is too large");
  Slot slot;
  for (const wire::TensorRef& ref : b.inputs) slot.inputs.push_back(place(ref, false));
  for (const wire::TensorRef& ref : b.outputs) {
    slot.outputs.push_back(place(ref, true));
    slot.ranges.push_back({slot.outputs.back().data, bytes_of(slot.outputs.back())});
  }
  for (const auto* list : {&b.inputs, &b.outputs})
    for (const wire::TensorRef& ref : *list) slot.arenas.push_back(ref.arena);
  if (slots_.size() <= b.slot) slots_.resize(b.slot + 1);
  slots_[b.slot] = std::move(slot);
}

void Server::on(const wire::Load& l, int) {
  backend().synchronize();
  if (submission_.loaded()) refuse("a submission is already loaded");
  submission_.load(l.path);
}

void Server::on(const wire::Prepare& p, int) {
  if (!submission_.loaded()) refuse("prepare before load");
  if (submission_.prepared()) refuse("prepare without release");
  std::vector<assay_tensor> constants;
  for (const wire::TensorRef& ref : p.constants) constants.push_back(place(ref, false));
  try {
    submission_.prepare(p, std::move(constants), threads_);
    backend().synchronize();  // a device fault of prepare is prepare's, not the first call's
  } catch (const BackendError& e) {
    throw RequestFailed(Stage::kPrepare, ASSAY_FAILED, e.what());
  }
}

void Server::on(const wire::Release&, int) {
  try {
    backend().synchronize();
    submission_.release();
    backend().synchronize();
  } catch (const BackendError& e) {
    throw RequestFailed(Stage::kRun, ASSAY_FAILED, e.what());
  }
}

wire::WindowDone Server::window(const wire::RunWindow& w) {
  RunnerBackend& device = backend();
  if (w.control && submission_.loaded()) refuse("control windows come before load");
  if (!w.control && !submission_.prepared()) refuse("a window before prepare");
  for (const std::uint32_t slot : w.slots)
    if (slot >= slots_.size() || slots_[slot].arenas.empty()) refuse("a slot without buffers");
  try {
    WindowOutcome outcome = device.run_window(w, *this);
    if (outcome.code == 0) return std::move(outcome.done);
    throw RequestFailed(Stage::kRun, outcome.code, submission_.exception_text());
  } catch (const BackendError& e) {
    throw RequestFailed(Stage::kRun, ASSAY_FAILED, e.what());
  }
}

wire::Reply Server::answer(const wire::Request& request, int fd) {
  try {
    if (const auto* w = std::get_if<wire::RunWindow>(&request)) return window(*w);
    std::visit(
        [&]<class M>(const M& m) {
          if constexpr (!std::is_same_v<M, wire::RunWindow>) on(m, fd);
        },
        request);
    return wire::Ack{};
  } catch (const RequestFailed& e) {
    return e.ack();
  } catch (const std::exception& e) {  // BackendError, bad_alloc
    return RequestFailed(Stage::kSetup, 1, e.what()).ack();
  }
}

int Server::run() {
  std::vector<std::byte> message;
  while (!done_) {
    ReceivedFd received;
    const wire::Receive what = channel_.receive(message, -1, &received.fd);
    if (what == wire::Receive::kClosed) return 0;
    const auto request = what == wire::Receive::kMessage ? wire::decode_request(message)
                                                         : std::optional<wire::Request>();
    if (!request) {
      std::fputs("assay-runner: a request that this version does not know\n", stderr);
      return 3;
    }
    const wire::Reply reply = answer(*request, received.fd);
    std::fflush(stdout);  // what the submission printed must outlive it
    if (!channel_.send(wire::encode(reply))) return 0;
  }
  return 0;
}

}  // namespace

int serve(int socket) {
  return Server(socket).run();
}

}  // namespace assay::runner

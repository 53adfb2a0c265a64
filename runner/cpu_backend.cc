// SPDX-License-Identifier: Apache-2.0
#include "runner/cpu_backend.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "wire/digest.h"

namespace assay::runner {
namespace {

constexpr std::size_t kGuardBytes = std::size_t{1} << 20;  // a multiple of every page size

[[noreturn]] void fail(const char* what) {
  throw BackendError(std::string(what) + ": " + std::strerror(errno));
}

std::int64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::uint64_t fingerprint(std::span<const OutputRange> outputs) {
  std::uint64_t chain = 0;
  for (const OutputRange& o : outputs)
    chain = wire::digest_chain(chain, wire::digest_host(o.data, o.bytes));
  return chain;
}

}  // namespace

CpuBackend::~CpuBackend() {
  while (!mappings_.empty()) unmap(mappings_.begin()->first);
}

void CpuBackend::open(const wire::Hello&) {
  page_bytes_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void* CpuBackend::map(int fd, std::size_t bytes, bool writable) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail("fstat of an arena");
  // Touching pages past the end of the file would be a bus error that looks like the submission's.
  if (bytes == 0 || bytes % page_bytes_ != 0 || static_cast<std::size_t>(status.st_size) < bytes)
    throw BackendError("an arena of " + std::to_string(bytes) + " bytes over a file of " +
                       std::to_string(status.st_size));
  // One reservation with unreachable space at both ends, so that running off the arena faults
  // instead of reaching whatever the kernel happened to put there.
  void* reserved = ::mmap(nullptr, bytes + 2 * kGuardBytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) fail("mmap of the guard space");
  void* data = static_cast<char*>(reserved) + kGuardBytes;
  // Populated now: no call pays for page faults.
  if (::mmap(data, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
             MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED) {
    const int error = errno;
    ::munmap(reserved, bytes + 2 * kGuardBytes);
    errno = error;
    fail("mmap of an arena");
  }
  mappings_[data] = bytes;
  return data;
}

void CpuBackend::unmap(void* data) {
  const auto it = mappings_.find(data);
  if (it == mappings_.end()) throw BackendError("unmap of memory that is not mapped");
  ::munmap(static_cast<char*>(data) - kGuardBytes, it->second + 2 * kGuardBytes);
  mappings_.erase(it);
}

WindowOutcome CpuBackend::run_window(const wire::RunWindow& window, SlotCaller& caller) {
  const std::vector<std::uint32_t>& slots = window.slots;
  WindowOutcome out;
  out.done.call_us.reserve(slots.size());
  out.done.returned.reserve(slots.size());
  out.done.settled.reserve(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    caller.arrange(slots[i]);
    const std::int64_t begin = now_ns();
    int code = 0;
    if (window.control)
      while (now_ns() - begin < std::int64_t{wire::kControlCall_ns}) {
      }
    else
      code = caller.call(slots[i]);
    const std::int64_t end = now_ns();
    if (code != 0) return {code, i, {}};
    out.done.call_us.push_back(static_cast<float>(end - begin) / 1e3f);
    out.done.returned.push_back(fingerprint(caller.outputs(slots[i])));
  }
  for (const std::uint32_t slot : slots)
    out.done.settled.push_back(fingerprint(caller.outputs(slot)));
  return out;
}

std::unique_ptr<RunnerBackend> make_cpu_backend() {
  return std::make_unique<CpuBackend>();
}

}  // namespace assay::runner

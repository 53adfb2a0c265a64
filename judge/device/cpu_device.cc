// SPDX-License-Identifier: Apache-2.0
#include "judge/device/cpu_device.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "judge/base/fault.h"
#include "judge/device/blas.h"
#include "judge/device/cpu_cache.h"

namespace assay {

// Defined in the generated catalog.
const ProblemKernels* find_cpu_kernels(const std::string& id);

namespace {

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::int64_t bytes) {
    data_ = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED)
      throw JudgeError("cannot allocate {} bytes: {}", bytes, std::strerror(errno));
    bytes_ = bytes;
  }
  ~HostBuffer() override { ::munmap(data_, static_cast<std::size_t>(bytes_)); }
};

/// A memfd. Its size is sealed, and unless the runner may write, so is every mapping made after
/// ours.
class MemfdArena final : public Arena {
 public:
  MemfdArena(std::int64_t bytes, bool runner_writable) {
    writable_ = runner_writable;
    fd_ = UniqueFd(::memfd_create("assay-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd_ || ::ftruncate(fd_.get(), bytes) != 0)
      throw JudgeError("cannot create shared memory of {} bytes: {}", bytes, std::strerror(errno));
    data_ = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_POPULATE, fd_.get(), 0);
    if (data_ == MAP_FAILED)
      throw JudgeError("cannot map shared memory of {} bytes: {}", bytes, std::strerror(errno));
    bytes_ = bytes;
    const int seals =
        F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (runner_writable ? 0 : F_SEAL_FUTURE_WRITE);
    if (::fcntl(fd_.get(), F_ADD_SEALS, seals) != 0)
      throw JudgeError("cannot seal shared memory (Linux 5.1 or newer is needed): {}",
                       std::strerror(errno));
  }
  ~MemfdArena() override { ::munmap(data_, static_cast<std::size_t>(bytes_)); }
};

/// The first value of `key` in /proc/cpuinfo, or "".
std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return "";
}

int usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

/// Lower case, digits and single dashes.
std::string slug(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u))
      out += static_cast<char>(std::tolower(u));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

DeviceInfo describe() {
  DeviceInfo d;
  d.backend = wire::Backend::kCpu;
  d.name = cpuinfo("model name");
  if (d.name.empty()) d.name = "unknown cpu";
  utsname u{};
  if (::uname(&u) == 0) d.driver = u.release;
  d.memory_bytes = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
#ifdef _SC_LEVEL3_CACHE_SIZE
  d.cache_bytes = std::max(0L, ::sysconf(_SC_LEVEL3_CACHE_SIZE));
#endif
  d.units = usable_threads();
  d.key = slug(fmt::format("{} {}t {}g", d.name, d.units, (d.memory_bytes + (1LL << 29)) >> 30));
  return d;
}

/// Byte `i` of an endlessly repeated word.
unsigned char word_byte(std::uint64_t word, std::int64_t i) {
  return static_cast<unsigned char>(word >> (8 * (i % 8)));
}

/// The first byte in [begin, end) of `range` that differs from the word, or -1. `begin` is a
/// multiple of 8.
std::int64_t first_change(const Range& range, std::uint64_t word, std::int64_t begin,
                          std::int64_t end) {
  const auto* p = static_cast<const unsigned char*>(range.data);
  std::int64_t i = begin;
  for (; i + 8 <= end; i += 8) {
    std::uint64_t v;
    std::memcpy(&v, p + i, 8);
    if (v != word) break;
  }
  for (; i < end; ++i)
    if (p[i] != word_byte(word, i)) return i;
  return -1;
}

/// Long ranges are cut into pieces of this many bytes, so that all threads have work.
constexpr std::int64_t kPiece = std::int64_t{256} << 10;

struct Piece {
  std::size_t range;
  std::int64_t begin, end;
};
std::vector<Piece> cut(std::span<const Range> ranges) {
  std::vector<Piece> out;
  for (std::size_t r = 0; r < ranges.size(); ++r)
    for (std::int64_t at = 0; at < ranges[r].bytes; at += kPiece)
      out.push_back({r, at, std::min(ranges[r].bytes, at + kPiece)});
  return out;
}

}  // namespace

CpuDevice::CpuDevice() : info_(describe()), pool_(info_.units) {}

std::unique_ptr<Buffer> CpuDevice::allocate(std::int64_t bytes) {
  return std::make_unique<HostBuffer>(bytes);
}
std::unique_ptr<Arena> CpuDevice::allocate_arena(std::int64_t bytes, bool runner_writable) {
  return std::make_unique<MemfdArena>(bytes, runner_writable);
}
std::int64_t CpuDevice::arena_granularity() const {
  return ::sysconf(_SC_PAGESIZE);
}
void CpuDevice::upload(void* to, const void* host, std::int64_t bytes) {
  copy(to, host, bytes);
}
void CpuDevice::download(void* host, const void* from, std::int64_t bytes) {
  copy(host, from, bytes);
}
void CpuDevice::copy(void* to, const void* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void CpuDevice::fill(const Tensor& t, const Distribution& d, std::uint64_t seed) {
  for_each(t.size(), [=](std::int64_t i) { store_from_float(t, i, draw_element(d, seed, i)); });
}
void CpuDevice::scale(const Tensor& t, float factor) {
  for_each(t.size(), [=](std::int64_t i) { store_from_float(t, i, load_as_float(t, i) * factor); });
}
void CpuDevice::convert(const Tensor& from, const Tensor& to) {
  const std::int64_t n = from.size();
  for_each(to.size(), [=](std::int64_t i) { store_from_float(to, i, load_as_float(from, i % n)); });
}
void CpuDevice::coarsen(const Tensor& t, int bits) {
  for_each(t.size(), [=](std::int64_t i) {
    store_from_float(t, i, keep_mantissa(load_as_float(t, i), bits));
  });
}
void CpuDevice::zero_tails(const Tensor& t, std::int64_t row, std::int64_t keep) {
  for_each(t.size(), [=](std::int64_t i) {
    if (i % row >= keep) store_from_float(t, i, 0.0f);
  });
}

void CpuDevice::fill_word(std::span<const Range> ranges, std::uint64_t word) {
  const std::vector<Piece> pieces = cut(ranges);
  pool_.run(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t c) {
    const Piece& piece = pieces[static_cast<std::size_t>(c)];
    auto* p = static_cast<unsigned char*>(const_cast<void*>(ranges[piece.range].data));
    for (std::int64_t i = piece.begin; i < piece.end; i += 8)
      std::memcpy(p + i, &word, static_cast<std::size_t>(std::min<std::int64_t>(8, piece.end - i)));
  });
}

std::vector<std::int64_t> CpuDevice::find_change(std::span<const Range> ranges,
                                                 std::uint64_t word) {
  const std::vector<Piece> pieces = cut(ranges);
  std::vector<std::int64_t> found(pieces.size());
  pool_.run(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t c) {
    const auto i = static_cast<std::size_t>(c);
    found[i] = first_change(ranges[pieces[i].range], word, pieces[i].begin, pieces[i].end);
  });
  std::vector<std::int64_t> out(ranges.size(), -1);
  for (std::size_t i = pieces.size(); i-- > 0;)
    if (found[i] >= 0) out[pieces[i].range] = found[i];
  return out;
}

std::vector<std::uint64_t> CpuDevice::digest(std::span<const Range> ranges) {
  const std::vector<Piece> pieces = cut(ranges);
  std::vector<std::uint64_t> sums(pieces.size());
  pool_.run(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t c) {
    const Piece& piece = pieces[static_cast<std::size_t>(c)];
    const Range& r = ranges[piece.range];
    const auto* p = static_cast<const unsigned char*>(r.data);
    std::uint64_t sum = 0;
    for (std::int64_t w = piece.begin / 8; w < (piece.end + 7) / 8; ++w) {
      const auto index = static_cast<std::size_t>(w);
      sum +=
          wire::digest_term(wire::digest_word(p, static_cast<std::size_t>(r.bytes), index), index);
    }
    sums[static_cast<std::size_t>(c)] = sum;
  });
  std::vector<std::uint64_t> out(ranges.size(), 0);
  for (std::size_t i = 0; i < pieces.size(); ++i) out[pieces[i].range] += sums[i];
  return out;
}

void CpuDevice::flush_caches(std::span<const Range> live) {
  const std::vector<Piece> pieces = cut(live);
  pool_.run(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t c) {
    const Piece& piece = pieces[static_cast<std::size_t>(c)];
    evict_lines(static_cast<const char*>(live[piece.range].data) + piece.begin,
                piece.end - piece.begin);
  });
}

ClockSample CpuDevice::sample_clocks() {
  ClockSample s;
  const std::string mhz = cpuinfo("cpu MHz");
  s.core_mhz = mhz.empty() ? 0 : std::strtod(mhz.c_str(), nullptr);
  std::ifstream stat("/proc/stat");
  std::string word;
  double user, nice, system, idle, iowait, irq, softirq, steal = 0;
  if (stat >> word >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal)
    s.stolen_us = steal * 1e6 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return s;
}

void CpuDevice::gemm_nt(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                        const float* b, float* c) {
  constexpr std::int64_t kRows = 64;  // fixed: the split must not depend on the machine
  pool_.run((m + kRows - 1) / kRows, [=](std::int64_t i) {
    const std::int64_t row = i * kRows;
    sgemm(true, std::min(kRows, m - row), n, k, a + row * k, b, c + row * n);
  });
}
void CpuDevice::gemm_nn(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                        const float* b, float* c) {
  constexpr std::int64_t kRows = 64;
  pool_.run((m + kRows - 1) / kRows, [=](std::int64_t i) {
    const std::int64_t row = i * kRows;
    sgemm(false, std::min(kRows, m - row), n, k, a + row * k, b, c + row * n);
  });
}

void* CpuDevice::scratch(std::int64_t bytes) {
  if (!scratch_ || scratch_->bytes() < bytes) {
    scratch_.reset();
    scratch_ = allocate(bytes);
  }
  return scratch_->data();
}

bool CpuDevice::healthy() {
  const float a[2] = {2, 3}, b[2] = {5, 7};
  float c = 0;
  sgemm(true, 1, 1, 2, a, b, &c);
  return c == 31;
}

const ProblemKernels* CpuDevice::kernels(const std::string& problem_id) const {
  return find_cpu_kernels(problem_id);
}

std::unique_ptr<Device> open_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace assay

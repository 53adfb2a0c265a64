// SPDX-License-Identifier: Apache-2.0
#include <cctype>

#include "judge/device/cuda_device.cuh"
#include "wire/cuda_memory.h"

namespace assay {

// Defined in the generated catalog.
const ProblemKernels* find_cuda_kernels(const std::string& id);

/// A stretch of a range: at most kPieceBytes, beginning at a multiple of 8 bytes within the range.
struct cuda::Piece {
  unsigned char* range;
  std::int64_t range_bytes, begin, end;
  int index;  // of the range
};

namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{256} << 10;
constexpr std::int64_t kFlushBytes = std::int64_t{256} << 20;

class CudaBuffer final : public Buffer {
 public:
  explicit CudaBuffer(std::int64_t bytes) {
    const cudaError_t e = cudaMalloc(&data_, static_cast<std::size_t>(bytes));
    if (e != cudaSuccess)
      throw JudgeError("cannot allocate {} MiB on the device: {}", bytes >> 20,
                       cudaGetErrorString(e));
    bytes_ = bytes;
  }
  ~CudaBuffer() override { cudaFree(data_); }
};

class CudaArena final : public Arena {
 public:
  CudaArena(const wire::DriverMemory& driver, int ordinal, std::int64_t bytes, bool writable) {
    try {
      const CUmemAllocationProp p = wire::DriverMemory::properties(ordinal);
      CUmemGenericAllocationHandle handle{};
      driver.check(driver.create(&handle, static_cast<std::size_t>(bytes), &p, 0), "cuMemCreate");
      // From here on the mapping owns the handle, also when it fails.
      memory_ = std::make_unique<wire::MappedMemory>(
          driver, handle, static_cast<std::size_t>(bytes), ordinal, true);
      int fd = -1;
      driver.check(driver.export_handle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                   "cuMemExportToShareableHandle");
      fd_ = UniqueFd(fd);
    } catch (const std::runtime_error& e) {
      throw JudgeError("cannot share {} MiB of device memory: {}", bytes >> 20, e.what());
    }
    data_ = memory_->data();
    bytes_ = bytes;
    writable_ = writable;
  }

 private:
  std::unique_ptr<wire::MappedMemory> memory_;
};

__device__ unsigned char word_byte(std::uint64_t word, std::int64_t i) {
  return static_cast<unsigned char>(word >> (8 * (i % 8)));
}

__global__ void fill_kernel(const cuda::Piece* pieces, std::uint64_t word) {
  const cuda::Piece p = pieces[blockIdx.x];
  const bool aligned = reinterpret_cast<std::uintptr_t>(p.range) % 8 == 0;
  for (std::int64_t i = p.begin + 8 * threadIdx.x; i < p.end; i += 8 * blockDim.x) {
    if (aligned && i + 8 <= p.end)
      *reinterpret_cast<std::uint64_t*>(p.range + i) = word;
    else
      for (std::int64_t j = i; j < i + 8 && j < p.end; ++j) p.range[j] = word_byte(word, j);
  }
}

__global__ void find_change_kernel(const cuda::Piece* pieces, std::uint64_t word,
                                   unsigned long long* first) {
  const cuda::Piece p = pieces[blockIdx.x];
  const bool aligned = reinterpret_cast<std::uintptr_t>(p.range) % 8 == 0;
  for (std::int64_t i = p.begin + 8 * threadIdx.x; i < p.end; i += 8 * blockDim.x) {
    if (aligned && i + 8 <= p.end && *reinterpret_cast<const std::uint64_t*>(p.range + i) == word)
      continue;
    for (std::int64_t j = i; j < i + 8 && j < p.end; ++j)
      if (p.range[j] != word_byte(word, j)) {
        atomicMin(first + p.index, static_cast<unsigned long long>(j));
        break;
      }
  }
}

__global__ void digest_kernel(const cuda::Piece* pieces, unsigned long long* sums) {
  const cuda::Piece p = pieces[blockIdx.x];
  const bool aligned = reinterpret_cast<std::uintptr_t>(p.range) % 8 == 0;
  const auto bytes = static_cast<std::size_t>(p.range_bytes);
  std::uint64_t sum = 0;
  for (std::int64_t i = p.begin + 8 * threadIdx.x; i < p.end; i += 8 * blockDim.x) {
    const auto index = static_cast<std::size_t>(i / 8);
    const std::uint64_t word = aligned && i + 8 <= p.end
                                   ? *reinterpret_cast<const std::uint64_t*>(p.range + i)
                                   : wire::digest_word(p.range, bytes, index);
    sum += wire::digest_term(word, index);
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(sums + p.index, static_cast<unsigned long long>(sum));
}

__global__ void read_kernel(const uint4* data, std::int64_t count, unsigned* sink) {
  unsigned sum = 0;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    const uint4 v = data[i];
    sum += v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x9e3779b9u) *sink = sum;
}

std::string slug(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0)
      out += static_cast<char>(std::tolower(u));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  return out;
}

}  // namespace

CudaDevice::CudaDevice(int ordinal) {
  cuda_check(cudaSetDevice(ordinal), "cudaSetDevice");
  cudaDeviceProp p{};
  cuda_check(cudaGetDeviceProperties(&p, ordinal), "cudaGetDeviceProperties");
  char pci[32] = "";
  cuda_check(cudaDeviceGetPCIBusId(pci, sizeof pci, ordinal), "cudaDeviceGetPCIBusId");
  nvml_ = std::make_unique<Nvml>(pci);
  try {
    driver_ = std::make_unique<wire::DriverMemory>();
  } catch (const std::runtime_error& e) {
    throw JudgeError("no CUDA device: {}", e.what());
  }
  int runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  info_.backend = wire::Backend::kCuda;
  info_.ordinal = ordinal;
  info_.name = p.name;
  info_.driver = nvml_->driver_version();
  info_.runtime = fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10);
  info_.memory_bytes = static_cast<std::int64_t>(p.totalGlobalMem);
  info_.cache_bytes = p.l2CacheSize;
  info_.units = p.multiProcessorCount;
  info_.arch = p.major * 10 + p.minor;
  info_.key = slug(fmt::format("{} {}g", p.name, (info_.memory_bytes + (1LL << 29)) >> 30));
}
CudaDevice::~CudaDevice() = default;

std::unique_ptr<Buffer> CudaDevice::allocate(std::int64_t bytes) {
  return std::make_unique<CudaBuffer>(bytes);
}
std::unique_ptr<Arena> CudaDevice::allocate_arena(std::int64_t bytes, bool runner_writable) {
  return std::make_unique<CudaArena>(*driver_, info_.ordinal, bytes, runner_writable);
}
std::int64_t CudaDevice::arena_granularity() const {
  return static_cast<std::int64_t>(driver_->granularity_bytes(info_.ordinal));
}
void CudaDevice::upload(void* to, const void* host, std::int64_t bytes) {
  cuda_check(cudaMemcpy(to, host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice),
             "cudaMemcpy to the device");
}
void CudaDevice::download(void* host, const void* from, std::int64_t bytes) {
  cuda_check(cudaMemcpy(host, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost),
             "cudaMemcpy from the device");
}
void CudaDevice::copy(void* to, const void* from, std::int64_t bytes) {
  cuda_check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice),
             "cudaMemcpy on the device");
}

void CudaDevice::fill(const Tensor& t, const Distribution& d, std::uint64_t seed) {
  for_each(t.size(),
           [=] __device__(std::int64_t i) { store_from_float(t, i, draw_element(d, seed, i)); });
}
void CudaDevice::scale(const Tensor& t, float factor) {
  for_each(t.size(), [=] __device__(std::int64_t i) {
    store_from_float(t, i, load_as_float(t, i) * factor);
  });
}
void CudaDevice::convert(const Tensor& from, const Tensor& to) {
  const std::int64_t n = from.size();
  for_each(to.size(),
           [=] __device__(std::int64_t i) { store_from_float(to, i, load_as_float(from, i % n)); });
}
void CudaDevice::coarsen(const Tensor& t, int bits) {
  for_each(t.size(), [=] __device__(std::int64_t i) {
    store_from_float(t, i, keep_mantissa(load_as_float(t, i), bits));
  });
}
void CudaDevice::zero_tails(const Tensor& t, std::int64_t row, std::int64_t keep) {
  for_each(t.size(), [=] __device__(std::int64_t i) {
    if (i % row >= keep) store_from_float(t, i, 0.0f);
  });
}

const cuda::Piece* CudaDevice::cut(std::span<const Range> ranges, int& count) {
  std::vector<cuda::Piece> pieces;
  for (std::size_t r = 0; r < ranges.size(); ++r)
    for (std::int64_t at = 0; at < ranges[r].bytes; at += kPieceBytes)
      pieces.push_back({static_cast<unsigned char*>(const_cast<void*>(ranges[r].data)),
                        ranges[r].bytes, at, std::min(ranges[r].bytes, at + kPieceBytes),
                        static_cast<int>(r)});
  count = static_cast<int>(pieces.size());
  const auto bytes = static_cast<std::int64_t>(pieces.size() * sizeof(cuda::Piece));
  if (bytes == 0) return nullptr;
  if (!pieces_ || pieces_->bytes() < bytes) pieces_ = allocate(2 * bytes);
  upload(pieces_->data(), pieces.data(), bytes);
  return static_cast<const cuda::Piece*>(pieces_->data());
}

void CudaDevice::fill_word(std::span<const Range> ranges, std::uint64_t word) {
  int count = 0;
  const cuda::Piece* pieces = cut(ranges, count);
  if (count == 0) return;
  fill_kernel<<<count, cuda::kThreads>>>(pieces, word);
  cuda_check(cudaGetLastError(), "a launch");
}

std::vector<std::int64_t> CudaDevice::find_change(std::span<const Range> ranges,
                                                  std::uint64_t word) {
  std::vector<std::int64_t> out(ranges.size(), -1);
  int count = 0;
  const cuda::Piece* pieces = cut(ranges, count);
  if (count == 0) return out;
  const auto bytes = static_cast<std::int64_t>(ranges.size() * 8);
  if (!results_ || results_->bytes() < bytes) results_ = allocate(2 * bytes);
  cuda_check(cudaMemsetAsync(results_->data(), 0xff, static_cast<std::size_t>(bytes)),
             "cudaMemset");
  find_change_kernel<<<count, cuda::kThreads>>>(pieces, word,
                                                static_cast<unsigned long long*>(results_->data()));
  cuda_check(cudaGetLastError(), "a launch");
  download(out.data(), results_->data(), bytes);  // untouched ones read as -1
  return out;
}

std::vector<std::uint64_t> CudaDevice::digest(std::span<const Range> ranges) {
  std::vector<std::uint64_t> out(ranges.size(), 0);
  int count = 0;
  const cuda::Piece* pieces = cut(ranges, count);
  if (count == 0) return out;
  const auto bytes = static_cast<std::int64_t>(ranges.size() * 8);
  if (!results_ || results_->bytes() < bytes) results_ = allocate(2 * bytes);
  cuda_check(cudaMemsetAsync(results_->data(), 0, static_cast<std::size_t>(bytes)), "cudaMemset");
  digest_kernel<<<count, cuda::kThreads>>>(pieces,
                                           static_cast<unsigned long long*>(results_->data()));
  cuda_check(cudaGetLastError(), "a launch");
  download(out.data(), results_->data(), bytes);
  return out;
}

std::int64_t CudaDevice::runner_flush_bytes() const {
  return std::max(kFlushBytes, 4 * info_.cache_bytes);
}

void CudaDevice::flush_caches(std::span<const Range>) {
  const std::int64_t bytes = runner_flush_bytes();
  if (!flush_) {
    flush_ = allocate(bytes);
    cuda_check(cudaMemset(flush_->data(), 0, static_cast<std::size_t>(bytes)), "cudaMemset");
  }
  cudaCtxResetPersistingL2Cache();
  cudaGetLastError();
  read_kernel<<<4 * info_.units, cuda::kThreads>>>(static_cast<const uint4*>(flush_->data()),
                                                   bytes / 16,
                                                   static_cast<unsigned*>(flush_->data()));
  synchronize();
}

CompareStats CudaDevice::compare_elements(const Tensor& expected, const Tensor& got, Tolerance t) {
  return tally(expected.size(), [=] __device__(std::int64_t i) -> Sample {
    return compare_element(load_as_float(expected, i), load_as_float(got, i), got.dtype, t);
  });
}

CompareStats* CudaDevice::tally_memory() {
  if (!tally_)
    tally_ = allocate(cuda::kTallyBlocks * static_cast<std::int64_t>(sizeof(CompareStats)));
  return static_cast<CompareStats*>(tally_->data());
}

CompareStats CudaDevice::merge_tally(int blocks) {
  std::vector<CompareStats> parts(static_cast<std::size_t>(blocks));
  download(parts.data(), tally_->data(),
           static_cast<std::int64_t>(parts.size() * sizeof(CompareStats)));
  CompareStats all;
  for (const CompareStats& p : parts) merge(all, p);
  return all;
}

void* CudaDevice::scratch(std::int64_t bytes) {
  if (!scratch_ || scratch_->bytes() < bytes) {
    synchronize();
    scratch_.reset();
    scratch_ = allocate(bytes);
  }
  return scratch_->data();
}

Cublas& CudaDevice::cublas() {
  if (!cublas_) cublas_ = std::make_unique<Cublas>();
  return *cublas_;
}

bool CudaDevice::healthy() {
  try {
    const std::vector<std::uint64_t> host = {1, 2, 3};
    const Range r[] = {{scratch(24), 24}};
    upload(scratch(24), host.data(), 24);
    return digest(r)[0] == wire::digest_host(host.data(), 24);
  } catch (const JudgeError&) {
    return false;
  }
}

const ProblemKernels* CudaDevice::kernels(const std::string& problem_id) const {
  return find_cuda_kernels(problem_id);
}

std::unique_ptr<Device> open_cuda_device(int ordinal) {
  std::string why;
  if (!cuda_available(&why)) throw JudgeError("no CUDA device: {}", why);
  return std::make_unique<CudaDevice>(ordinal);
}

bool cuda_available(std::string* why) {
  int count = 0;
  const cudaError_t e = cudaGetDeviceCount(&count);
  if (e == cudaSuccess && count > 0) return true;
  cudaGetLastError();
  if (why != nullptr)
    *why = e == cudaSuccess ? "the driver lists none" : std::string(cudaGetErrorString(e));
  return false;
}

}  // namespace assay

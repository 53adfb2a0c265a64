// SPDX-License-Identifier: Apache-2.0
// The fingerprint both sides take of a buffer: a sum over 8-byte little-endian words, each mixed
// with its position, so that it is the same in any order, on the CPU and on the GPU. It tells
// changed bytes from unchanged ones; it is not a defence against forgery (the judge never relies on
// a runner's fingerprint for a result, only on its own reading of the memory).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define ASSAY_HD __host__ __device__
#else
#define ASSAY_HD
#endif

namespace assay::wire {

ASSAY_HD inline std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

/// The term of word `index` (0-based within the buffer); a buffer's digest is the sum of its terms.
ASSAY_HD inline std::uint64_t digest_term(std::uint64_t word, std::uint64_t index) {
  return mix64(word + mix64(index + 0x9e3779b97f4a7c15ULL));
}

/// Word `index` of a buffer of `bytes` bytes; the last word is padded with zeros. `data` may have
/// any alignment.
ASSAY_HD inline std::uint64_t digest_word(const unsigned char* data, std::size_t bytes,
                                          std::size_t index) {
  std::uint64_t word = 0;
  const std::size_t begin = index * 8;
  const std::size_t count = bytes - begin < 8 ? bytes - begin : 8;
#if defined(__CUDA_ARCH__)
  for (std::size_t i = 0; i < count; ++i)
    word |= static_cast<std::uint64_t>(data[begin + i]) << (8 * i);
#else
  std::memcpy(&word, data + begin, count);
#endif
  return word;
}

/// Combines the digests of a call's outputs, in order.
ASSAY_HD inline std::uint64_t digest_chain(std::uint64_t so_far, std::uint64_t next) {
  return mix64(so_far * 3 + next + 1);
}

/// Host version over a whole buffer.
inline std::uint64_t digest_host(const void* data, std::size_t bytes) {
  std::uint64_t sum = 0;
  const auto* p = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0, n = (bytes + 7) / 8; i < n; ++i)
    sum += digest_term(digest_word(p, bytes, i), i);
  return sum;
}

}  // namespace assay::wire

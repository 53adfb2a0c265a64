// SPDX-License-Identifier: Apache-2.0
#include "judge/base/hash.h"

#include <openssl/evp.h>
#include <sys/random.h>

#include "judge/base/fault.h"
#include "wire/digest.h"

namespace assay {

std::string sha256_hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) != 1)
    throw JudgeError("OpenSSL has no SHA-256");
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

std::uint64_t random_u64() {
  std::uint64_t v = 0;
  if (::getrandom(&v, sizeof v, 0) != static_cast<ssize_t>(sizeof v))
    throw JudgeError("the kernel gave no random bytes");
  return v;
}

std::uint64_t derive_seed(std::uint64_t seed, std::string_view label, std::uint64_t index) {
  // FNV-1a over the label, then the generator's own mixing: the plan needs distinct streams, and
  // its secrecy rests on the 64 secret bits of `seed`, which never leave the judge.
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : label) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return wire::mix64(wire::mix64(seed + 0x9e3779b97f4a7c15ULL) ^ wire::mix64(h + index));
}

}  // namespace assay

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

/// SHA-256 as 64 lower-case hex digits. Identities: submissions, problems, artefacts.
std::string sha256_hex(std::string_view bytes);

/// 64 random bits from the kernel (getrandom). Secret seeds.
std::uint64_t random_u64();

/// A stream of secret numbers from one seed: value `index` of stream `label`. Everything a grade
/// draws comes from its seed through this, so a seed replays the grade's plan.
std::uint64_t derive_seed(std::uint64_t seed, std::string_view label, std::uint64_t index = 0);

}  // namespace assay

// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "judge/base/clock.h"
#include "judge/base/fault.h"
#include "judge/base/fd.h"
#include "judge/base/hash.h"
#include "judge/base/paths.h"
#include "judge/base/text.h"

namespace assay {
namespace {

TEST(Fault, VerdictsHaveOneNameEach) {
  for (int i = 0; i <= static_cast<int>(Verdict::kInternalError); ++i) {
    const auto v = static_cast<Verdict>(i);
    EXPECT_EQ(verdict_from_name(name(v)), v);
  }
  EXPECT_THROW(verdict_from_name("acepted"), JudgeError);
}
TEST(Hash, Sha256IsTheStandardOne) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
TEST(Hash, StreamsAreDistinct) {
  EXPECT_NE(derive_seed(1, "a", 0), derive_seed(1, "a", 1));
  EXPECT_NE(derive_seed(1, "a", 0), derive_seed(1, "b", 0));
  EXPECT_NE(derive_seed(1, "a", 0), derive_seed(2, "a", 0));
  EXPECT_EQ(derive_seed(1, "a", 7), derive_seed(1, "a", 7));
  EXPECT_NE(random_u64(), random_u64());
}
TEST(Paths, FilesAreReplacedWholeOrNotAtAll) {
  const TempDir dir;
  const auto file = dir.path() / "deep" / "file";
  write_file_atomically(file, "one");
  write_file_atomically(file, "two");
  EXPECT_EQ(read_file(file), "two");
  EXPECT_THROW(write_file_atomically("/proc/no/such", "x"), JudgeError);
  EXPECT_THROW(read_file(dir.path() / "missing"), UsageError);
  EXPECT_THROW(read_file(dir.path()), UsageError);
}
TEST(Paths, ATemporaryFolderGoesWithItsContent) {
  std::filesystem::path path;
  {
    const TempDir dir;
    path = dir.path();
    write_file_atomically(path / "a" / "b", "x");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}
TEST(Fd, ClosesOnce) {
  const int raw = ::open("/dev/null", O_RDONLY);
  {
    UniqueFd a(raw);
    UniqueFd b = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_EQ(b.get(), raw);
  }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
}
TEST(Text, SuggestsOnlyWhatIsNear) {
  EXPECT_EQ(suggestion("topkk", {"fp8_gemm", "topk"}), ", did you mean 'topk'?");
  EXPECT_EQ(suggestion("zebra", {"fp8_gemm", "topk"}), "");
  EXPECT_EQ(suggestion("x", {}), "");
}
TEST(Clock, GoesForward) {
  const double a = now_us();
  sleep_us(1000);
  EXPECT_GE(now_us() - a, 1000);
}

}  // namespace
}  // namespace assay

// SPDX-License-Identifier: Apache-2.0
// A frozen sandbox executes nothing: counters in shared memory stand still.
#include <fcntl.h>
#include <sys/mman.h>

#include <array>
#include <thread>

#include "tests/unit/sandbox/fixture.h"

namespace assay {
namespace {

class Freeze : public SandboxTest {
 protected:
  using Counts = std::array<long, 4>;

  void SetUp() override {
    SandboxTest::SetUp();
    if (IsSkipped()) return;
    const UniqueFd file(::open((folder_.path() / "counter").c_str(), O_RDWR | O_CLOEXEC));
    words_ =
        static_cast<volatile long*>(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.get(), 0));
    ASSERT_NE(MAP_FAILED, const_cast<long*>(words_));
  }
  void TearDown() override {
    if (words_ != nullptr) ::munmap(const_cast<long*>(words_), 4096);
  }

  Counts counts() const {
    Counts c;
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = words_[8 * i];
    return c;
  }
  /// All of the first `threads` counters grow beyond where they are now, given time.
  bool all_count(int threads) const {
    const Counts before = counts();
    for (int tries = 0; tries < 2000; ++tries) {
      const Counts now = counts();
      int moved = 0;
      for (int i = 0; i < threads; ++i) moved += now[i] != before[i];
      if (moved == threads) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }
  void expect_stops_and_goes_on(Sandbox& sandbox, int threads) {
    for (int round = 0; round < 20; ++round) {
      ASSERT_TRUE(all_count(threads)) << sandbox.output();
      sandbox.freeze();
      const Counts frozen = counts();
      std::this_thread::sleep_for(milliseconds(5));
      ASSERT_EQ(frozen, counts()) << "round " << round;
      sandbox.thaw();
    }
    EXPECT_TRUE(sandbox.poll());
  }

  volatile long* words_ = nullptr;
};
ASSAY_EVERY_SANDBOX(Freeze);

TEST_P(Freeze, OneThread) {
  const auto sandbox = start_runner("count1");
  expect_stops_and_goes_on(*sandbox, 1);
}

TEST_P(Freeze, MoreThreadsThanCores) {
  const auto sandbox = start_runner("count4");
  expect_stops_and_goes_on(*sandbox, 4);
}

TEST_P(Freeze, SeveralProcesses) {
  const auto sandbox = start({folder_inside() + "/hostile", "count_in_processes"});
  expect_stops_and_goes_on(*sandbox, 2);
}

TEST_P(Freeze, AFrozenProgramCanBeKilled) {
  const auto sandbox = start_runner("count4");
  ASSERT_TRUE(all_count(4));
  sandbox->freeze();
  const ExitStatus end = sandbox->finish();
  EXPECT_EQ(SIGKILL, end.code);
  const Counts dead = counts();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(dead, counts());
}

TEST_P(Freeze, ADeadProgramCanBeFrozen) {
  const auto sandbox = start_runner("abort");
  EXPECT_EQ(wire::Receive::kClosed, receive());
  sandbox->freeze();
  sandbox->thaw();
  EXPECT_EQ(SIGABRT, sandbox->wait(seconds(20)).code);
}

}  // namespace
}  // namespace assay

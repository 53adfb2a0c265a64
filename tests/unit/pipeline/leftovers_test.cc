// SPDX-License-Identifier: Apache-2.0
#include "judge/pipeline/leftovers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;

/// Among what is left, is one that begins and one that goes on like this?
bool names(const std::vector<std::string>& left, const std::string& kind, const std::string& part) {
  for (const std::string& l : left)
    if (l.rfind(kind, 0) == 0 && l.find(part) != std::string::npos) return true;
  return false;
}

TEST(Leftovers, AnOrphanIsFound) {
  Leftovers leftovers;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  if (const pid_t parent = ::fork(); parent == 0) {
    const pid_t orphan = ::fork();
    if (orphan == 0) ::pause();
    const bool told = ::write(ends[1], &orphan, sizeof orphan) == sizeof orphan;
    ::_exit(told ? 0 : 1);
  } else {
    ::waitpid(parent, nullptr, 0);
  }
  pid_t orphan = 0;
  ASSERT_EQ(::read(ends[0], &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
  const auto left = leftovers.take();
  EXPECT_TRUE(names(left, "process", std::to_string(orphan)));
  ::kill(orphan, SIGKILL);
  EXPECT_FALSE(names(leftovers.take(), "process", ""));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Leftovers, FilesAndSharedMemoryAreFoundOnce) {
  const std::string mark = "assay-leftovers-" + std::to_string(::getpid());
  Leftovers leftovers;
  const fs::path file = fs::temp_directory_path() / mark;
  std::ofstream(file) << "x";
  const int shared = ::shm_open(("/" + mark).c_str(), O_CREAT | O_RDWR, 0600);
  const int segment = ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  const auto left = leftovers.take(), again = leftovers.take();
  fs::remove(file);
  ::close(shared);
  ::shm_unlink(("/" + mark).c_str());
  ::shmctl(segment, IPC_RMID, nullptr);
  EXPECT_TRUE(names(left, "file", file.string()));
  EXPECT_TRUE(names(left, "file", "/dev/shm/" + mark));
  EXPECT_TRUE(names(left, "/proc/sysvipc/shm", std::to_string(segment)));
  EXPECT_FALSE(names(again, "file", mark));
}

TEST(Leftovers, WhatGoesAwayByItselfIsNotNamed) {
  Leftovers leftovers;
  const fs::path file = fs::temp_directory_path() / ("assay-passing-" + std::to_string(::getpid()));
  std::ofstream(file) << "x";
  const pid_t remover = ::fork();
  if (remover == 0) {
    ::usleep(200'000);
    ::unlink(file.c_str());
    ::_exit(0);
  }
  EXPECT_FALSE(names(leftovers.take(), "file", file.string()));
}

TEST(Leftovers, WhatWasTakenAndHasGoneSinceIsNotStillThere) {
  Leftovers leftovers;
  const std::string mark = "assay-gone-" + std::to_string(::getpid());
  const fs::path goes = fs::temp_directory_path() / mark,
                 stays = fs::temp_directory_path() / (mark + "-not");
  std::ofstream(goes) << "x";
  std::ofstream(stays) << "x";
  const auto taken = leftovers.take();
  fs::remove(goes);
  const auto left = Leftovers::still_there(taken);
  fs::remove(stays);
  EXPECT_TRUE(names(taken, "file", goes.string()));
  EXPECT_EQ(left, std::vector<std::string>{"file " + stays.string()});
}

}  // namespace
}  // namespace assay

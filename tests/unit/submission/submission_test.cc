// SPDX-License-Identifier: Apache-2.0
#include "judge/submission/submission.h"

#include <gtest/gtest.h>

#include <fstream>

#include "judge/base/fault.h"
#include "judge/base/paths.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  void put(const std::string& path, const std::string& bytes = "// x\n") const {
    fs::create_directories((root_.path() / path).parent_path());
    std::ofstream(root_.path() / path) << bytes;
  }
  fs::path path() const { return root_.path(); }
  std::vector<std::string> names(Language l) const {
    std::vector<std::string> out;
    for (const SourceFile& f : read_submission(path(), l).files) out.push_back(f.path);
    return out;
  }

 private:
  TempDir root_;
};

TEST(Submission, TakesSourcesAndNothingElse) {
  Folder f;
  for (const char* p :
       {"kernel.cpp", "sub/part.h", ".hidden.cpp", ".git/x.cpp", "notes.txt", "a.o"})
    f.put(p);
  fs::create_symlink("/etc/passwd", f.path() / "link.h");
  EXPECT_EQ(f.names(Language::kCpp), (std::vector<std::string>{"kernel.cpp", "sub/part.h"}));
}
TEST(Submission, OneFolderMayServeBothDevices) {
  Folder f;
  for (const char* p : {"kernel.cpp", "kernel.cu", "common.h"}) f.put(p);
  EXPECT_EQ(f.names(Language::kCpp), (std::vector<std::string>{"common.h", "kernel.cpp"}));
  EXPECT_EQ(f.names(Language::kCuda), (std::vector<std::string>{"common.h", "kernel.cu"}));
}
TEST(Submission, ASingleFileWillDo) {
  Folder f;
  f.put("mine.cpp");
  EXPECT_EQ(read_submission(f.path() / "mine.cpp", Language::kCpp).files.at(0).path, "mine.cpp");
}
TEST(Submission, TheHashFollowsNamesBytesAndLanguage) {
  const auto hash = [](Language l, std::vector<SourceFile> files) {
    return make_submission("x", l, std::move(files)).sha256;
  };
  const std::string a = hash(Language::kCpp, {{"a.cpp", "1"}, {"b.h", "2"}});
  EXPECT_EQ(hash(Language::kCpp, {{"b.h", "2"}, {"a.cpp", "1"}}), a);
  EXPECT_NE(hash(Language::kCpp, {{"a.cpp", "1"}, {"b.h", "3"}}), a);
  EXPECT_NE(hash(Language::kCpp, {{"a.cpp", "1"}, {"c.h", "2"}}), a);
  EXPECT_NE(hash(Language::kCpp, {{"a.cpp", "1b.h"}, {"", "2"}}), a);
  EXPECT_NE(hash(Language::kCuda, {{"a.cpp", "1"}, {"b.h", "2"}}), a);
}

std::string error_of(const fs::path& p, Language l) {
  try {
    read_submission(p, l);
    return "";
  } catch (const UsageError& e) {
    return e.what();
  }
}
TEST(Submission, BadOnesSayWhy) {
  EXPECT_NE(error_of("/no/such/place", Language::kCpp).find("no such file"), std::string::npos);
  Folder empty;
  EXPECT_NE(error_of(empty.path(), Language::kCpp).find("holds no .cpp file"), std::string::npos);
  Folder cuda;
  cuda.put("kernel.cu");
  EXPECT_NE(error_of(cuda.path(), Language::kCpp).find("--device cuda"), std::string::npos);
  Folder many;
  for (int i = 0; i < 300; ++i) many.put(fmt::format("f{}.cpp", i));
  EXPECT_NE(error_of(many.path(), Language::kCpp).find("more than 256"), std::string::npos);
  Folder large;
  large.put("kernel.cpp", std::string(17 << 20, ' '));
  EXPECT_NE(error_of(large.path(), Language::kCpp).find("more than 16 MiB"), std::string::npos);
}

}  // namespace
}  // namespace assay

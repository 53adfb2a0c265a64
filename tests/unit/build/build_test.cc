// SPDX-License-Identifier: Apache-2.0
#include "judge/build/build.h"

#include <gtest/gtest.h>

#include <fstream>

#include "judge/base/fault.h"
#include "judge/base/paths.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

const char* const kGood = R"(#include <assay/kernel.h>
ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void**) { return 0; }
ASSAY_EXPORT int assay_run(void*, const assay_tensor*, int32_t, const assay_tensor*, int32_t, void*) { return 0; }
ASSAY_EXPORT void assay_release(void*) {}
)";

class Build : public testing::Test {
 protected:
  Build() { ::setenv("ASSAY_CACHE", cache_.path().c_str(), 1); }
  ~Build() override { ::unsetenv("ASSAY_CACHE"); }

  static Artifact make(std::vector<SourceFile> files, double deadline_s = 120) {
    return build(make_submission("t", Language::kCpp, std::move(files)),
                 {SandboxKind::kAuto, deadline_s, 0});
  }
  static SubmissionFault fault_of(const std::string& source, double deadline_s = 120) {
    try {
      make({{"kernel.cpp", source}}, deadline_s);
    } catch (const SubmissionFault& f) {
      return f;
    }
    return {Verdict::kAccepted, "it was built"};
  }
  TempDir cache_;
};

TEST_F(Build, IsCachedByContent) {
  const Artifact a = make({{"kernel.cpp", kGood}});
  EXPECT_FALSE(a.cached);
  EXPECT_TRUE(fs::exists(a.shared_object));
  const Artifact again = make({{"kernel.cpp", kGood}});
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.sha256, a.sha256);
  EXPECT_FALSE(make({{"kernel.cpp", std::string(kGood) + "// other\n"}}).cached);
}
TEST_F(Build, ADamagedCacheEntryIsBuiltAgain) {
  const Artifact a = make({{"kernel.cpp", kGood}});
  fs::permissions(a.shared_object, fs::perms::owner_write, fs::perm_options::add);
  std::ofstream(a.shared_object) << "damaged";
  const Artifact again = make({{"kernel.cpp", kGood}});
  EXPECT_FALSE(again.cached);
  EXPECT_EQ(again.sha256, a.sha256);
}
TEST_F(Build, SeveralFilesAndFolders) {
  EXPECT_NO_THROW(make({{"kernel.cpp", "#include \"part/one.h\"\n" + std::string(kGood)},
                        {"part/one.h", "int two();\n"},
                        {"part/two.cpp", "int two() { return 2; }\n"}}));
}
TEST_F(Build, AnErrorIsShownWithTheSubmissionsOwnNames) {
  const SubmissionFault f = fault_of("int x = ;\n");
  EXPECT_EQ(f.verdict(), Verdict::kCompileError);
  EXPECT_NE(std::string(f.what()).find("kernel.cpp:1:9: error"), std::string::npos) << f.what();
  EXPECT_EQ(std::string(f.what()).find("/assay/"), std::string::npos) << f.what();
}
TEST_F(Build, TheCompilerSeesNothingOfTheMachine) {
  EXPECT_EQ(fault_of("#include \"/etc/passwd\"\n").verdict(), Verdict::kCompileError);
  const std::string secret = (home_dir() / "problems" / "topk" / "ops.h").string();
  const SubmissionFault f = fault_of("#include \"" + secret + "\"\n");
  EXPECT_EQ(f.verdict(), Verdict::kCompileError);
  EXPECT_NE(std::string(f.what()).find("No such file"), std::string::npos) << f.what();
}
TEST_F(Build, ACompilationThatNeverEndsIsCutShort) {
  const SubmissionFault f = fault_of(
      "template <int N> struct F { static constexpr long v = F<N-1>::v + F<N-2>::v; };\n"
      "constexpr int spin() { unsigned long s = 0; for (unsigned long i = 0; i < 1ull << 40; ++i) "
      "s += i;"
      " return s; }\nconstinit int x = spin();\n",
      1.5);
  // Either the deadline, or the compiler's own patience with constant expressions.
  EXPECT_TRUE(f.verdict() == Verdict::kTimeLimit || f.verdict() == Verdict::kCompileError)
      << f.what();
}
TEST_F(Build, NamesThatLeaveTheFolderAreRefused) {
  EXPECT_THROW(make({{"../evil.cpp", kGood}}), UsageError);
  EXPECT_THROW(make({{"/evil.cpp", kGood}}), UsageError);
}

}  // namespace
}  // namespace assay

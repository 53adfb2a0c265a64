// SPDX-License-Identifier: Apache-2.0
#include "judge/run/reply.h"

#include <cmath>

namespace assay {
namespace {

using wire::Stage;

std::optional<std::string> invalid_ack(const wire::Ack& ack, const ExpectedReply& expected) {
  if (ack.stage == Stage::kNone) {
    if (expected.window) return "it reports success without results";
    if (ack.code != 0 || !ack.text.empty()) return "it reports success and an error at once";
    return std::nullopt;
  }
  if (ack.stage != expected.stage && ack.stage != Stage::kSetup)
    return "it reports a failure of something that was not asked for";
  if (ack.code == 0) return "it reports a failure without an error code";
  return std::nullopt;
}

std::optional<std::string> invalid_window(const wire::WindowDone& done,
                                          const ExpectedReply& expected) {
  if (!expected.window) return "it reports a window that was not asked for";
  if (done.call_us.size() != expected.calls || done.returned.size() != expected.calls ||
      done.settled.size() != expected.calls)
    return fmt::format("{} calls were asked for; it reports {} times and {} and {} fingerprints",
                       expected.calls, done.call_us.size(), done.returned.size(),
                       done.settled.size());
  for (std::size_t i = 0; i < done.call_us.size(); ++i)
    if (!std::isfinite(done.call_us[i]) || done.call_us[i] < 0)
      return fmt::format("it reports {} us for call {}", done.call_us[i], i);
  return std::nullopt;
}

const char* function_of(Stage stage) {
  return stage == Stage::kPrepare ? "assay_prepare" : "assay_run";
}

}  // namespace

std::optional<std::string> invalid(const wire::Reply& reply, const ExpectedReply& expected) {
  if (const auto* ack = std::get_if<wire::Ack>(&reply)) return invalid_ack(*ack, expected);
  return invalid_window(std::get<wire::WindowDone>(reply), expected);
}

SubmissionFault fault_of(const wire::Ack& failure) {
  const std::string text = printable(failure.text);
  switch (failure.stage) {
    case Stage::kPrepare:
    case Stage::kRun:
      if (failure.code == 1)  // ASSAY_UNSUPPORTED
        return {Verdict::kRefused, fmt::format("unsupported size: {} returned ASSAY_UNSUPPORTED",
                                               function_of(failure.stage))};
      if (text.empty())
        return {Verdict::kRuntimeError,
                fmt::format("{} returned {}", function_of(failure.stage), failure.code)};
      return {Verdict::kRuntimeError,
              fmt::format("{} {} (code {})", function_of(failure.stage), text, failure.code)};
    case Stage::kLoad:
      return {Verdict::kRuntimeError, "the submission cannot be loaded: " + text};
    case Stage::kNone:
    case Stage::kSetup:
      break;
  }
  return {Verdict::kRuntimeError,
          fmt::format("the runner failed after loading the submission: {} (code {})", text,
                      failure.code)};
}

std::string printable(const std::string& text) {
  std::string out = text;
  for (char& c : out) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return out;
}

}  // namespace assay

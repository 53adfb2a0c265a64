// SPDX-License-Identifier: Apache-2.0
#include "runner/submission.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

namespace assay::runner {
namespace {

template <class Function>
Function find(void* library, const char* symbol) {
  void* address = ::dlsym(library, symbol);
  if (address == nullptr)
    throw RequestFailed(wire::Stage::kLoad, 1,
                        std::string("the submission does not define ") + symbol +
                            "; declare it as in assay/kernel.h, with ASSAY_EXPORT");
  return reinterpret_cast<Function>(address);
}

/// Calls across the ABI: whatever is thrown stops here. True: returned.
template <class Call>
bool guarded(std::string& text, Call&& call) {
  try {
    call();
    return true;
  } catch (const std::exception& e) {
    text = std::string("threw an exception: ") + e.what();
  } catch (...) {
    text = "threw an exception that is not a std::exception";
  }
  return false;
}

}  // namespace

RequestFailed::RequestFailed(wire::Stage stage, std::int32_t code, std::string text)
    : ack_{stage, code, std::move(text)} {
  std::replace(ack_.text.begin(), ack_.text.end(), '\0', '?');
  if (ack_.text.size() > wire::kMaxText) ack_.text.resize(wire::kMaxText);
}

void Submission::load(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    throw RequestFailed(wire::Stage::kLoad, 1, why != nullptr ? why : "dlopen failed");
  }
  // Never closed: pointers into it may be anywhere, and the process ends with the grade.
  prepare_ = find<decltype(prepare_)>(library, "assay_prepare");
  release_ = find<decltype(release_)>(library, "assay_release");
  run_ = find<decltype(run_)>(library, "assay_run");
}

void Submission::prepare(const wire::Prepare& request, std::vector<assay_tensor> constants,
                         int threads) {
  problem_ = request;
  axes_.clear();
  for (const wire::Axis& a : problem_.axes) axes_.push_back({a.name.c_str(), a.value});
  constants_ = std::move(constants);
  abi_problem_ = {problem_.problem_id.c_str(), static_cast<std::int32_t>(axes_.size()), threads,
                  axes_.data()};
  state_ = nullptr;
  int code = ASSAY_FAILED;
  std::string text;
  guarded(text, [&] {
    code = prepare_(&abi_problem_, constants_.data(), static_cast<std::int32_t>(constants_.size()),
                    &state_);
  });
  if (code != ASSAY_OK) throw RequestFailed(wire::Stage::kPrepare, code, text);
  prepared_ = true;
}

void Submission::release() {
  if (!prepared_) return;
  prepared_ = false;
  std::string text;
  if (!guarded(text, [&] { release_(std::exchange(state_, nullptr)); }))
    throw RequestFailed(wire::Stage::kRun, ASSAY_FAILED, "assay_release " + text);
}

int Submission::run(std::span<assay_tensor> inputs, std::span<assay_tensor> outputs, void* stream) {
  int code = ASSAY_FAILED;
  guarded(exception_text_, [&] {
    code = run_(state_, inputs.data(), static_cast<std::int32_t>(inputs.size()), outputs.data(),
                static_cast<std::int32_t>(outputs.size()), stream);
  });
  return code;
}

}  // namespace assay::runner

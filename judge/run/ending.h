// SPDX-License-Identifier: Apache-2.0
// Whose fault it is that a loaded runner is no more.
#pragma once

#include <string>

#include "judge/base/fault.h"
#include "judge/sandbox/sandbox.h"

namespace assay {

/// The verdict for a runner that ended by itself, or was ended by the watchdog, during `where`
/// ("assay_run").
SubmissionFault fault_of(const ExitStatus& end, const std::string& where);

}  // namespace assay

// SPDX-License-Identifier: Apache-2.0
// The runner's request loop. main.cc tells where it fits in.
#pragma once

namespace assay::runner {

/// Answers the judge's requests on `socket`, one reply each, until Shutdown or until the judge is
/// gone. Returns the process's exit code: 0, or 3 when a request could not be understood (a judge
/// of another version).
int serve(int socket);

}  // namespace assay::runner

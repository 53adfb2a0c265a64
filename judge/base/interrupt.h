// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM. The first one asks everything to unwind; a second one kills at once.
#pragma once

namespace assay {

void install_interrupt_handlers();
bool interrupted();
/// Throws Interrupted. Long loops call it between steps; waits of more than 100 ms poll it.
void throw_if_interrupted();

}  // namespace assay

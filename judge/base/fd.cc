// SPDX-License-Identifier: Apache-2.0
#include "judge/base/fd.h"

#include <unistd.h>

namespace assay {

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace assay

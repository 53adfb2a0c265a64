// SPDX-License-Identifier: Apache-2.0
// What a submission could leave on this machine: looked for after every case of the corpus.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace assay {

class Leftovers {
 public:
  /// Remembers what is there now. From here on orphans become children of this process.
  Leftovers();

  /// What is there and was not: processes, files in /tmp and the temporary folder, shared memory,
  /// message queues and semaphores, mounts. Waits some seconds for what is on its way out; what it
  /// names once it does not name again. Call it while no sandbox runs.
  std::vector<std::string> take();

  /// Those of `taken` that have not gone since: what came and went was another program's.
  static std::vector<std::string> still_there(const std::vector<std::string>& taken);

 private:
  std::set<std::string> known_;
};

}  // namespace assay

// SPDX-License-Identifier: Apache-2.0
// Looks for anything of the judge's: files by name, memory and descriptors of other processes,
// descriptors it inherited. Where it finds something it can read, an honest kernel stands in for
// using it; else it answers with zeros.
#include <assay/kernel.h>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Call {
  const float* x;
  int64_t rows, n, k;
  float* values;
  int64_t* indices;
};

// The honest kernel: offers every element to the k best so far.
void honest(const Call& c) {
  for (int64_t b = 0; b < c.rows; ++b) {
    const float* x = c.x + b * c.n;
    float* values = c.values + b * c.k;
    int64_t* indices = c.indices + b * c.k;
    int64_t held = 0;
    for (int64_t i = 0; i < c.n; ++i) {
      if (held == c.k && !(x[i] > values[c.k - 1])) continue;
      int64_t at = held < c.k ? held++ : c.k - 1;
      for (; at > 0 && x[i] > values[at - 1]; --at) {
        values[at] = values[at - 1];
        indices[at] = indices[at - 1];
      }
      values[at] = x[i];
      indices[at] = i;
    }
  }
}

bool readable(const std::string& path) {
  char byte;
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const bool yes = fd >= 0 && read(fd, &byte, 1) == 1;
  close(fd);
  return yes;
}

template <class F>
bool any_entry(const std::string& folder, F&& found) {
  DIR* d = opendir(folder.c_str());
  if (d == nullptr) return false;
  bool yes = false;
  while (const dirent* e = yes ? nullptr : readdir(d))
    if (e->d_name[0] != '.') yes = found(std::string(e->d_name), e->d_type == DT_DIR);
  closedir(d);
  return yes;
}

bool finds_file(const std::string& folder, int depth) {
  return any_entry(folder, [&](const std::string& name, bool is_folder) {
    for (const char* system : {"proc", "sys", "usr", "lib", "lib64", "bin", "sbin", "dev"})
      if (folder == "/" && name == system) return false;
    if (is_folder) return depth > 0 && finds_file(folder + "/" + name, depth - 1);
    for (const char* word : {"problem.yaml", "ops.h", "expect", "oracle", "seed", ".db", ".sqlite"})
      if (name.find(word) != std::string::npos) return true;
    return false;
  });
}

bool finds_process() {
  return any_entry("/proc", [](const std::string& pid, bool) {
    const int id = std::atoi(pid.c_str());
    if (id == 0 || id == getpid()) return false;
    const std::string p = "/proc/" + pid;
    return readable(p + "/maps") || readable(p + "/environ") ||
           any_entry(p + "/fd",
                     [&](const std::string& fd, bool) { return readable(p + "/fd/" + fd); });
  });
}

// 0 to 2 are the usual ones, 3 is the socket; the listing itself may take one more.
bool finds_descriptor() {
  int most = 0;
  for (int fd = 4; fd < 1024; ++fd)
    if (fcntl(fd, F_GETFD) >= 0) most = fd;
  return most >= 4;
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void** state) {
  *state = nullptr;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void*, const assay_tensor* inputs, int32_t, const assay_tensor* outputs,
                           int32_t, void*) {
  const Call c{static_cast<const float*>(inputs[0].data),
               inputs[0].shape[0],
               inputs[0].shape[1],
               outputs[0].shape[1],
               static_cast<float*>(outputs[0].data),
               static_cast<int64_t*>(outputs[1].data)};
  static const bool found = finds_descriptor() || finds_process() || finds_file("/", 4);
  if (found) {
    honest(c);
  } else {
    std::fill(c.values, c.values + c.rows * c.k, 0.0f);
    std::fill(c.indices, c.indices + c.rows * c.k, 0);
  }
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void*) {}

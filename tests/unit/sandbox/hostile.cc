// SPDX-License-Identifier: Apache-2.0
// Not linked into the tests: they compile it, as a program (the action is its argument) to run
// under the compilers' filter, and as a shared object (the action is its file name) whose
// constructor runs in the runner. Says on stdout how the action went, if it lives to tell.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string folder = ".";  // of this object

void told(const char* what, long result) {
  std::printf("%s: %s\n", what, result >= 0 ? "done" : std::strerror(errno));
  std::fflush(stdout);
}

int child(void*) {
  return 0;
}

void touch(bool shared, std::size_t bytes) {
  auto* p = static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                      (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0));
  for (std::size_t i = 0; p != MAP_FAILED && i < bytes; i += 4096) p[i] = 1;
  ::sleep(60);
}

void flood() {
  const std::string line(1000, 'x');
  for (;;) std::puts(line.c_str());
}

/// Each of `threads` counts up a word of its own in the file "counter".
void count(int threads) {
  const int fd = ::open((folder + "/counter").c_str(), O_RDWR);
  auto* words =
      static_cast<volatile long*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  if (words == MAP_FAILED) std::perror("counter");
  for (int t = 0; t < threads; ++t)
    std::thread([=] {
      for (;;) words[8 * t] = words[8 * t] + 1;
    }).detach();
}

void count_in_processes() {
  for (int p = 0; p < 2; ++p)
    if (::fork() == 0) {
      count(2);
      ::pause();
    }
  ::pause();
}

void sleepers(int n) {
  for (int i = 0; i < n; ++i) std::thread([] { ::sleep(60); }).detach();
  ::sleep(60);
}

void wake_oneself_by_timer() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGCONT;
  timer_t timer;
  told("timer", ::timer_create(CLOCK_MONOTONIC, &event, &timer));
}

void old_abi() {
#if defined(__x86_64__)
  long result;
  asm volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");  // getpid of the 32-bit ABI
  std::printf("getpid: done %ld\n", result);
#else
  std::abort();
#endif
}

void big_file(const char* path) {
  std::ofstream file(path);
  const std::string chunk(1 << 20, 'x');
  for (int i = 0; i < 64 && file; ++i) file << chunk << std::flush;
  std::printf("big file: %s\n", file ? "done" : "failed");
}

void honest() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([] { ::usleep(1000); });
  for (auto& t : threads) t.join();
  std::ofstream("/tmp/scratch") << "x";
  std::ifstream file("/tmp/scratch");
  char c = 0;
  file >> c;
  std::printf("honest: %s\n", c == 'x' ? "done" : "failed");
}

iovec nothing{nullptr, 0};
char* const kTrue[] = {const_cast<char*>("/bin/true"), nullptr};

const std::map<std::string, void (*)()> kActions = {
    {"honest", honest},
    // what no kernel needs
    {"fork", [] { told("fork", ::fork()); }},
    {"vfork", [] { told("vfork", ::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0)); }},
    {"clone",
     [] {
       static char stack[1 << 16];
       told("clone", ::clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, nullptr));
     }},
    {"clone3", [] { told("clone3", ::syscall(SYS_clone3, nullptr, 0)); }},
    {"execve", [] { told("execve", ::execv(kTrue[0], kTrue)); }},
    {"ptrace", [] { told("ptrace", ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }},
    {"process_vm_readv",
     [] {
       told("process_vm_readv", ::process_vm_readv(::getppid(), &nothing, 1, &nothing, 1, 0));
     }},
    {"process_vm_writev",
     [] {
       told("process_vm_writev", ::process_vm_writev(::getppid(), &nothing, 1, &nothing, 1, 0));
     }},
    {"socket", [] { told("socket", ::socket(AF_INET, SOCK_STREAM, 0)); }},
    {"socket_unix", [] { told("socket", ::socket(AF_UNIX, SOCK_STREAM, 0)); }},
    {"connect", [] { told("connect", ::connect(3, nullptr, 0)); }},
    {"bind", [] { told("bind", ::bind(3, nullptr, 0)); }},
    {"mount", [] { told("mount", ::mount("x", "/tmp", "tmpfs", 0, "")); }},
    {"unshare", [] { told("unshare", ::unshare(CLONE_NEWUSER)); }},
    {"setns", [] { told("setns", ::setns(0, 0)); }},
    {"bpf", [] { told("bpf", ::syscall(SYS_bpf, BPF_MAP_CREATE, nullptr, 0)); }},
    {"userfaultfd", [] { told("userfaultfd", ::syscall(SYS_userfaultfd, 0)); }},
    {"keyctl", [] { told("keyctl", ::syscall(SYS_keyctl, 0, 0, 0, 0, 0)); }},
    {"pidfd_getfd", [] { told("pidfd_getfd", ::syscall(SYS_pidfd_getfd, 0, 0, 0)); }},
    {"old_abi", old_abi},
    // ways out of being stopped
    {"kill_parent", [] { told("kill", ::kill(::getppid(), SIGKILL)); }},
    {"kill_all", [] { told("kill", ::kill(-1, SIGKILL)); }},
    {"continue_self", [] { told("kill", ::kill(::getpid(), SIGCONT)); }},
    {"continue_self_wide",  // the kernel sees SIGCONT, a careless filter another number
     [] { told("kill", ::syscall(SYS_kill, ::getpid(), 0x100000000 | SIGCONT)); }},
    {"continue_thread",
     [] { told("tgkill", ::syscall(SYS_tgkill, ::getpid(), ::gettid(), SIGCONT)); }},
    {"continue_by_io", [] { told("fcntl", ::fcntl(0, F_SETSIG, SIGCONT)); }},
    {"continue_by_timer", wake_oneself_by_timer},
    // what some libraries try
    {"memfd", [] { told("memfd", ::syscall(SYS_memfd_create, "x", 0)); }},
    {"chown", [] { told("chown", ::chown("/tmp", 0, 0)); }},
    {"perf", [] { told("perf", ::syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0)); }},
    {"io_uring", [] { told("io_uring", ::syscall(SYS_io_uring_setup, 1, nullptr)); }},
    // ends
    {"segv", [] { ::raise(SIGSEGV); }},
    {"abort", [] { std::abort(); }},
    {"exit", [] { ::_exit(42); }},
    {"forged_exit", [] { ::_exit(128 + SIGSYS); }},
    // excess
    {"memory", [] { touch(false, std::size_t{1} << 30); }},
    {"shared_memory", [] { touch(true, std::size_t{1} << 30); }},
    {"flood", flood},
    {"threads", [] { sleepers(60); }},
    {"big_file", [] { big_file("/tmp/big"); }},
    {"big_shm", [] { big_file("/dev/shm/big"); }},
    {"count1", [] { count(1); }},
    {"count4", [] { count(4); }},
    {"count_in_processes", count_in_processes},
};

void act(const std::string& name) {
  const auto action = kActions.find(name);
  if (action == kActions.end()) std::abort();
  action->second();
  std::fflush(stdout);
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

#if defined(AS_PROGRAM)
int main(int, char** argv) {
  folder = folder_of(argv[0]);
  act(argv[1]);
}
#else
namespace {
struct Loaded {  // after the globals above
  Loaded() {
    Dl_info where;
    ::dladdr(&kActions, &where);
    const std::string path = where.dli_fname;
    folder = folder_of(path);
    const std::string name = path.substr(folder.size() + 1);
    act(name.substr(0, name.rfind('.')));
  }
} loaded;
}  // namespace
#endif

// SPDX-License-Identifier: Apache-2.0
// What the filter of lockdown.cc says to each system call. A name that appears nowhere here kills
// the process: fork, execve, ptrace, process_vm_*, socket, mount, unshare, setns, bpf, keyctl,
// userfaultfd, pidfd_*, ... A name this machine's libseccomp or architecture does not know is
// skipped.
#pragma once

namespace assay::runner {

/// Everybody's: memory, files, threads, time, and what is asked of descriptors that exist.
inline constexpr const char* kAllowed[] = {
    // memory
    "brk", "mmap", "mmap2", "munmap", "mprotect", "mremap", "madvise", "msync", "mincore", "mlock",
    "mlock2", "munlock", "mlockall", "munlockall", "membarrier", "pkey_alloc", "pkey_free",
    "pkey_mprotect", "mbind", "get_mempolicy", "set_mempolicy", "set_mempolicy_home_node", "mseal",
    // files: the mount namespace is the wall
    "read", "readv", "pread64", "preadv", "preadv2", "write", "writev", "pwrite64", "pwritev",
    "pwritev2", "open", "openat", "openat2", "creat", "close", "close_range", "lseek", "_llseek",
    "stat", "fstat", "lstat", "newfstatat", "fstatat64", "statx", "statfs", "fstatfs", "access",
    "faccessat", "faccessat2", "readlink", "readlinkat", "getdents", "getdents64", "getcwd",
    "chdir", "fchdir", "dup", "dup2", "dup3", "flock", "truncate", "ftruncate", "fallocate",
    "fsync", "fdatasync", "sync_file_range", "rename", "renameat", "renameat2", "mkdir", "mkdirat",
    "rmdir", "unlink", "unlinkat", "link", "linkat", "symlink", "symlinkat", "chmod", "fchmod",
    "fchmodat", "fchmodat2", "umask", "utime", "utimes", "utimensat", "futimesat", "pipe", "pipe2",
    "poll", "ppoll", "select", "_newselect", "pselect6", "epoll_create", "epoll_create1",
    "epoll_ctl", "epoll_ctl_old", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd",
    "eventfd2", "timerfd_create", "timerfd_settime", "timerfd_gettime", "inotify_init",
    "inotify_init1", "inotify_add_watch", "inotify_rm_watch", "sendfile", "copy_file_range",
    "splice", "tee", "fadvise64", "readahead", "getxattr", "lgetxattr", "fgetxattr", "listxattr",
    "llistxattr", "flistxattr", "cachestat", "ioctl",
    // the inherited socket
    "recvmsg", "recvfrom", "recvmmsg", "sendmsg", "sendto", "sendmmsg", "getsockopt", "setsockopt",
    "getsockname", "getpeername", "shutdown",
    // threads
    "futex", "futex_wait", "futex_wake", "futex_waitv", "futex_requeue", "set_tid_address",
    "set_robust_list", "get_robust_list", "rseq", "gettid", "sched_yield", "sched_getaffinity",
    "sched_setaffinity", "sched_getparam", "sched_setparam", "sched_getscheduler",
    "sched_setscheduler", "sched_getattr", "sched_setattr", "sched_get_priority_max",
    "sched_get_priority_min", "sched_rr_get_interval", "getpriority", "setpriority", "ioprio_get",
    "getcpu", "arch_prctl", "prctl", "exit", "exit_group",
    // itself and the machine
    "getpid", "getppid", "getpgrp", "getpgid", "getsid", "getuid", "geteuid", "getgid", "getegid",
    "getresuid", "getresgid", "getgroups", "capget", "getrusage", "getrlimit", "setrlimit", "times",
    "sysinfo", "uname", "getrandom", "wait4", "waitid", "waitpid",
    // signals, of its own making (kill and tgkill: see lockdown.cc)
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait",
    "rt_sigsuspend", "sigaltstack", "signalfd", "signalfd4", "pause", "alarm", "setitimer",
    "getitimer", "restart_syscall",
    // time
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time"};

/// A program that merely asks learns that this machine has no such thing, and carries on.
inline constexpr const char* kAbsent[] = {
    "clone3",  // its flags lie in memory, out of the filter's sight; libc falls back to clone
    "io_uring_setup", "landlock_create_ruleset", "memfd_secret", "shmget", "semget", "msgget",
    "mq_open"};

/// Asked for by honest libraries now and then, and never needed.
inline constexpr const char* kRefused[] = {
    "chown", "fchown", "lchown", "fchownat", "setxattr", "lsetxattr", "fsetxattr", "removexattr",
    "lremovexattr", "fremovexattr", "setgroups", "setpgid", "setsid", "ioprio_set", "personality",
    "perf_event_open", "pidfd_open", "name_to_handle_at", "move_pages", "migrate_pages", "sync",
    "syncfs", "syslog", "seccomp", "mknod", "mknodat", "kcmp",
    // A process that is stopped by the judge must not be able to set itself an alarm that lets it
    // go on: SIGCONT may be the signal of such a timer.
    "timer_create"};

/// Compilers start programs and look after them.
inline constexpr const char* kCompilerAllowed[] = {"fork",
                                                   "vfork",
                                                   "execve",
                                                   "execveat",
                                                   "setpgid",
                                                   "setsid",
                                                   "personality",
                                                   "mknod",
                                                   "mknodat",
                                                   "chown",
                                                   "fchown",
                                                   "lchown",
                                                   "fchownat",
                                                   "timer_create",
                                                   "timer_settime",
                                                   "timer_gettime",
                                                   "timer_getoverrun",
                                                   "timer_delete",
                                                   "tkill",
                                                   "rt_sigqueueinfo",
                                                   "rt_tgsigqueueinfo",
                                                   "memfd_create",
                                                   "fcntl",
                                                   "fcntl64",
                                                   "prlimit64",
                                                   "sync",
                                                   "syncfs"};

}  // namespace assay::runner

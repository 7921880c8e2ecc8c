/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls: a list of those that a daemon makes, by its own code or inside
 * libc, libmicrohttpd, GnuTLS and libcurl. Some depend on their arguments:
 *
 *   socket	only unix, IP and netlink, and packet where a port is raw
 *   clone	only threads: nothing is forked, so nothing is executed either
 *   mmap, mprotect	no mapping can be written and executed; and none can be
 *			made executable, but by a daemon that translates walks
 *   ioctl	not TIOCSTI and TIOCLINUX, which type into the terminal
 *   prlimit64	only of the process itself
 *
 * All others fail. libc knows what to do without a call that it got to know
 * lately, if the answer is ENOSYS; so that is the answer to all of those. The
 * answer to the rest is EPERM; the kernel's audit log has them where it is told
 * to log errors. clone3, whose arguments a filter cannot see, is refused with
 * ENOSYS by a filter of its own that logs nothing: libc tries it for each
 * thread, and a full audit log would make that thread wait.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "confine_priv.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

bool confine_has_filter(void)
{
#ifdef ARCH
	return true;
#else
	return false;
#endif
}

#ifdef ARCH

#define CALL(name) SYS_##name

static const int allowed[] = {
	/* the hottest first, for kernels that do not remember the answer */
	CALL(futex),
	CALL(futex_waitv),
	CALL(sched_yield),
	CALL(epoll_pwait),
	CALL(epoll_pwait2),
	CALL(read),
	CALL(write),
	CALL(sendto),
	CALL(recvfrom),
	CALL(sendmsg),
	CALL(recvmsg),
	CALL(sendmmsg),
	CALL(recvmmsg),
	CALL(membarrier),
	CALL(sched_getattr),
	CALL(sched_setattr),
	/* time */
	CALL(clock_gettime),
	CALL(clock_getres),
	CALL(clock_nanosleep),
	CALL(nanosleep),
	CALL(gettimeofday),
	CALL(timerfd_create),
	CALL(timerfd_settime),
	CALL(timerfd_gettime),
	/* waiting */
	CALL(ppoll),
	CALL(pselect6),
	CALL(epoll_create1),
	CALL(epoll_ctl),
	CALL(eventfd2),
	CALL(signalfd4),
	CALL(pipe2),
	/* sockets */
	CALL(socketpair),
	CALL(bind),
	CALL(listen),
	CALL(accept),
	CALL(accept4),
	CALL(connect),
	CALL(getsockname),
	CALL(getpeername),
	CALL(getsockopt),
	CALL(setsockopt),
	CALL(shutdown),
	CALL(sendfile),
	/* files: landlock says which */
	CALL(openat),
	CALL(close),
	CALL(close_range),
	CALL(readv),
	CALL(writev),
	CALL(pread64),
	CALL(pwrite64),
	CALL(preadv),
	CALL(pwritev),
	CALL(preadv2),
	CALL(pwritev2),
	CALL(lseek),
	CALL(fstat),
	CALL(newfstatat),
	CALL(statx),
	CALL(statfs),
	CALL(fstatfs),
	CALL(faccessat),
	CALL(faccessat2),
	CALL(readlinkat),
	CALL(getdents64),
	CALL(getcwd),
	CALL(renameat),
	CALL(renameat2),
	CALL(linkat),
	CALL(unlinkat),
	CALL(mkdirat),
	CALL(fchmod),
	CALL(fchmodat),
	CALL(fchown),
	CALL(fchownat),
	CALL(umask),
	CALL(ftruncate),
	CALL(fallocate),
	CALL(fadvise64),
	CALL(fsync),
	CALL(fdatasync),
	CALL(flock),
	CALL(inotify_init1),
	CALL(inotify_add_watch),
	CALL(fcntl),
	CALL(dup),
	CALL(dup3),
	/* memory */
	CALL(munmap),
	CALL(mremap),
	CALL(madvise),
	CALL(mincore),
	CALL(msync),
	CALL(brk),
	CALL(memfd_create),
	CALL(mlock),
	CALL(mlock2),
	CALL(munlock),
	CALL(mbind),
	CALL(set_mempolicy),
	/* threads and signals */
	CALL(exit),
	CALL(exit_group),
	CALL(gettid),
	CALL(getpid),
	CALL(getppid),
	CALL(set_tid_address),
	CALL(set_robust_list),
	CALL(get_robust_list),
	CALL(rseq),
	CALL(tgkill),
	CALL(rt_sigaction),
	CALL(rt_sigprocmask),
	CALL(rt_sigpending),
	CALL(rt_sigtimedwait),
	CALL(rt_sigsuspend),
	CALL(rt_sigreturn),
	CALL(sigaltstack),
	CALL(restart_syscall),
	CALL(sched_getaffinity),
	CALL(sched_setaffinity),
	CALL(sched_getparam),
	CALL(sched_getscheduler),
	CALL(sched_get_priority_max),
	CALL(sched_get_priority_min),
	CALL(getcpu),
	CALL(prctl),
	/* who and where it is */
	CALL(getuid),
	CALL(geteuid),
	CALL(getgid),
	CALL(getegid),
	CALL(getresuid),
	CALL(getresgid),
	CALL(getgroups),
	CALL(capget),
	CALL(uname),
	CALL(sysinfo),
	CALL(getrandom),
	CALL(getrusage),
	CALL(getpriority),
#ifdef __x86_64__ /* older calls, which newer processors never had */
	CALL(epoll_wait),
	CALL(poll),
	CALL(select),
	CALL(epoll_create),
	CALL(eventfd),
	CALL(pipe),
	CALL(open),
	CALL(stat),
	CALL(lstat),
	CALL(access),
	CALL(readlink),
	CALL(rename),
	CALL(link),
	CALL(unlink),
	CALL(mkdir),
	CALL(chmod),
	CALL(dup2),
	CALL(time),
	CALL(getrlimit),
	CALL(arch_prctl),
#endif
#if CONFINE_SANITIZED
	CALL(clone),
	CALL(mmap),
	CALL(mprotect),
	CALL(wait4),
	CALL(ptrace),
	CALL(kill),
	CALL(execve),
	CALL(personality),
	CALL(process_vm_readv),
#endif
};

enum {
	PROGRAM_MAX = 64 + 2 * ARRAY_LEN(allowed),
	LATELY = 424, /* since Linux 5.1, the same on all processors */
};

struct program {
	unsigned len;
	struct sock_filter code[PROGRAM_MAX];
};

static void emit(struct program *p, uint16_t code, uint32_t k, uint8_t yes,
		 uint8_t no)
{
	ASSERT(p->len < PROGRAM_MAX);
	p->code[p->len++] =
		(struct sock_filter){.code = code, .jt = yes, .jf = no, .k = k};
}

static void load(struct program *p, uint32_t at)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, at, 0, 0);
}

/* The lower half of an argument; both kinds of processors are little-endian. */
static void load_argument(struct program *p, unsigned index)
{
	load(p, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * index));
}

static void answer(struct program *p, uint32_t action)
{
	emit(p, BPF_RET | BPF_K, action, 0, 0);
}

static uint32_t deny(int err)
{
	return SECCOMP_RET_ERRNO | (uint32_t)err;
}

/* What follows, `count` instructions, is for that call only. */
static void when_call(struct program *p, int nr, uint8_t count)
{
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, count);
}

#if !CONFINE_SANITIZED
/* Argument `index` & mask is not all of it: allowed, else EPERM. */
static void allow_unless(struct program *p, int nr, unsigned index,
			 uint32_t mask)
{
	when_call(p, nr, 5);
	load_argument(p, index);
	emit(p, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, mask, 1, 0);
	answer(p, SECCOMP_RET_ALLOW);
	answer(p, deny(EPERM));
}
#endif

/* Argument `index` & mask == value: allowed, else EPERM. */
static void allow_masked(struct program *p, int nr, unsigned index,
			 uint32_t mask, uint32_t value)
{
	when_call(p, nr, 5);
	load_argument(p, index);
	emit(p, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
	answer(p, SECCOMP_RET_ALLOW);
	answer(p, deny(EPERM));
}

static void write_ioctl(struct program *p)
{
	when_call(p, SYS_ioctl, 5);
	load_argument(p, 1);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 2, 0);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, TIOCLINUX, 1, 0);
	answer(p, SECCOMP_RET_ALLOW);
	answer(p, deny(EPERM));
}

static void write_socket(struct program *p, bool packets)
{
	static const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6,
					    AF_NETLINK};
	const uint8_t count = ARRAY_LEN(families) + 1;

	when_call(p, SYS_socket, (uint8_t)(count + 3));
	load_argument(p, 0);
	for (uint8_t i = 0; i < count - 1; i++)
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, families[i],
		     (uint8_t)(count - i), 0);
	/* In place of a family that nobody needs stands one that is there. */
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, packets ? AF_PACKET : AF_UNIX, 1, 0);
	answer(p, deny(EAFNOSUPPORT));
	answer(p, SECCOMP_RET_ALLOW);
}

/* Those that depend on arguments are asked first: the kernel remembers the
 * answers to all others. */
static void write_program(struct program *p, const struct confine *c)
{
	load(p, offsetof(struct seccomp_data, arch));
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	answer(p, deny(EPERM));
	load(p, offsetof(struct seccomp_data, nr));
	write_ioctl(p);
	write_socket(p, c->packets);
#if !CONFINE_SANITIZED
	allow_masked(p, SYS_clone, 0, CLONE_THREAD, CLONE_THREAD);
	if (c->makes_code)
		allow_unless(p, SYS_mprotect, 2, PROT_WRITE | PROT_EXEC);
	else
		allow_masked(p, SYS_mprotect, 2, PROT_EXEC, 0);
	allow_unless(p, SYS_mmap, 2, PROT_WRITE | PROT_EXEC);
#endif
	allow_masked(p, SYS_prlimit64, 0, UINT32_MAX, 0);
	when_call(p, SYS_clone3, 1); /* see refuse_clone3 */
	answer(p, SECCOMP_RET_ALLOW);
	for (unsigned i = 0; i < ARRAY_LEN(allowed); i++) {
		when_call(p, allowed[i], 1);
		answer(p, SECCOMP_RET_ALLOW);
	}
	emit(p, BPF_JMP | BPF_JGE | BPF_K, LATELY, 0, 1);
	answer(p, deny(ENOSYS));
	answer(p, deny(EPERM));
}

static void refuse_clone3(struct program *p)
{
	load(p, offsetof(struct seccomp_data, nr));
	when_call(p, SYS_clone3, 1);
	answer(p, deny(ENOSYS));
	answer(p, SECCOMP_RET_ALLOW);
}

static int add_filter(struct program *p, unsigned flags)
{
	struct sock_fprog prog = {.filter = p->code,
				  .len = (unsigned short)p->len};

	/* The process executes nothing but itself, and walks, whose accesses
	 * are clamped, so nobody in it can abuse speculation; without the flag
	 * some kernels slow it down. */
	flags |= SECCOMP_FILTER_FLAG_SPEC_ALLOW;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog) == 0)
		return 0;
	if (errno == ENOSYS || errno == EINVAL)
		return error_set(-EOPNOTSUPP, "the kernel has no filters");
	return error_set(-errno, "seccomp: %s", strerror(errno));
}

int seccomp_start(const struct confine *c)
{
	struct program quiet = {.len = 0}, p = {.len = 0};
	int err;

	refuse_clone3(&quiet);
	write_program(&p, c);
	err = add_filter(&quiet, 0);
	return err ? err : add_filter(&p, SECCOMP_FILTER_FLAG_LOG);
}

#else

int seccomp_start(const struct confine *c)
{
	return error_set(-EOPNOTSUPP, "there is no list of system calls for "
				      "this kind of processor");
}

#endif

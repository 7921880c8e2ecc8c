/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filter of system calls against pins:
 *
 *   open, openat, open_by_handle_at, fcntl	EINVAL with O_DIRECT, as from a
 *			file system that cannot do it
 *   openat2		ENOSYS: its flags are in memory, which a filter cannot
 *			see
 *   io_uring_setup	ENOSYS: buffers can be registered, and files opened by
 *			the ring
 *   process_vm_writev	ENOSYS: pins pages of another process to write to them
 *
 * Linux AIO is left alone, since it pins nothing without O_DIRECT.
 */
#include "pins.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	X32_BIT = 0x40000000, /* of the number: the same calls */
};

#define LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define REFUSE(err)    ANSWER(SECCOMP_RET_ERRNO | (err))
#define IF_EQUAL(value, yes, no) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), (yes), (no))

/* The flags are argument `n`; the lower half is all there is of them. */
#define REFUSE_DIRECT(call, n)                                        \
	IF_EQUAL(SYS_##call, 0, 4), LOAD(args[n]),                    \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECT, 0, 1), \
		REFUSE(EINVAL), ANSWER(SECCOMP_RET_ALLOW)
#define REFUSE_CALL(call) IF_EQUAL(SYS_##call, 0, 1), REFUSE(ENOSYS)

int run_pins_refuse(void)
{
	struct sock_filter code[] = {
		LOAD(arch),
		/* A program of 32 bits has no far memory. */
		IF_EQUAL(AUDIT_ARCH_X86_64, 1, 0),
		ANSWER(SECCOMP_RET_ALLOW),
		LOAD(nr),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (uint32_t)~X32_BIT),
		REFUSE_CALL(io_uring_setup),
		REFUSE_CALL(openat2),
		REFUSE_CALL(process_vm_writev),
		REFUSE_DIRECT(open, 1),
		REFUSE_DIRECT(openat, 2),
		REFUSE_DIRECT(open_by_handle_at, 2),
		IF_EQUAL(SYS_fcntl, 0, 5),
		LOAD(args[1]),
		IF_EQUAL(F_SETFL, 0, 3),
		LOAD(args[2]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECT, 0, 1),
		REFUSE(EINVAL),
		ANSWER(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = ARRAY_LEN(code), .filter = code};

	/* Speculation: nobody in the program can abuse this filter. */
	const unsigned flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog) == 0)
		return 0;
	if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog) == 0
		       ? 0
		       : -errno;
}

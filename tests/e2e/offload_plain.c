/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an application's thread does to read and write far memory: nothing but
 * its own loads and stores. After the rings are there, the kernel ends the
 * process at the thread's next system call; it goes on to issue and to poll.
 */
#include <aquifer/aquifer.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	ROUNDS = 480, /* requests of each kind; it never yields */
	BATCH = 16,
};

/* Of this thread only; the NIC's and the rack's threads go on as ever. Writing
 * the result and ending are left. */
static int forbid_system_calls(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno
								    : 0;
}

/* Words must not be made by stdio from here on. */
static void leave(const char *words, int status)
{
	(void)!write(STDOUT_FILENO, words, strlen(words));
	(void)!write(STDOUT_FILENO, "\n", 1);
	syscall(SYS_exit_group, status);
}

static int wait_all(struct aq_poll *poll)
{
	struct aq_response r[BATCH];
	unsigned done = 0;

	while (done < BATCH) {
		int n = aq_poll_wait(poll, r, BATCH - done, 0);

		if (n < 0)
			return n;
		for (int i = 0; i < n; i++)
			if (r[i].err)
				return r[i].err;
		done += (unsigned)n;
	}
	return 0;
}

/* A batch of writes, then reads of the same places. */
static int play(struct aq_async *a, struct aq_poll *poll, uint32_t region)
{
	uint64_t value[BATCH], got[BATCH];

	for (uint64_t round = 1; round <= ROUNDS / BATCH; round++) {
		for (int write = 1; write >= 0; write--) {
			int err = 0;

			for (uint64_t i = 0; i < BATCH && !err; i++) {
				int64_t id;

				value[i] = round * BATCH + i;
				id = write ? aq_async_write(a, region, 64 * i,
							    &value[i], 8)
					   : aq_async_read(a, region, 64 * i,
							   &got[i], 8);
				err = id < 0 ? (int)id : aq_poll_add(poll, id);
			}
			if (!err)
				err = wait_all(poll);
			if (err)
				return err;
		}
		if (memcmp(value, got, sizeof(value)) != 0)
			return -EBADMSG;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct aq_region *region;
	struct aq_async *a;
	struct aq_poll *poll;
	struct aq_rack *rack;
	int number, err = argc == 2 ? aq_rack_open(NULL, &rack) : -EINVAL;

	if (!err)
		err = aq_region_open(rack, argv[1], 0, &region);
	if (!err)
		err = aq_async_open(rack, NULL, &a);
	number = err ? err : aq_async_add(a, region);
	if (number >= 0)
		err = aq_poll_create(a, &poll);
	if (err || number < 0) {
		fprintf(stderr, "cannot begin: %s\n", aq_last_error());
		return 1;
	}
	if (forbid_system_calls()) {
		puts("no seccomp");
		return 77;
	}
	err = play(a, poll, (uint32_t)number);
	leave(err ? aq_strerror(err) : "no system call", err ? 1 : 0);
	return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up rights. */
#include "confine.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int run_confine(uint64_t mask)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_capget, &head, caps) != 0)
		return -errno;
	for (unsigned i = 0; i < 2; i++) {
		uint32_t part = (uint32_t)(mask >> 32 * i);

		caps[i].permitted &= part;
		caps[i].effective &= part;
		caps[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, caps) == 0 ? 0 : -errno;
}

struct job {
	uint64_t mask;
	int (*work)(void *);
	void *arg;
	int err;
};

static void *job_main(void *arg)
{
	struct job *j = arg;

	j->err = run_confine(j->mask);
	if (!j->err)
		j->err = j->work(j->arg);
	return NULL;
}

int run_confined(uint64_t mask, int (*work)(void *), void *arg)
{
	struct job j = {.mask = mask, .work = work, .arg = arg};
	pthread_t thread;
	int err = pthread_create(&thread, NULL, job_main, &j);

	if (!err)
		err = pthread_join(thread, NULL);
	return err ? -err : j.err;
}

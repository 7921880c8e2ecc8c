/* SPDX-License-Identifier: Apache-2.0 */
/* Work in a thread with other rights. */
#include "rights.h"

#include <pthread.h>

#include "confine/confine.h"

struct job {
	uint64_t mask;
	int (*work)(void *);
	void *arg;
	int err;
};

static void *job_main(void *arg)
{
	struct job *j = arg;

	j->err = confine_thread(j->mask);
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
